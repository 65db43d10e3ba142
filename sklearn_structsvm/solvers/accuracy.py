"""How exactly problems within a problem are solved, and what outlasts them."""

# An inner problem is solved to this share of the gap of the outer one. The next inner
# problem is another one, so more accuracy would be wasted.
INNER_SHARE = 0.1

# The same of the tolerance, of which this much is left to the rest.
INNER_SHARE_OF_TOL = 0.5

# Programs of one such problem, of which it takes ten where constraints are most curved.
# Rounding alone takes more.
MAX_PROGRAMS = 50

# A plane or cut without dual mass for this many programs in a row is dropped. If it is
# needed again, the oracle finds another one.
MAX_IDLE = 50

"""How exactly problems within a problem are solved, and what outlasts them."""

# An inner problem is solved to this share of the gap of the outer one. The next inner
# problem is another one, so more accuracy would be wasted.
INNER_SHARE = 0.1

# The same of the tolerance, of which this much is left to the rest; and of the gap, if
# the next inner problem is the same one with more columns: multipliers from the middle of
# its central path oscillate less than those of its vertices.
ROUGH_SHARE = 0.5

# A step is not corrected beyond this share of the gap: labelings are missing meanwhile.
SHARE_LEFT = 0.3

# What is solved for the last time is solved to this share of what is asked.
FINAL_SHARE = 0.01

# Programs of one such problem, of which it takes ten where constraints are most curved.
# Rounding alone takes more.
MAX_PROGRAMS = 50

# A plane or cut without dual mass for this many programs in a row is dropped. If it is
# needed again, the oracle finds another one.
MAX_IDLE = 50

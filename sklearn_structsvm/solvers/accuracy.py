"""How exactly problems within a problem are solved, and what outlasts them."""

# An inner problem is solved to this share of the gap of the outer one. The next inner
# problem is another one, so more accuracy would be wasted.
INNER_SHARE = 0.1

# The same of the tolerance, of which this much is left to the rest; and of the gap, if
# the next inner problem is the same one with more columns: multipliers from the middle of
# its central path oscillate less than those of its vertices (on the four multiclass sets,
# min-max takes 10 to 30 calls instead of 27 to 78). With less, abalone takes twice the
# calls of fully corrective steps.
ROUGH_SHARE = 0.5

# Cached labelings serve until the possible gain is at most this share of the gap: others
# are missing meanwhile. On wine as a structure in Python, planes over them take 11 calls
# instead of 71. A third of this share needs a few calls less, but takes longer.
SHARE_LEFT = 0.3

# What is solved for the last time is solved to this share of what is asked.
FINAL_SHARE = 0.01

# Programs of one such problem, of which it takes ten where constraints are most curved.
# Rounding alone takes more.
MAX_PROGRAMS = 50

# A plane or cut without dual mass for this many programs in a row is dropped. If it is
# needed again, the oracle finds another one.
MAX_IDLE = 50

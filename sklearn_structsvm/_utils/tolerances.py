"""Rounding errors that several modules allow for; all others are next to their use.

Each is a share of the size of the terms, or an absolute number where these are shares.
"""

import numpy as np

# Two values of one sum, such as an objective at points nearby or the same scores in
# another order, are equal if they differ by less.
VALUE_ROUNDING = 1e-13

# The same of sums whose terms are sums themselves. Smaller weights that sum to 1, and
# shares of examples, are none.
SUM_ROUNDING = 1e-12

# A sum of numbers that are of the order of 1 and cancel may come out as large as this.
ROUNDED_ZERO = 1e-14

# Results of programs and of long sums are equal, whole or zero if they differ by less.
# HiGHS is asked for this accuracy: its default, 1e-7, would be visible in a duality gap.
SAME = 1e-9

# Answers of code that users write differ by less if they are right, in float32 and for
# results of programs, too. A wrong one differs in the first digits.
FOREIGN_ROUNDING = 1e-6

# Weights, gains, violations and shares of a way of which this much is left: a metric, a
# decision or a program would not notice.
UNNOTICED = 1e-6

# The square of a smaller length fits into float64, and so does a sum of many of them; and
# probabilities that underflow count as TINY.
HUGE = 1e150
TINY = 1.0 / HUGE**2

# A sum of slopes is zero within this many rounding errors of the sum of their sizes.
SLOPE_ROUNDING = 8.0 * np.finfo(np.float64).eps


def rounded_up(limit):
    """A limit for a message, to three decimals: what it allows, the number allows too."""
    return f"{np.ceil(1e3 * limit) / 1e3:g}"

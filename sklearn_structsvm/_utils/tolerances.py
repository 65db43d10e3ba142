"""Rounding errors that several modules allow for; all others are next to their use.

Each is a share of the size of the terms, or an absolute number where these are shares.
"""

import numpy as np

# Sums of the same scores in another order differ by less, relative to the size of all.
SCORE_ROUNDING = 1e-13

# Two values of one sum, such as an objective at points nearby, are equal if they differ
# by less.
VALUE_ROUNDING = 1e-13

# The same of sums whose terms are sums themselves, and of weights that sum to 1.
SUM_ROUNDING = 1e-12

# A sum of numbers that are of the order of 1 and cancel may come out as large as this.
ROUNDED_ZERO = 1e-14

# A sum of slopes is zero within this many rounding errors of the sum of their sizes.
SLOPE_ROUNDING = 8.0 * np.finfo(np.float64).eps

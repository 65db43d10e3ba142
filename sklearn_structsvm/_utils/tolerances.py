"""Rounding errors that several modules allow for; all others are next to their use."""

import numpy as np

# Sums of the same scores in another order differ by less, relative to the size of all.
SCORE_ROUNDING = 1e-13

# A sum of slopes is zero within this many rounding errors of the sum of their sizes.
SLOPE_ROUNDING = 8.0 * np.finfo(np.float64).eps

# Sums of the weights of wrong labels that differ by this share of all weights are equal.
COUNT_ROUNDING = 1e-12

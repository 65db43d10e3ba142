"""Gradients by differences that leave the row sums of a confusion matrix as they are."""

import numpy as np

# Step of a central difference relative to the scale of its variable: the cube root of the
# rounding unit balances rounding (unit / step) and curvature (step²).
STEP = float(np.cbrt(np.finfo(np.float64).eps))


def _move(C, source, target, amount):
    moved = C.copy()
    moved[source] -= amount
    moved[target] += amount
    return moved


def gradient_by_differences(value, C):
    """Gradient of `value` at C along moves of mass within a row.

    The reference of a row is its largest entry, at which the result is 0; elsewhere it is
    the change of the value for mass moved from there. Where an entry is less than a step
    the differences are one-sided, of second order, so that no matrix with a negative
    entry is ever evaluated. Rows without mass are left at 0.

    Parameters
    ----------
    value : callable
        (..., k, k) → float.
    C : ndarray of shape (..., k, k)

    Returns
    -------
    gradient : ndarray of the shape of C
    """
    C = np.array(C, dtype=np.float64)
    gradient = np.zeros_like(C)
    at_C = float(value(C))
    for row in np.ndindex(C.shape[:-1]):
        total = C[row].sum()
        if not total > 0.0:
            continue
        step = STEP * total
        source = (*row, int(np.argmax(C[row])))
        for j in range(C.shape[-1]):
            target = (*row, j)
            if target == source:
                continue
            up = float(value(_move(C, source, target, step)))
            if C[target] >= step:
                down = float(value(_move(C, source, target, -step)))
                gradient[target] = (up - down) / (2 * step)
            else:
                further = float(value(_move(C, source, target, 2 * step)))
                gradient[target] = (4 * up - further - 3 * at_C) / (2 * step)
    return gradient

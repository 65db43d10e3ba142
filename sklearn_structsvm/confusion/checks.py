"""Checks of user-defined metrics."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sklearn_structsvm._utils.borders import (
    as_array,
    as_floats,
    check_integer,
    check_shape,
)
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm._utils.tolerances import SAME
from sklearn_structsvm.confusion.metric import ConfusionMetric, gradient_by_differences


@with_plain_calls
def check_gradient(metric: ConfusionMetric, C: Any) -> None:
    """Compare the gradient of a metric with finite differences of its value.

    A gradient is determined only up to a constant per row, because row sums of C are
    fixed. Therefore the comparison uses only directions that keep the row sums.

    Read more in the :ref:`User Guide <guide-own-metrics>`.

    Parameters
    ----------
    metric : ConfusionMetric
        The metric. It must be resolved if it has labels among its parameters.
    C : ndarray of shape (k, k), or (n_groups, k, k) with `needs_groups`
        Confusion matrix or tensor. If the metric is not smooth, avoid its kinks.

    Raises
    ------
    ValueError
        If the gradient is wrong. The message names the entry with the largest error, and
        both numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.confusion import ConfusionMetric, check_gradient
    >>> class Square(ConfusionMetric):
    ...     def value(self, C):
    ...         return float(np.square(C).sum())
    ...     def gradient(self, C):
    ...         return C
    >>> check_gradient(Square(), np.array([[0.5, 0.1], [0.1, 0.3]]))
    Traceback (most recent call last):
    ...
    ValueError: gradient of Square is wrong at entry (0, 1): -0.4, by differences -0.8...
    """
    _check_kind(metric)
    C = as_floats("C", C, *as_array("C", C).shape)
    shape = ("n_groups", "k", "k") if metric.needs_groups else ("k", "k")
    check_shape("C", C, *shape)
    if C.shape[-1] != C.shape[-2]:
        raise ValueError(f"C must have as many rows as columns; got shape {C.shape}.")
    expected = gradient_by_differences(metric.value, C)
    found = np.array(metric.gradient(C), dtype=np.float64)
    name = type(metric).__name__
    if found.shape != C.shape:
        raise ValueError(f"gradient of {name} has shape {found.shape}, not {C.shape}.")
    if not np.isfinite(found).all():
        raise ValueError(f"gradient of {name} is not finite.")
    largest = C.argmax(axis=-1)[..., None]
    found -= np.take_along_axis(found, largest, axis=-1)
    found[C.sum(axis=-1) == 0.0] = 0.0
    wrong = np.abs(found - expected)
    worst = np.unravel_index(np.argmax(wrong), C.shape)
    # Differences of a function with moderate curvature are accurate to about 1e-9. At the
    # edge of the set, where they are one-sided, they are accurate to 1e-6 of the largest
    # slope.
    if wrong[worst] > 1e-4 * max(1.0, np.abs(expected).max()):
        raise ValueError(
            f"gradient of {name} is wrong at entry {tuple(map(int, worst))}: "
            f"{found[worst]:.6g}, by differences {expected[worst]:.6g} (both relative to "
            "the row's largest entry)."
        )


@with_plain_calls
def check_metric(
    metric: ConfusionMetric,
    n_classes: int = 3,
    *,
    n_groups: int = 2,
    n_trials: int = 20,
    random_state: int | np.random.RandomState | None = 0,
) -> None:
    """Check the properties of a metric on random confusion matrices.

    It compares the gradient with finite differences. If the metric is `convex`, it checks
    that the metric lies below its chords and above its tangents. It checks that `ratio`
    and `pieces` reproduce the value, that `ratio_terms` are at most the value, and that
    the metric depends only on the `entries` it declares. These are random trials, so a
    metric that passes may still be wrong.

    Read more in the :ref:`User Guide <guide-own-metrics>`.

    Parameters
    ----------
    metric : ConfusionMetric
        The metric. It must be resolved if it has labels among its parameters.
    n_classes : int, default=3
        Number of classes.
    n_groups : int, default=2
        Number of groups, for a metric with `needs_groups`.
    n_trials : int, default=20
        Number of random trials.
    random_state : int, RandomState instance or None, default=0
        Controls the random matrices.

    Raises
    ------
    ValueError
        If a property does not hold. The message says which, and by how much.

    Examples
    --------
    >>> from sklearn_structsvm.confusion import check_metric
    >>> from sklearn_structsvm.metrics import GMean, MacroF1
    >>> check_metric(GMean())
    >>> class Wishful(MacroF1):
    ...     convex = True
    >>> check_metric(Wishful())
    Traceback (most recent call last):
    ...
    ValueError: Wishful is not convex: ...
    """
    _check_kind(metric)
    for name, value in [
        ("n_classes", n_classes), ("n_groups", n_groups), ("n_trials", n_trials)
    ]:  # fmt: skip
        check_integer(name, value, 1)
    rng = check_random_state(random_state)
    groups = (n_groups,) if metric.needs_groups else ()
    for _ in range(n_trials):
        priors = rng.dirichlet(np.ones(int(np.prod(groups)) * n_classes))
        priors = priors.reshape(*groups, n_classes)
        C, other = (_random_confusion(priors, rng) for _ in range(2))
        if metric.smooth:
            check_gradient(metric, C)
        if metric.convex:
            _check_convex(metric, C, other, rng)
        if not metric.needs_groups:
            _check_forms(metric, priors, C)
            _check_entries(metric, C, rng)


def _check_kind(metric):
    if not isinstance(metric, ConfusionMetric):
        raise TypeError(f"metric must be a ConfusionMetric; got {metric!r}.")


def _random_confusion(priors, rng):
    """Row sums `priors`; from even rows to rows that are nearly all of one entry."""
    concentration = 10.0 ** rng.uniform(-1, 1)
    rows = rng.gamma(concentration, size=(*priors.shape, priors.shape[-1])) + 1e-3
    return rows / rows.sum(axis=-1, keepdims=True) * priors[..., None]


def _check_convex(metric, C, other, rng):
    name = type(metric).__name__
    t = rng.uniform()
    middle = (1 - t) * C + t * other
    chord = (1 - t) * metric.value(C) + t * metric.value(other)
    if metric.value(middle) > chord + SAME:
        raise ValueError(
            f"{name} is not convex: between two matrices of the same row sums its value "
            f"is {metric.value(middle):.6g}, above the chord's {chord:.6g}."
        )
    G, h = metric.tangent(C)
    below, value = np.vdot(G, other) + h, metric.value(other)
    # A tangent from differences has the error of the gradient.
    if below > value + max(SAME, 1e-8 * np.abs(G).max()):
        raise ValueError(
            f"tangent of {name} is not below it: {below:.6g} where the value is "
            f"{value:.6g}."
        )


def _check_forms(metric, priors, C):
    value = metric.value(C)
    found = {}
    ratio, pieces, terms = (
        form(priors) for form in (metric.ratio, metric.pieces, metric.ratio_terms)
    )
    if ratio is not None:
        found["ratio"] = np.vdot(ratio[0], C) / np.vdot(ratio[1], C)
    if pieces is not None:
        found["pieces"] = np.max(np.tensordot(pieces[0], C, axes=2) + pieces[1])
    for form, result in found.items():
        if not np.isclose(result, value, rtol=1e-9, atol=SAME):
            raise ValueError(
                f"{form} of {type(metric).__name__} gives {result:.6g} where the value "
                f"is {value:.6g}."
            )
    if terms is not None:
        below = sum(w * np.vdot(A, C) / np.vdot(B, C) for w, A, B in terms)
        if below > value + SAME:
            raise ValueError(
                f"ratio_terms of {type(metric).__name__} give {below:.6g}, above the "
                f"value {value:.6g}."
            )


def _check_entries(metric, C, rng):
    mask = np.asarray(metric.entries(len(C)))
    moved = C.copy()
    for row, used in zip(moved, mask, strict=True):
        free = row[~used]
        row[~used] = free.sum() * rng.dirichlet(np.ones(len(free))) if len(free) else 0.0
    if not np.isclose(metric.value(moved), metric.value(C), rtol=1e-9, atol=SAME):
        raise ValueError(
            f"{type(metric).__name__} depends on more entries than it says: moving mass "
            f"between others changes it from {metric.value(C):.6g} to "
            f"{metric.value(moved):.6g}."
        )

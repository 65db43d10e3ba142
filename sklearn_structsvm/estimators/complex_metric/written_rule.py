"""A single rule in words and as a table."""

from html import escape
from inspect import signature

import numpy as np

from sklearn_structsvm.confusion.function_metric import FunctionMetric, shown
from sklearn_structsvm.confusion.registry import read_constraints
from sklearn_structsvm.estimators.complex_metric.thresholds import SIGNS


class WrittenRule:
    """The decision rule of a fitted classifier, in words and as a table.

    ``str(rule)`` is the rule in words. For two classes it says exactly what `predict`
    does. For more classes and for many labels its numbers are rounded to three digits;
    those of the table are exact.

    Read more in the :ref:`User Guide <guide-single-rules>`.

    Attributes
    ----------
    columns : dict of {str: list}
        The rule as a table, which ``pandas.DataFrame(rule.columns)`` takes. It has the
        columns "group" and "baseline" if the rule depends on them. For two classes,
        "label" is the label that the metric or a constraint names, or else the second
        one. It is predicted where its probability is "sign" (">", or ">=" for the first
        label) the "threshold", and "otherwise" elsewhere. For more classes, the
        label with the largest "weight" times its probability is predicted. If weights do
        not suffice, "cost" is that of predicting "predicted" for "label", and the
        prediction with the least expected cost is chosen. For many labels, "label" is
        predicted where its probability p is "sign" the "threshold" or, with a number of
        labels per row, if "at_0" + "slope" p is among the largest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn_structsvm import ComplexMetricClassifier
    >>> from sklearn_structsvm.metrics import Precision
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = ComplexMetricClassifier(
    ...     metric="recall", constraints=Precision(at_least=0.99), randomized=False)
    >>> model = model.fit(X[["mean radius", "mean texture"]], y)
    >>> sorted(model.rule_.columns)
    ['label', 'otherwise', 'sign', 'threshold']
    >>> str(model.rule_).startswith("recall with Precision(at_least=0.99): 1 if p(1) > ")
    True
    """

    def __init__(self, title: str, columns: dict[str, list], lines: list[str]) -> None:
        self.title = title
        self.columns = columns
        self._lines = lines

    def __str__(self) -> str:
        if len(self._lines) == 1:
            return f"{self.title}: {self._lines[0]}"
        return "\n".join([f"{self.title}:", *(f"  {line}" for line in self._lines)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        rows = zip(*self.columns.values(), strict=True)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(x))}</td>" for x in row) + "</tr>"
            for row in rows
        )
        title = f"<caption>{escape(self.title)}</caption>"
        return f"<table>{title}<tr>{head}</tr>{body}</table>"


def write_rule(estimator) -> WrittenRule:
    """The rule of a fitted classifier whose mixture has a single one."""
    mixture, labels = estimator.mixture_, estimator.classes_.tolist()
    losses, places = mixture.mean_losses()[0], _places(estimator)
    blind = mixture.n_groups > 1
    if not blind and all(np.array_equal(L, losses[0]) for L in losses):
        losses, places = losses[:1], {}
    # A cost of a label that does not depend on the prediction does not matter.
    losses = losses - losses.min(axis=2, keepdims=True)
    weights = [_class_weights(L) for L in losses]
    if len(labels) == 2 and not blind:
        cuts = mixture.cuts()
        label, otherwise = labels[cuts.named], labels[1 - cuts.named]
        rows = [
            (label, SIGNS[cuts.named, below], at, otherwise)
            for at, below in zip(cuts.at[0].tolist(), cuts.below[0].tolist(), strict=True)
        ]
        if all(row == rows[0] for row in rows):
            rows, losses, places = rows[:1], losses[:1], {}
        names = ("label", "sign", "threshold", "otherwise")
        table = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        lines = [_threshold_words(*row) for row in rows]
    elif not blind and all(w is not None for w in weights):
        table = {"label": labels * len(losses), "weight": np.ravel(weights).tolist()}
        lines = [_weight_words(each, labels) for each in weights]
    else:
        table = {
            "label": [label for label in labels for _ in labels] * len(losses),
            "predicted": labels * len(labels) * len(losses),
            "cost": losses.ravel().tolist(),
        }
        lines = [f"the least expected cost: {_cost_words(L, labels)}" for L in losses]
    for a in range(len(lines) if places else 0):
        place = ", ".join(f"{name} {column[a]}" for name, column in places.items())
        lines[a] = f"{place}: {lines[a]}"
    if blind:
        lines = ["by the probabilities of group and label, summed over groups", *lines]
    n_each = len(table["label"]) // len(losses)
    of_cells = {
        name: [value for value in column for _ in range(n_each)]
        for name, column in places.items()
    }
    return WrittenRule(_title(estimator), of_cells | table, lines)


def write_label_rule(estimator) -> WrittenRule:
    """The rule of a fitted classifier of many labels."""
    title = f"{_title(estimator)}, average={estimator.average!r}"
    if estimator.label_sigmoids_ is not None:
        title += ", p calibrated by label_sigmoids_"
    return WrittenRule(title, *estimator.label_rule_.written(estimator.label_names_))


def _title(estimator):
    """The metric and the constraints."""
    metric, constraints = estimator.metric, read_constraints(estimator.constraints)
    if isinstance(estimator.metric_, FunctionMetric):
        title = shown(metric)
    else:
        title = metric if isinstance(metric, str) else _in_words(metric)
    if constraints:
        title += " with " + " and ".join(map(_in_words, constraints))
    return title


def _in_words(part):
    """A metric or a constraint with its non-default parameters and its slack or ratio."""
    defaults = {
        name: parameter.default
        for name, parameter in signature(type(part)).parameters.items()
    }
    params = part.get_params(deep=False)
    told = [n for n, value in params.items() if repr(value) != repr(defaults.get(n))]
    limit = {"difference": "slack", "ratio": "ratio"}.get(params.get("bound"))
    if limit is not None and limit not in told:
        told.insert(0, limit)
    values = ", ".join(f"{name}={params[name]!r}" for name in told)
    return f"{type(part).__name__}({values})"


def _places(estimator):
    """The group and the baseline label of each cell, by "group" and "baseline"."""
    finder, places = estimator.cell_finder_, {}
    labels = [None] if finder.baseline is None else estimator.classes_.tolist()
    n_groups = 1
    if finder.groups is not None:
        names = [n if np.ndim(n) == 0 else tuple(n) for n in estimator.groups_.tolist()]
        n_groups = len(names)
        places["group"] = [name for name in names for _ in labels]
    if finder.baseline is not None:
        places["baseline"] = labels * n_groups
    return places


def _threshold_words(label, sign, threshold, otherwise):
    if np.isinf(threshold):
        return f"always {label if threshold < 0.0 else otherwise}"
    return f"{label} if p({label}) {sign} {threshold!r}, else {otherwise}"


def _class_weights(L):
    """Weights w of the rule argmax_j w_j η_j, with a smallest positive one of 1, or None.

    The rule has this form if all wrong predictions for a label cost the same.
    """
    wrong = L[~np.eye(len(L), dtype=bool)].reshape(len(L), -1)
    weights = wrong[:, 0] - L.diagonal()
    is_rule = (wrong == wrong[:, :1]).all() and (weights >= 0.0).all() and weights.any()
    return weights / weights[weights > 0.0].min() if is_rule else None


def _weight_words(weights, labels):
    pairs = zip(weights, labels, strict=True)
    return "the largest of " + ", ".join(f"{w:.3g} p({label})" for w, label in pairs)


def _cost_words(L, labels):
    """The costs of all predictions for each label."""
    return "; ".join(
        f"for {label} " + ", ".join(f"{c:.3g}" for c in row)
        for label, row in zip(labels, L, strict=True)
    )

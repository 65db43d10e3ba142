"""Random options of rules, drawn together, and what must be so of each rule."""

import numpy as np
from calls import Broken
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm.solvers.confusion.mixture import FEASIBILITY_TOL
from sklearn_structsvm.solvers.confusion.named import SOLVERS

RULES = ("ComplexMetricClassifier", "MultilabelMetricClassifier", "ConformalClassifier")
# What two ways to compute a value may differ by.
ROUNDING = 1e-9


def some_options(task, name):
    """Keyword arguments of a rule, for this data."""
    pick, rng = task.pick, task.rng
    limits = {"max_time": pick([1.0, 1.0, 0.05, 1e-4]), "cv": pick([None, 2, 0.5])}
    n_constraints = int(rng.integers(3))
    constraints = [task.constraint() for _ in range(n_constraints)]
    if name == "ComplexMetricClassifier":
        return limits | {
            "metric": task.metric(),
            "constraints": constraints,
            "solver": pick(["auto"] * 3 + [*SOLVERS]),
            "lmo": pick(["plugin"] * 4 + ["weighted"]),
            "confusion": pick(["auto", "labels", "probabilities"]),
            "constraint_confidence": pick([None, None, 0.5, 0.8]),
            "constraint_calibration": pick(["uniform", 0.4]),
            "margin": pick([None, None, "auto", 0.02]),
            "randomized": bool(rng.integers(2)),
            "group_blind": rng.random() < 0.2,
            "tol": pick([1e-1, 1e-3, 1e-3, 1e-8]),
            "max_iter": pick([2, 30, 30]),
        }
    if name == "MultilabelMetricClassifier":
        return limits | {
            "metric": task.metric(),
            "constraints": constraints if rng.random() < 0.3 else [],
            "average": pick(["macro", "weighted", "micro", "samples"]),
            "labels_per_row": pick([None, 1, 2]),
            "confusion": pick(["auto", "labels", "probabilities"]),
        }
    return {
        "confidence_level": pick([0.3, 0.5, 0.6, 0.8]),
        "conformity_score": pick(["auto", "lac", "aps", "raps", "margin"]),
        "coverage": pick(["whole", "whole", "average"]),
        "condition": pick([None, None, "class", "group", "length"]),
        "cv": pick([0.4, 0.5, 2, 3]),
        "randomized": rng.random() < 0.3,
    }


def some_groups(rng, n):
    """Groups of examples; one of them may be tiny."""
    k = int(rng.integers(2, 6))
    shares = rng.dirichlet(np.full(k, 1.0))
    return np.array(["f", "m", "d", "x", "?"])[rng.choice(k, n, p=shares)]


def check_rule(use):
    """What a rule says of itself."""
    model = use.model
    kind = type(model).__name__
    if kind == "ConformalClassifier":
        return check_sets(use)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in use.warned)
    if not model.dual_gap_ > 0.0:
        raise Broken(f"a gap of {model.dual_gap_}")
    if kind == "MultilabelMetricClassifier":
        k = model.labels_per_row
        given = use.kept(model.predict, use.X).sum(axis=1)
        if k is not None and (given != k).any():
            raise Broken(f"{given} labels per row for {k}")
        return None
    metric = model.metric_
    if not (metric.needs_groups or metric.needs_costs):
        value = metric.value(model.certified_confusions_.sum(axis=0))
        if abs(value - model.objective_) > ROUNDING * (1.0 + abs(value)):
            raise Broken(f"objective_ is {model.objective_}, by its tensor {value}")
    if not warned and model.constraint_violation_ > FEASIBILITY_TOL:
        raise Broken(f"a silent violation of {model.constraint_violation_}")
    priors = np.full(len(model.classes_), 1.0 / len(model.classes_))
    # The gap of a single rule is its distance to all mixtures.
    is_bounded = metric.convex or metric.ratio(priors) is not None
    is_bounded = is_bounded and model.randomized and use.is_certified
    if is_bounded and not warned and model.dual_gap_ > model.tol:
        raise Broken(f"a silent gap of {model.dual_gap_} with tol={model.tol}")
    return None


def check_sets(use):
    """Sets hold what is counted of them, and never fewer labels than for less."""
    model = use.model
    given = {}
    if model.condition == "group":
        given["sensitive_features"] = use.options["sensitive_features"]
    report = use.kept(model.set_report, use.X, use.y, **given)
    if not 0.0 <= report["coverage"] <= report["average_coverage"] <= 1.0:
        raise Broken(f"a report of {report}")
    if report["n_full"] + report["n_empty"] + report["n_single"] > sum(
        1 if np.ndim(own) == 0 or use.task.kind == "indicator" else len(own)
        for own in use.y
    ):
        raise Broken(f"more sets than rows: {report}")

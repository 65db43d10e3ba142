"""Other packages' classifiers for complex metrics; run by an interpreter that has them.

Fits one method to each of the splits in a file and prints a JSON line for each: the
seconds of the fit, the calls of the linear minimization oracle (or the fits of the
underlying classifier), and the expected confusion tensors of the training and the test
part. All but fairlearn's ExponentiatedGradient, which fits logistic regressions of its
own, are given class probabilities.

`paper_*` run the code of Narasimhan et al., in the folder CONSTRAINED_CLASSIFICATION (of
their repository, shivtavker/constrained-classification): new_experiments in it. Of TFCO,
which their SplitFW asks only for the linear program of its pruning, that one is replaced.
"""

import argparse
import contextlib
import json
import os
import sys
import types
import warnings
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np

# Below a recall of this xCOLUMNs' metrics have no gradient worth the name.
TINY = 1e-9
COVERAGE_SLACK = 0.01
# The cost of a positive that is missed, of bench_decision_peers.py.
MISSED = 5.0
# Of the paper's code for SplitFW under coverage.
SPLIT_PENALTY = 10.0
SPLIT_STEPS = (10.0, 5.0, 0.1)
DUAL_STEPS = (0.001, 0.01, 0.1)
# fairlearn's names of the constraints, as a reduction and in post-processing.
FAIRLEARN = {
    "equal_opportunity": ("TruePositiveRateParity", "true_positive_rate_parity"),
    "equalized_odds": ("EqualizedOdds", "equalized_odds"),
    "demographic_parity": ("DemographicParity", "demographic_parity"),
}


class Half:
    """Training or test examples of a split."""

    def __init__(self, data, name, i):
        self.X, self.y, self.group, self.P = (
            data[f"{field}_{name}_{i}"] for field in ("X", "y", "group", "P")
        )

    def confusion(self, predicted, by_group):
        """Tensor (m, k, k) for predictions as probabilities of shape (n, k)."""
        k = self.P.shape[1]
        cells = self.group * by_group
        m = int(self.group.max()) + 1 if by_group else 1
        C = np.zeros((m * k, k))
        np.add.at(C, cells * k + self.y, predicted)
        return C.reshape(m, k, k) / len(self.y)


def one_hot(labels, k):
    return np.eye(k)[labels]


# xCOLUMNs


def xcolumns_metric(name, default):
    """A score of xCOLUMNs' vectors of true positives and so on, of its own NumPy."""
    import autograd.numpy as anp
    from xcolumns.metrics import macro_f1_score_on_conf_matrix

    def recalls(tp, fn):
        return tp / (tp + fn + TINY)

    def micro_f1(tp, fp, fn, tn):
        counted = np.arange(len(tp)) != default
        hits = anp.sum(tp * counted)
        return 2.0 * hits / (anp.sum((2.0 * tp + fp + fn) * counted) + TINY)

    def mcc(tp, fp, fn, tn):
        # Of two classes; what is true of one is false of the other.
        a, b, c, d = tp[1], fp[1], fn[1], tp[0]
        sides = (a + b + TINY) * (a + c + TINY) * (d + b + TINY) * (d + c + TINY)
        return (a * d - b * c) / anp.sqrt(sides)

    return {
        "f1": lambda tp, fp, fn, tn: 2 * tp[1] / (2 * tp[1] + fp[1] + fn[1] + TINY),
        "balanced": lambda tp, fp, fn, tn: anp.mean(recalls(tp, fn)),
        "mcc": mcc,
        "cost": lambda tp, fp, fn, tn: -fp[1] - MISSED * fn[1],
        "h_mean": lambda tp, fp, fn, tn: 1.0 / anp.mean(1.0 / (recalls(tp, fn) + TINY)),
        "q_mean": lambda tp, fp, fn, tn: (
            1.0 - anp.sqrt(anp.mean((1.0 - recalls(tp, fn)) ** 2))
        ),
        "g_mean": lambda tp, fp, fn, tn: anp.exp(
            anp.mean(anp.log(recalls(tp, fn) + TINY))
        ),
        "min_max": lambda tp, fp, fn, tn: anp.min(recalls(tp, fn)),
        "micro_f1": micro_f1,
        "macro_f1": macro_f1_score_on_conf_matrix,
    }[name]


def xcolumns(train, args, seed):
    """Frank-Wolfe with the search for the step that is its default."""
    from xcolumns.frank_wolfe import find_classifier_using_fw

    k = train.P.shape[1]
    metric = xcolumns_metric(args.target, args.default_class)
    labels = one_hot(train.y, k)
    start = process_time()
    found, meta = find_classifier_using_fw(
        labels, train.P, metric, k=1, skip_tn=True, seed=seed, return_meta=True,
        max_iters=args.calls or 100,
    )  # fmt: skip
    seconds = process_time() - start

    def predict(half):
        total = np.zeros(half.P.shape)
        for a, b, weight in zip(found.a, found.b, found.p, strict=True):
            total += weight * one_hot(np.argmax(half.P * a + b, axis=1), k)
        return total

    return predict, seconds, len(found.p)


# fairlearn


def exponentiated_gradient(train, args, seed):
    """The reduction, for costs that balance the classes."""
    from fairlearn import reductions
    from sklearn.linear_model import LogisticRegression

    constraint = getattr(reductions, FAIRLEARN[args.target][0])
    shares = np.bincount(train.y) / len(train.y)
    costs = {"fp": 0.5 / shares[0], "fn": 0.5 / shares[1]}
    model = reductions.ExponentiatedGradient(
        LogisticRegression(max_iter=10_000),
        constraint(difference_bound=args.slack),
        objective=reductions.ErrorRate(costs=costs),
    )
    start = process_time()
    model.fit(train.X, train.y, sensitive_features=train.group)
    seconds = process_time() - start

    def predict(half):
        positive = sum(
            weight * model.predictors_[i].predict(half.X)
            for i, weight in model.weights_.items()
            if weight > 0.0
        )
        return np.column_stack([1.0 - positive, positive])

    return predict, seconds, model.n_oracle_calls_


def given():
    """A fitted classifier whose features are the class probabilities."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Given(ClassifierMixin, BaseEstimator):
        classes_ = np.arange(2)

        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            return np.asarray(X)

    return Given()


def threshold_optimizer(train, args, seed):
    """Thresholds of each group; --slack 0 is its default, which is no tolerance."""
    from fairlearn.postprocessing import ThresholdOptimizer

    model = ThresholdOptimizer(
        estimator=given(),
        constraints=FAIRLEARN[args.target][1],
        objective="balanced_accuracy_score",
        prefit=True,
        predict_method="predict_proba",
        tol=args.slack or None,
    )
    start = process_time()
    model.fit(train.P, train.y, sensitive_features=train.group)
    seconds = process_time() - start

    def predict(half):
        # The expectation; predict draws.
        return model._pmf_predict(half.P, sensitive_features=half.group)

    return predict, seconds, 1


def oxonfair(train, args, seed):
    """OxonFair's search over thresholds of each group, the largest difference bounded."""
    from oxonfair import FairPredictor
    from oxonfair.utils import group_metrics

    rate = {
        "equal_opportunity": group_metrics.recall,
        "demographic_parity": group_metrics.pos_pred_rate,
    }[args.target]

    def given_to_it(half):
        return {"data": half.P, "target": half.y, "groups": half.group}

    start = process_time()
    model = FairPredictor(None, given_to_it(train))
    model.fit(group_metrics.balanced_accuracy, rate.max_diff, args.slack)
    seconds = process_time() - start

    def predict(half):
        return one_hot(np.asarray(model.predict(given_to_it(half)), dtype=int), 2)

    return predict, seconds, 1


def error_parity(train, args, seed):
    """Relaxed parity by a linear program over the groups' ROC hulls."""
    from error_parity import RelaxedThresholdOptimizer

    share = train.y.mean()
    start = process_time()
    model = RelaxedThresholdOptimizer(
        predictor=lambda P: P[:, 1],
        constraint=FAIRLEARN[args.target][1],
        tolerance=args.slack,
        false_pos_cost=0.5 / (1.0 - share),
        false_neg_cost=0.5 / share,
    )
    model.fit(train.P, train.y, group=train.group)
    seconds = process_time() - start

    def expected(classifier, P):
        """Of its draws, the probability of label 1."""
        if hasattr(classifier, "probabilities"):
            parts = zip(classifier.probabilities, classifier.classifiers, strict=True)
            return sum(weight * expected(part, P) for weight, part in parts)
        if hasattr(classifier, "target_fpr"):
            return np.full(len(P), classifier.target_fpr)
        return np.asarray(classifier(P), dtype=float)

    def predict(half):
        ones = np.empty(len(half.y))
        for group, classifier in model._realized_classifier.group_to_clf.items():
            rows = half.group == group
            ones[rows] = expected(classifier, half.P[rows])
        return np.column_stack([1.0 - ones, ones])

    return predict, seconds, 1


# The paper's code


@contextlib.contextmanager
def papers_modules(folder):
    """Import from a folder of the paper's experiments."""
    pruning = types.ModuleType("tensorflow_constrained_optimization")
    pruning.find_best_candidate_distribution = best_distribution
    for name in ("tensorflow", "tensorflow.compat", "tensorflow.compat.v1"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["tensorflow.compat"].v1 = sys.modules["tensorflow.compat.v1"]
    sys.modules.setdefault("tensorflow_constrained_optimization", pruning)
    root = os.environ.get("CONSTRAINED_CLASSIFICATION", ".")
    sys.path.insert(0, str(Path(root, "new_experiments", folder)))
    try:
        yield
    finally:
        del sys.path[0]


def best_distribution(objectives, constraints):
    """Weights of the least mean objective for the least violation of the means."""
    from scipy.optimize import linprog

    n = len(objectives)
    constraints = np.asarray(constraints).reshape(n, -1).T
    sums = np.append(np.ones(n), 0.0)[None]
    rows = np.column_stack([constraints, -np.ones(len(constraints))])
    least = linprog(
        np.append(np.zeros(n), 1.0), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums,
        b_eq=[1.0],
    )  # fmt: skip
    limit = np.full(len(rows), least.x[-1] + 1e-9)
    best = linprog(
        objectives, A_ub=constraints, b_ub=limit, A_eq=sums[:, :-1], b_eq=[1.0]
    )
    return np.maximum(best.x, 0.0) / np.maximum(best.x, 0.0).sum()


def identity(P):
    return P


def mixture_of(losses, weights):
    """Predictions of plug-in rules argmin_j Σ_i η_i L_ij, some with a weight of zero."""

    def predict(half):
        total = np.zeros(half.P.shape)
        for L, weight in zip(losses, weights, strict=True):
            if weight > 0.0:
                chosen = np.argmin(half.P @ np.asarray(L), axis=1)
                total += weight * one_hot(chosen, half.P.shape[1])
        return total

    return predict


def paper_frank_wolfe(train, args, seed):
    """Algorithm 1 for the H-mean."""
    with papers_modules("Unconstraint"):
        from algorithm.fwunc import frank_wolfe_unc

    k, n_calls = train.P.shape[1], args.calls or 5000
    start = process_time()
    losses, weights = frank_wolfe_unc(train.P, train.y, identity, n_calls, k)
    return mixture_of(losses, weights), process_time() - start, n_calls


# The step sizes that the first split chose.
chosen_steps = {}


def paper_gda(train, args, seed):
    """Algorithm 2 for the H-mean; the steps are chosen by the first training part."""
    with papers_modules("Unconstraint"):
        from algorithm.threeplayer import threeplayer

    k, n_calls = train.P.shape[1], args.calls or 5000

    def fit(steps, n_calls):
        return threeplayer(train.P, train.y, identity, n_calls, k, *steps)

    def value(steps):
        C = train.confusion(mixture_of(*fit(steps, 200))(train), False)[0]
        return -1.0 / np.mean(C.sum(axis=1) / np.maximum(C.diagonal(), TINY))

    if not chosen_steps:
        grid = [(a, b) for a in DUAL_STEPS for b in DUAL_STEPS]
        chosen_steps["gda"] = min(grid, key=value)
    start = process_time()
    losses, weights = fit(chosen_steps["gda"], n_calls)
    return mixture_of(losses, weights), process_time() - start, n_calls


def paper_ellipsoid(train, args, seed):
    """Algorithm 3 for the H-mean, 500 steps within each call."""
    with papers_modules("Unconstraint"):
        from algorithm.ellipsoid import ellipsoid

    k, n_calls = train.P.shape[1], args.calls or 1000
    start = process_time()
    losses, weights = ellipsoid(train.P, train.y, identity, n_calls, k)
    return mixture_of(losses, weights), process_time() - start, n_calls


def paper_bisection(train, args, seed):
    """Algorithm 4 for micro-F1, whose default class comes first there."""
    with papers_modules("MinMax"):
        from algorithm.bisection import bisection

    k, n_calls = train.P.shape[1], args.calls or 100
    order = np.append(args.default_class, np.delete(np.arange(k), args.default_class))
    ranks = np.argsort(order)
    start = process_time()
    L = bisection(train.P[:, order], ranks[train.y], identity, n_calls, k)
    seconds = process_time() - start
    return mixture_of([L[np.ix_(ranks, ranks)]], [1.0]), seconds, n_calls


def paper_split_fw(train, args, seed):
    """Algorithm 5 for the H-mean under coverage."""
    with papers_modules("Constraint"):
        from algorithm.sbfw import split_frank_wolfe

    k, n_calls = train.P.shape[1], args.calls or 1000
    shares = np.bincount(train.y, minlength=k) / len(train.y)
    start = process_time()
    losses, weights = split_frank_wolfe(
        train.P, train.y, identity, k, COVERAGE_SLACK, shares, SPLIT_PENALTY,
        SPLIT_STEPS, n_calls,
    )  # fmt: skip
    return mixture_of(losses, weights), process_time() - start, n_calls


METHODS = {
    f.__name__: f
    for f in (
        xcolumns, exponentiated_gradient, threshold_optimizer, oxonfair, error_parity,
        paper_frank_wolfe, paper_gda, paper_ellipsoid, paper_bisection, paper_split_fw,
    )
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("splits")
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("target", help="metric or constraint, or several: a,b")
    parser.add_argument("--calls", type=int, help="its own limit if not given")
    parser.add_argument("--slack", type=float, default=0.05)
    parser.add_argument("--by-group", type=int, default=0)
    parser.add_argument("--default-class", type=int, default=0, help="of micro-F1")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with np.load(args.splits) as data:
        seeds = range(sum(name.startswith("y_train_") for name in data.files))
        for target, seed in product(args.target.split(","), seeds):
            args.target = target
            train, test = Half(data, "train", seed), Half(data, "test", seed)
            predict, seconds, calls = METHODS[args.method](train, args, seed)
            line = {"seconds": seconds, "calls": int(calls)}
            for name, half in (("train", train), ("test", test)):
                C = half.confusion(predict(half), bool(args.by_group))
                line[name] = C.tolist()
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

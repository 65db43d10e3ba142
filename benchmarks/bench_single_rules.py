"""What one rule in place of a mixture costs: `ComplexMetricClassifier(randomized=False)`.

Training examples of a few random splits, with the probabilities of one logistic
regression, which are given. Two classes (two groups): one threshold, or one per group
where the constraint is of groups; the search is exact. More classes: one loss matrix, by
a local search from the rules of the mixture.

"mixture" is the loss of the best mixture, and "rules" how many it has. "price" is the
loss of the single rule minus that, and "gap" what is certified: its distance from the
bound of all mixtures. These are means, and "largest" is the largest price. "errors"
counts splits where no single rule meets the constraints. Process seconds are medians of
the whole fit.
"""

import warnings
from time import process_time

from _common import make_parser, np, print_table
from _confusion import FAIRNESS, Given, load_splits

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    EqualizedOdds,
    EqualOpportunity,
    Precision,
    PredictiveParity,
    Recall,
    SelectionRate,
)
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

SETS = ["abalone", "pageblocks", "satimage"]
TWO_CLASSES = {
    "F1": ("f1", ()),
    "recall at precision 0.7": ("recall", Precision(at_least=0.7)),
    "G-mean, recalls within .05": ("g_mean", EqualOpportunity(slack=0.05)),
    "G-mean, odds within .05": ("g_mean", EqualizedOdds(slack=0.05)),
    "G-mean, precisions within .05": ("g_mean", PredictiveParity(slack=0.05)),
}
MORE_CLASSES = {
    "G-mean": ("g_mean", ()),
    "min-max": ("min_max", ()),
    "macro-F1": ("macro_f1", ()),
    "G-mean, shares within .01": ("g_mean", SelectionRate(target="priors", slack=0.01)),
    "error, recalls at least .5": ("zero_one", Recall(at_least=0.5)),
}


def fit(part, metric, constraint, randomized):
    """The fitted classifier and its seconds; None if nothing meets the constraints."""
    model = ComplexMetricClassifier(
        Given(part.P.shape[1]), metric, constraint, cv="prefit", randomized=randomized
    )
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(part.P, part.y, sensitive_features=part.group)
        except InfeasibleConstraintError:
            model = None
    return model, process_time() - start


def row_of(name, title, splits, metric, constraint):
    """A row of the table; none if no mixture meets the constraints."""
    found, n_errors = [], 0
    for split in splits:
        mixture, seconds = fit(split.train, metric, constraint, True)
        if mixture is None:
            continue
        rule, of_rule = fit(split.train, metric, constraint, False)
        if rule is None:
            n_errors += 1
            continue
        found.append([
            mixture.objective_, len(mixture.mixture_weights_),
            rule.objective_ - mixture.objective_, rule.dual_gap_, seconds, of_rule,
        ])  # fmt: skip
    if not found:
        return [[name, title, *["-"] * 5, n_errors, "-", "-"]] if n_errors else []
    loss, n_rules, price, gap, seconds, of_rule = np.array(found).T
    return [[
        name, title, loss.mean(), n_rules.mean(), price.mean(), price.max(), gap.mean(),
        n_errors, float(np.median(seconds)), float(np.median(of_rule)),
    ]]  # fmt: skip


HEADER = ["set", "problem", "mixture", "rules", "price", "largest", "gap", "errors",
          "s, mixture", "s, rule"]  # fmt: skip


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=FAIRNESS + SETS)
    parser.add_argument("--splits", type=int, default=5)
    args = parser.parse_args()
    for name in args.sets:
        splits = load_splits(name, args.data, args.splits)
        if not splits:
            continue
        problems = TWO_CLASSES if splits[0].n_classes == 2 else MORE_CLASSES
        rows = []
        for title, (metric, constraint) in problems.items():
            rows += row_of(name, title, splits, metric, constraint)
        k, n = splits[0].n_classes, len(splits[0].train.y)
        print(f"{name}: {k} classes, {n} examples, {args.splits} splits\n")
        print_table(HEADER, rows)


if __name__ == "__main__":
    main()

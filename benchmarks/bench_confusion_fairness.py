"""Metrics under constraints on seven sets (the paper's Figures 8 and 9).

G-mean under equal opportunity, equalized odds and demographic parity at 0.05 on four sets
with groups, and H-mean under coverage within 0.01 on four multiclass sets. Means ±
standard deviations over the splits, of expected confusion matrices: the loss and the
disparity on the test part, and the disparity on the training part. That is the largest
difference between a group's rate and that of all, or the largest deviation of the share
of the predictions of a class from the share of the class, so it should be at most 0.05 or
0.01.
"met" counts training parts on which it is, to 1e-9. Seconds are medians of the fits, the
class probabilities being given (but for what fits classifiers of its own).

ours: ComplexMetricClassifier as it is; with a slack of 0 ("exact"), as ThresholdOptimizer
    without a tolerance has; with the paper's solvers, SplitFW, ConGDA and ConEllipsoid,
    for at most --calls (the ellipsoid a fifth of them). With more than two classes also
    with the labels counted instead of the probabilities.
fairlearn: ThresholdOptimizer for balanced accuracy, without a tolerance, and with one of
    0.05 between groups (which it has not for equalized odds); ExponentiatedGradient with
    costs that balance the classes, which does not see the groups when it predicts.
paper's code: SplitFW under coverage, --split-calls. Its code for the groups is not whole.

FAIRLEARN_PYTHON names an interpreter that has fairlearn (default: the one that runs
this). CONSTRAINED_CLASSIFICATION is the folder of the paper's code, which is skipped
without it.
"""

import os

from _common import make_parser, np, print_table
from _confusion import (
    COVERAGE_SLACK,
    FAIRNESS,
    MULTICLASS,
    SLACKS,
    Peer,
    balanced,
    coverage,
    fairness_constraint,
    fit_ours,
    load_splits,
    loss,
    mean_std,
    median,
    saved_splits,
    violation,
    zero_one,
)

SOLVERS = ["frank_wolfe", "gda", "ellipsoid"]
# Each of its calls solves a program of its own.
ELLIPSOID_SHARE = 0.2
MET = 1e-9
COVERAGE = "coverage"
# Measured before, elsewhere: loss and disparity under equal opportunity. The paper's
# SplitFW has 2000 calls.
BEFORE = {
    "compas": {"paper's SplitFW": (0.318, 0.048), "TFCO": (0.335, 0.052)},
    "lawschool": {"paper's SplitFW": (0.261, 0.052), "TFCO": (0.230, 0.052)},
    "adult": {"paper's SplitFW": (0.180, 0.022), "TFCO": (0.185, 0.052)},
}


def our_runs(splits, metric, make_constraint, by_group, args):
    """The runs of each of our variants, by name."""
    variants = {"ours": {}}
    if by_group:
        variants["ours, exact"] = {"slack": 0.0}
    for solver in args.solvers:
        share = ELLIPSOID_SHARE if solver == "ellipsoid" else 1.0
        limits = {"max_iter": int(share * args.calls)}
        variants[f"ours, {solver}"] = {"solver": solver, **limits}
    found = {}
    for name, params in variants.items():
        constraint = make_constraint(params.pop("slack", None))
        params |= {"by_group": by_group, "tol": args.tol}
        found[name] = [fit_ours(s, metric, constraint, **params)[0] for s in splits]
    return found


def fairness_peers(path, name, peer):
    """The runs of fairlearn, by name."""
    slack = SLACKS[name]
    options = {"by_group": 1}
    found = {
        "fairlearn: thresholds": peer.runs(
            path, "threshold_optimizer", name, slack=0, **options
        )
    }
    if name != "equalized_odds":
        found["fairlearn: thresholds, tolerance"] = peer.runs(
            path, "threshold_optimizer", name, slack=slack, **options
        )
    found["fairlearn: reduction"] = peer.runs(
        path, "exponentiated_gradient", name, slack=slack, **options
    )
    return found


def print_results(title, runs, metric, constraint, slack, before=None):
    """A row for each method."""
    rows = []
    our_seconds = median([run.seconds for run in runs["ours"]])
    for name, of_splits in runs.items():
        if not of_splits:
            continue
        disparity = {
            half: [violation(constraint, getattr(run, half)) + slack for run in of_splits]
            for half in ("train", "test")
        }
        seconds = median([run.seconds for run in of_splits])
        rows.append([
            name,
            mean_std([loss(metric, run.test) for run in of_splits]),
            mean_std(disparity["test"]),
            mean_std(disparity["train"]),
            f"{np.sum(np.array(disparity['train']) <= slack + MET)} of {len(of_splits)}",
            median([run.calls for run in of_splits]),
            seconds,
            seconds / our_seconds,
        ])  # fmt: skip
    for name, (value, disparity) in (before or {}).items():
        rows.append([f"before: {name}", value, disparity, *["-"] * 5])
    print(f"{title}\n")
    header = ["", "test loss", "test disparity", "training disparity", "met", "calls",
              "s", "times our time"]  # fmt: skip
    print_table(header, rows)


def run_fairness(data, args, peer):
    """Tables of the constraints on groups for one data set."""
    splits = load_splits(data, args.data, args.splits)
    if not splits:
        return
    with saved_splits(splits) as path:
        for name in args.constraints:
            if name == COVERAGE:
                continue

            def make(slack, name=name):
                return fairness_constraint(name, slack)

            # The first fit of a process pays for imports.
            fit_ours(splits[0], "g_mean", make(None), by_group=True)
            runs = our_runs(splits, "g_mean", make, True, args)
            runs |= fairness_peers(path, name, peer)
            runs["plug-in, balanced"] = [balanced(s, by_group=True) for s in splits]
            before = BEFORE.get(data) if name == "equal_opportunity" else None
            title = f"{data}: G-mean under {name} {SLACKS[name]:g}"
            print_results(title, runs, "g_mean", make(None), SLACKS[name], before)


def run_coverage(data, args, peer):
    """The table of H-mean under coverage for one data set."""
    splits = load_splits(data, args.data, args.splits)
    if not splits:
        return
    fit_ours(splits[0], "h_mean", coverage())
    runs = our_runs(splits, "h_mean", lambda slack: coverage(), False, args)
    runs["ours, labels"] = [
        fit_ours(s, "h_mean", coverage(), tol=args.tol, confusion="labels")[0]
        for s in splits
    ]
    runs["ours, no constraint"] = [fit_ours(s, "h_mean")[0] for s in splits]
    if peer is not None:
        with saved_splits(splits) as path:
            runs["paper's code: split_fw"] = peer.runs(
                path, "paper_split_fw", COVERAGE, calls=args.split_calls
            )
    runs["plug-in, 0-1"] = [zero_one(split) for split in splits]
    runs["plug-in, balanced"] = [balanced(split) for split in splits]
    title = f"{data}: H-mean under coverage {COVERAGE_SLACK:g}"
    print_results(title, runs, "h_mean", coverage(), COVERAGE_SLACK)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=FAIRNESS + MULTICLASS)
    parser.add_argument("--constraints", nargs="+", default=[*SLACKS, COVERAGE])
    parser.add_argument("--solvers", nargs="*", default=SOLVERS)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--calls", type=int, default=5000, help="of the paper's solvers")
    parser.add_argument("--split-calls", type=int, default=1000)
    args = parser.parse_args()
    fairlearn, paper = Peer("fairlearn"), None
    if os.environ.get("CONSTRAINED_CLASSIFICATION"):
        paper = Peer("paper")
    else:
        print("[skipped the paper's code: set CONSTRAINED_CLASSIFICATION]\n")
    for data in args.sets:
        if data in FAIRNESS:
            run_fairness(data, args, fairlearn)
        elif COVERAGE in args.constraints:
            run_coverage(data, args, paper)


if __name__ == "__main__":
    main()

"""Constraints on groups, and whether they hold on examples that were not trained on.

Balanced error under equal opportunity, the recalls of two groups within a slack of each
other, on random splits of four sets. The two groups' difference is the largest difference
and the mean over pairs at once, so that all packages mean the same; OxonFair is asked for
its `max_diff`. All are given the same class probabilities of one logistic regression, of
the training part, and all results are expectations over the draws of those that draw.

First table: for a slack, means over the splits of the error and the disparity on the test
part, the share of the splits in which the slack holds in training and on the test part,
and median process seconds (of fairlearn by the clock). "probabilities" is
`confusion="probabilities"`, which meets the slack by these and not by the labels.
"confidence" is `constraint_confidence=0.95` by the uniform bound; "too small" is the
share of the splits in which it warns that a group is too small for the slack, and the
difference is brought to 0 in training.

Second table: the error on the test part at equal mean disparity there, between the points
of each method's curve over --slacks; "-" where its curve does not go.

Third: process seconds of a fit for 2, 3, 5 and 10 groups, which a feature of adult's (or
of other sets) divides by its order, beside OxonFair; where one takes longer than --limit
it is left.

FAIRLEARN_PYTHON, OXONFAIR_PYTHON and ERROR_PARITY_PYTHON name interpreters that have
these packages.
"""

import subprocess
import warnings
from time import process_time

from _common import HERE, data_file, make_parser, np, placed, print_table
from _confusion import (
    FAIRNESS,
    Given,
    Part,
    Peer,
    Run,
    Split,
    _split,
    expected_confusion,
    loss,
    median,
    saved_splits,
    violation,
)

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import EqualOpportunity

SLACKS = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2]
OURS = {
    "ours": {"confusion": "labels"},
    "ours, probabilities": {"confusion": "probabilities"},
    "ours, confidence": {
        "constraint_confidence": 0.95,
        "constraint_calibration": "uniform",
    },
}
PEERS = {
    "fairlearn": ("fairlearn", "threshold_optimizer"),
    "OxonFair": ("oxonfair", "oxonfair"),
    "error-parity": ("error_parity", "error_parity"),
}
GROUPS = [2, 3, 5, 10]
MET = 1e-9
LEVELS = [0.02, 0.04, 0.06, 0.08, 0.1, 0.15]


def parity(slack):
    return EqualOpportunity(slack=slack, reference="groups")


def load_small(name, data_home, n_splits):
    """As `load_splits`, without the features."""
    path = data_file(data_home, name, f"{name}.npz")
    if path is None:
        return []
    with np.load(path) as data:
        X, y, group = data["X"].astype(np.float64), data["y"], data["group"]
    found = []
    for seed in range(n_splits):
        split = _split(name, X, y, group, seed)
        parts = [part._replace(X=part.X[:, :0]) for part in (split.train, split.test)]
        found.append(split._replace(train=parts[0], test=parts[1]))
    return found


def fit(part, constraint, params):
    """The fitted classifier, process seconds and whether groups were too small."""
    model = placed(ComplexMetricClassifier)(
        Given(2), "balanced", constraint, cv="prefit", **params
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = process_time()
        model.fit(part.P, part.y, sensitive_features=part.group)
        seconds = process_time() - start
    return model, seconds, any("too small" in str(w.message) for w in caught)


def our_run(split, slack, params):
    """A `Run`, and whether groups were too small."""
    model, seconds, small = fit(split.train, parity(slack), params)
    tensors = [
        expected_confusion(
            part, model.predict_proba(part.P, sensitive_features=part.group), True
        )
        for part in (split.train, split.test)
    ]
    return Run(*tensors, seconds), small


def disparity(C):
    return violation(parity(0.0), C)


def print_at_slack(data, slack, runs, small):
    rows = []
    for name, of_splits in runs.items():
        if not of_splits:
            continue
        trained, new = (
            np.array([disparity(getattr(run, half)) for run in of_splits])
            for half in ("train", "test")
        )
        rows.append([
            name,
            np.mean([loss("balanced", run.test) for run in of_splits]),
            new.mean(),
            (trained <= slack + MET).mean(),
            (new <= slack + MET).mean(),
            small.get(name, "-"),
            median([run.seconds for run in of_splits]),
        ])  # fmt: skip
    print(f"{data}: balanced error under equal opportunity {slack:g}\n")
    header = ["", "test error", "test disparity", "holds in training",
              "holds on the test part", "too small", "s"]  # fmt: skip
    print_table(header, rows)


def print_curves(data, curves):
    """Errors at equal disparity on the test part."""
    rows = []
    for name, points in curves.items():
        if not points:
            continue
        x, error = np.array(sorted(points)).T
        at = np.interp(LEVELS, x, error)
        inside = (np.array(LEVELS) >= x[0]) & (np.array(LEVELS) <= x[-1])
        rows.append(
            [name, *(f"{v:.4f}" if ok else "-" for v, ok in zip(at, inside, strict=True))]
        )
    print(f"{data}: test error at equal test disparity\n")
    print_table(["", *LEVELS], rows)


def run_set(data, args, peers):
    splits = load_small(data, args.data, args.splits)
    if not splits:
        return
    curves = {name: [] for name in (*OURS, *PEERS)}
    with saved_splits(splits) as path:
        for slack in args.slacks:
            runs, small = {}, {}
            for name, params in OURS.items():
                found = [our_run(split, slack, params) for split in splits]
                runs[name] = [run for run, _ in found]
                if "constraint_confidence" in params:
                    small[name] = np.mean([is_small for _, is_small in found])
            for name, (package, method) in PEERS.items():
                options = {"slack": slack, "by_group": 1}
                runs[name] = peers[package].runs(
                    path, method, "equal_opportunity", **options
                )
            for name, of_splits in runs.items():
                if of_splits:
                    curves[name].append((
                        np.mean([disparity(run.test) for run in of_splits]),
                        np.mean([loss("balanced", run.test) for run in of_splits]),
                    ))  # fmt: skip
            if slack in args.shown:
                print_at_slack(data, slack, runs, small)
    print_curves(data, curves)


def run_groups(args, peers):
    """Seconds for more groups."""
    path = data_file(args.data, "adult", "adult.npz")
    if path is None:
        return
    with np.load(path) as data:
        X, y, group = data["X"].astype(np.float64), data["y"], data["group"]
    split = _split("adult", X, y, group, 0)
    order = np.random.default_rng(0).permutation(len(split.train.y))[: args.rows]
    rows = []
    given_up = False
    for m in args.groups:
        P, y = split.train.P[order], split.train.y[order]
        # By how probable the label is, so that rates differ.
        ranks = np.argsort(
            np.argsort(P[:, 1] + 0.3 * np.random.default_rng(1).random(len(y)))
        )
        part = Part(P[:, :0], y, ranks * m // len(y), P)
        seconds, with_bounds = (
            median([fit(part, parity(0.05), OURS[name])[1] for _ in range(5)])
            for name in ("ours", "ours, confidence")
        )
        of_peer = "-"
        if peers["oxonfair"].python is not None and not given_up:
            with saved_splits([Split("adult", 0, part, part)]) as saved:
                script = HERE / "peers" / "confusion_peer.py"
                command = [peers["oxonfair"].python, script, saved, "oxonfair"]
                command += ["equal_opportunity", "--by-group", "1"]
                try:
                    subprocess.run(
                        list(map(str, command)), timeout=args.limit, check=True,
                        capture_output=True,
                    )  # fmt: skip
                    of_peer = (
                        peers["oxonfair"]
                        .runs(saved, "oxonfair", "equal_opportunity", by_group=1)[0]
                        .seconds
                    )
                except (
                    subprocess.TimeoutExpired,
                    subprocess.CalledProcessError,
                ) as error:
                    given_up = True
                    of_peer = f"{type(error).__name__}, {args.limit} s"
        rows.append([m, seconds, with_bounds, of_peer])
    print(f"adult, {args.rows} rows: process seconds of a fit by the number of groups\n")
    print_table(["groups", "ours", "ours, confidence", "OxonFair"], rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=FAIRNESS)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--slacks", nargs="+", type=float, default=SLACKS)
    parser.add_argument("--shown", nargs="+", type=float, default=[0.05, 0.1, 0.2])
    parser.add_argument("--groups", nargs="*", type=int, default=GROUPS)
    parser.add_argument("--rows", type=int, default=10_000, help="of the third table")
    parser.add_argument("--limit", type=float, default=100.0, help="seconds")
    args = parser.parse_args()
    peers = {package: Peer(package) for package, _ in PEERS.values()}
    if args.groups:
        run_groups(args, peers)
    for data in args.sets:
        run_set(data, args, peers)


if __name__ == "__main__":
    main()

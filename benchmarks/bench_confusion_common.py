"""What constraints on groups do to new examples, beside no constraint.

Random splits of six tables with groups: four of the data sets, and two that are drawn, of
three groups of the same law ("alike"), and of which one has more positives ("apart").
Half of at most --rows rows are for training. Logistic regression and the default folds,
metric="balanced"; equal opportunity and demographic parity within 0.05.

For "none" (no constraint), "default" and "margin" (margin="auto"): means over the splits
of the disparity on the other half, of its difference from that of "none" with its
standard error, and of the balanced error there; how many splits exceed the slack there,
and on how many the rule is one for all groups, because it meets the constraint.

Writes results/common_rules.json; sets that are left out stay as they are there.
"""

import json
import warnings

from _common import HERE, data_file, make_parser, np, placed, print_table
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import (
    DemographicParity,
    EqualOpportunity,
    confusion_tensor,
)

RESULTS = HERE / "results" / "common_rules.json"
SETS = ["compas", "crimes", "lawschool", "adult", "alike", "apart"]
# Log odds that the third group has more in "apart".
APART = 0.35
SLACK = 0.05
CONSTRAINTS = {
    "equal opportunity": EqualOpportunity(slack=SLACK),
    "demographic parity": DemographicParity(slack=SLACK),
}
RULES = {"none": None, "default": {}, "margin": {"margin": "auto"}}
MAX_ITER = 1000  # of logistic regression


def drawn(name, n, rng):
    """Three groups, one of a tenth of the rows."""
    group = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    X = rng.standard_normal((n, 6))
    scores = X[:, :3] @ [1.0, 0.8, 0.5] + APART * (name == "apart") * (group == 2)
    y = (scores + rng.logistic(size=n) > 0.8).astype(int)
    X[:, 5] += group
    return X, y, group


def load(name, seed, args):
    """(X, y, group) of at most --rows rows, or None."""
    rng = np.random.default_rng(args.seed + seed)
    if name in ("alike", "apart"):
        return drawn(name, args.rows, rng)
    path = data_file(args.data, name, f"{name}.npz")
    if path is None:
        return None
    with np.load(path) as data:
        X, y, group = data["X"].astype(np.float64), data["y"], data["group"]
    kept = rng.permutation(len(y))[: args.rows]
    return X[kept], y[kept], group[kept]


def measure(data, constraint, params, seed):
    """Disparity and balanced error on the test half, and whether one rule is for all."""
    halves = train_test_split(*data, test_size=0.5, random_state=seed)
    train, test = halves[::2], halves[1::2]
    model = placed(ComplexMetricClassifier)(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ITER)),
        "balanced",
        () if params is None else constraint,
        solver_options={"min_group_size": None},
        **(params or {}),
    )
    groups = {} if params is None else {"sensitive_features": train[2]}
    model.fit(*train[:2], **groups)
    groups = {} if params is None else {"sensitive_features": test[2]}
    P = model.predict_proba(test[0], **groups)
    C, cells = confusion_tensor(test[1], P, labels=[0, 1], sensitive_features=test[2])
    total = C.sum(axis=0)
    error = 1.0 - np.mean(total.diagonal() / total.sum(axis=1))
    found = constraint.disparity(C, cells), error, float(model.common_rule_)
    return [round(value, 6) for value in found]


def run(name, args):
    """{constraint: {rule: list of (disparity, error, is common) by split}}."""
    found = {c: {rule: [] for rule in RULES} for c in CONSTRAINTS}
    for seed in range(args.splits):
        data = load(name, seed, args)
        if data is None:
            return None
        for c, constraint in CONSTRAINTS.items():
            for rule, params in RULES.items():
                found[c][rule].append(measure(data, constraint, params, seed))
    return found


def print_results(results):
    rows = []
    for name, of_set in results.items():
        for c, of_rules in of_set.items():
            base = np.array(of_rules["none"])[:, 0]
            for rule, found in of_rules.items():
                disparity, error, common = np.transpose(found)
                more = disparity - base
                se = more.std(ddof=1) / np.sqrt(len(more))
                rows.append([
                    f"{name}, {c}", rule, f"{disparity.mean():.3f}",
                    "-" if rule == "none" else f"{more.mean():+.3f} ± {se:.3f}",
                    f"{error.mean():.4f}",
                    f"{int((disparity > SLACK).sum())} of {len(disparity)}",
                    "-" if rule == "none" else int(common.sum()),
                ])  # fmt: skip
    header = ["set, constraint at 0.05", "rule", "test disparity", "more than none",
              "test error", "over the slack", "one rule for all"]  # fmt: skip
    print_table(header, rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=70_000)
    args = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in args.sets:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run(name, args)
        if found is not None:
            results[name] = found
            RESULTS.write_text(json.dumps(results) + "\n")
    print_results({name: results[name] for name in SETS if name in results})


if __name__ == "__main__":
    main()

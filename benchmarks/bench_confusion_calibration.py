"""Constraints that are to hold for new examples at 95 % confidence, and their price.

The distributions are known, so that it is known whether a constraint holds: each of the
four sets with groups is a population of its own, from which as many examples as 70 % of
it are drawn with replacement. The probability model is one logistic regression of the
population, a given function, so that what each method chooses is the rule alone.
"held out" is `constraint_calibration=0.5`, "uniform" is the bound for all rules. With 0.8
of the examples held out, tests are sharper and rules are chosen by fewer examples; the
model is given, so that it loses none. "probabilities" is `confusion="probabilities"`.

First table: equal opportunity, recalls of two groups within a slack, the balanced error.
"certified" is the share of the draws in which a rule is certified ("uniform": in which no
group is too small). "holds" is the share of the draws in which the slack holds in the
population, of those in which a rule was returned. The price is the error in the
population minus that without confidence, both means over the draws in which this method
returned a rule; "of uniform" is its share of the price of "uniform" in the same draws.

Second: the same for a distribution with a formula, two groups with scores u and 0.6 u.

Third, what the two parts of the price are, without any test: how much better than by a
part alone the rule is that is chosen by all examples, without confidence ("lost"), and
the margin that a rate needs: of the bound for all rules, and of a normal test on the
examples held out.

Fourth: the highest recall with a precision of at least 0.5, for 530 positives among
28,000 examples. FAIRLEARN_PYTHON, OXONFAIR_PYTHON and ERROR_PARITY_PYTHON name
interpreters that have these packages.
"""

import warnings
from time import process_time

from _common import data_file, make_parser, np, placed, print_table
from _confusion import (
    FAIRNESS,
    Given,
    Part,
    Peer,
    Split,
    expected_confusion,
    loss,
    saved_splits,
    violation,
)
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.confusion.tightening import uniform_deviation
from sklearn_structsvm.metrics import EqualOpportunity, Precision
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

SLACKS = [0.02, 0.05, 0.1, 0.2]
CONFIDENCE = 0.95
OURS = {
    "no confidence": {},
    "uniform": {"constraint_confidence": CONFIDENCE, "constraint_calibration": "uniform"},
    "held out": {"constraint_confidence": CONFIDENCE, "constraint_calibration": 0.5},
    "held out 0.8": {"constraint_confidence": CONFIDENCE, "constraint_calibration": 0.8},
    "0.8, probabilities": {
        "constraint_confidence": CONFIDENCE,
        "constraint_calibration": 0.8,
        "confusion": "probabilities",
    },
}
PEERS = {
    "fairlearn": ("fairlearn", "threshold_optimizer"),
    "OxonFair": ("oxonfair", "oxonfair"),
    "error-parity": ("error_parity", "error_parity"),
}
SHARE = 0.7
MET = 1e-9


def parity(slack):
    return EqualOpportunity(slack=slack, reference="groups")


def population_of(name, data_home):
    """All rows of a set as a `Part`, or None."""
    path = data_file(data_home, name, f"{name}.npz")
    if path is None:
        return None
    with np.load(path) as data:
        X, y, group = data["X"].astype(np.float64), data["y"], data["group"]
    X = StandardScaler().fit_transform(X)
    P = LogisticRegression(max_iter=10_000).fit(X, y).predict_proba(X)
    return Part(X[:, :0], y, group, P)


def drawn(population, seed, n):
    rows = np.random.default_rng(seed).integers(len(population.y), size=n)
    return Part(*(values[rows] for values in population))


def with_formula(rng, n):
    """Of two groups: probabilities u and 0.6 u, of u uniform."""
    group = (rng.random(n) < 0.4).astype(int)
    p = rng.random(n) * np.where(group, 0.6, 1.0)
    y = (rng.random(n) < p).astype(int)
    return Part(p[:, None][:, :0], y, group, np.column_stack([1 - p, p]))


def in_population(model, with_groups=True):
    """Confusion tensor of `with_formula`, by the midpoint rule."""
    u, shares = (np.arange(4000) + 0.5) / 4000, (0.6, 0.4)
    C = np.zeros((2, 2, 2))
    for group, (scale, share) in enumerate(zip((1.0, 0.6), shares, strict=True)):
        p = scale * u
        Q = np.column_stack([1 - p, p])
        chosen = model.predict_proba(Q, sensitive_features=np.full(len(u), group))
        C[group] = share * Q.T @ chosen / len(u)
    return C


def rare(rng, n, n_positive):
    """Scores of a rare class: normal, three apart."""
    y = (rng.random(n) < n_positive / n).astype(int)
    score = rng.normal(size=n) + 3.0 * y
    return probability(score, n_positive / n), y


def probability(score, share):
    odds = np.exp(3.0 * score - 4.5) * share / (1 - share)
    p = odds / (1 + odds)
    return np.column_stack([1 - p, p])


def fit(P, y, group, constraint, metric, params):
    """The fitted classifier or None, whether a group was too small, process seconds."""
    model = placed(ComplexMetricClassifier)(
        Given(2), metric, constraint, cv="prefit", **params
    )
    start = process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(P, y, sensitive_features=group)
        except InfeasibleConstraintError:
            model = None
    is_small = any("too small" in str(w.message) for w in caught)
    return model, is_small, process_time() - start


def run(draws, tensor_of, constraint, value):
    """By method: for each draw (value or nan, violation, is certified, seconds)."""
    found = {}
    for name, params in OURS.items():
        rows = []
        for part in draws:
            model, is_small, seconds = fit(
                part.P, part.y, part.group, constraint, "balanced", params
            )
            if model is None:
                rows.append((np.nan, np.nan, False, seconds))
                continue
            C = tensor_of(model)
            rows.append((value(C), violation(constraint, C), not is_small, seconds))
        found[name] = np.array(rows, dtype=float)
    return found


def rows_of(title, slack, found):
    plain, uniform = found["no confidence"][:, 0], found["uniform"][:, 0]
    rows = []
    for name, values in found.items():
        returned = ~np.isnan(values[:, 0])
        certified = values[:, 2].mean() if name in OURS and values[:, 0].size else "-"
        row = [title, slack, name, "-" if name == "no confidence" else certified]
        if returned.any():
            holds = (values[returned, 1] <= MET).mean()
            prices = [v[returned] - plain[returned] for v in (values[:, 0], uniform)]
            price, of_uniform = (float(np.nanmean(p)) for p in prices)
            row += [holds, values[returned, 0].mean(), price, price / of_uniform]
        else:
            row += [np.nan] * 4
        rows.append([*row, float(np.median(values[:, 3]))])
    return rows


HEADER = ["", "slack", "", "certified", "holds", "error", "price", "of uniform", "s"]


def run_sets(args, peers):
    for name in args.sets:
        population = population_of(name, args.data)
        if population is None:
            continue
        n = round(SHARE * len(population.y))
        draws = [drawn(population, seed, n) for seed in range(args.draws)]

        def tensor_of(model, part=population):
            chosen = model.predict_proba(part.P, sensitive_features=part.group)
            return expected_confusion(part, chosen, True)

        splits = [Split(name, i, part, population) for i, part in enumerate(draws)]
        for slack in args.slacks:
            found = run(draws, tensor_of, parity(slack), lambda C: loss("balanced", C))
            for peer, (package, method) in PEERS.items():
                if peers[package].python is None:
                    continue
                with saved_splits(splits[: args.peer_draws]) as path:
                    of_peer = peers[package].runs(
                        path, method, "equal_opportunity", slack=slack, by_group=1
                    )
                values = np.full((len(draws), 4), np.nan)
                values[: len(of_peer)] = [
                    (loss("balanced", r.test), violation(parity(slack), r.test), 1.0,
                     r.seconds)
                    for r in of_peer
                ]  # fmt: skip
                found[peer] = values
            print(f"{name}: {args.draws} draws of {n}\n")
            print_table(HEADER, rows_of(name, slack, found))


def run_parts(args):
    """What is lost by choosing with a part, and the margins of tests on the other one."""
    for name in args.sets:
        population = population_of(name, args.data)
        if population is None:
            continue
        n = round(SHARE * len(population.y))
        rows = []
        for slack in args.slacks:
            found = [
                parts_of(population, drawn(population, seed, n), slack)
                for seed in range(args.part_draws)
            ]
            rows.append([name, slack, *np.mean(found, axis=0)])
        print(f"{name}, parts of the price: {args.part_draws} draws of {n}\n")
        print_table(["", "slack", "lost by half", "lost by 0.8", "probabilities",
                     "margin uniform", "half", "0.8"], rows)  # fmt: skip


def parts_of(population, part, slack):
    """(lost by half, by 0.8, with probabilities, margins) of one draw."""
    errors, n = [], len(part.y)
    for share, counted in ((1.0, "auto"), (0.5, "auto"), (0.2, "auto"),
                           (0.2, "probabilities")):  # fmt: skip
        some = Part(*(values[: round(share * n)] for values in part))
        model, _, _ = fit(
            some.P, some.y, some.group, parity(slack), "balanced", {"confusion": counted}
        )
        chosen = model.predict_proba(population.P, sensitive_features=population.group)
        C = expected_confusion(population, chosen, True)
        errors.append(loss("balanced", C))
        if share == 1.0:
            recalls = C[:, 1, 1] / C[:, 1].sum(axis=1)
    n_of = np.array([((part.group == g) & (part.y == 1)).sum() for g in (0, 1)])
    uniform = uniform_deviation(n_of, (1.0 - CONFIDENCE) / 2.0).sum()
    test = norm.ppf(CONFIDENCE) * np.sqrt((recalls * (1.0 - recalls) / n_of).sum())
    lost = np.array(errors[1:]) - errors[0]
    return [*lost, uniform, test / np.sqrt(0.5), test / np.sqrt(0.8)]


def run_formula(args):
    rng = np.random.default_rng(0)
    draws = [with_formula(rng, args.rows) for _ in range(args.formula_draws)]
    for slack in args.slacks:
        found = run(draws, in_population, parity(slack), lambda C: loss("balanced", C))
        print(f"a formula: {args.formula_draws} draws of {args.rows}\n")
        print_table(HEADER, rows_of("u, 0.6 u", slack, found))


def run_precision(args):
    n, n_positive = 28_000, 530
    rng = np.random.default_rng(0)
    # Precision and recall of the population, from a large sample of scores.
    grid, share = np.linspace(-6.0, 9.0, 30_001), n_positive / n
    density = [np.exp(-0.5 * (grid - m) ** 2) for m in (0.0, 3.0)]
    mass = [d / d.sum() for d in density]
    Q = probability(grid, share)
    found = {name: [] for name in OURS}
    for _ in range(args.formula_draws):
        P, y = rare(rng, n, n_positive)
        for name, params in OURS.items():
            model, _, seconds = fit(P, y, None, Precision(at_least=0.5), "recall", params)
            if model is None:
                found[name].append((np.nan, np.nan, seconds))
                continue
            chosen = model.predict_proba(Q)[:, 1]
            hits, false = share * mass[1] @ chosen, (1 - share) * mass[0] @ chosen
            found[name].append((mass[1] @ chosen, hits / (hits + false), seconds))
    rows = []
    for name, values in found.items():
        recall, precision, seconds = np.array(values).T
        returned = ~np.isnan(recall)
        rows.append([
            name, returned.mean(),
            (precision[returned] >= 0.5 - MET).mean() if returned.any() else "-",
            recall[returned].mean() if returned.any() else "-",
            float(np.median(seconds)),
        ])  # fmt: skip
    print(f"recall at a precision of 0.5: {args.formula_draws} draws of {n}\n")
    print_table(["", "returned", "holds", "recall", "s"], rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=FAIRNESS)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--formula-draws", type=int, default=200, help="0: only sets")
    parser.add_argument("--peer-draws", type=int, default=100)
    parser.add_argument("--part-draws", type=int, default=40)
    parser.add_argument("--methods", nargs="+", default=list(OURS), choices=list(OURS))
    parser.add_argument("--slacks", nargs="+", type=float, default=SLACKS)
    parser.add_argument("--rows", type=int, default=20_000, help="of the formula")
    args = parser.parse_args()
    for name in set(OURS) - {"no confidence", "uniform", *args.methods}:
        del OURS[name]
    peers = {package: Peer(package) for package, _ in PEERS.values()}
    if args.formula_draws:
        run_precision(args)
        run_formula(args)
    run_sets(args, peers)
    run_parts(args)


if __name__ == "__main__":
    main()

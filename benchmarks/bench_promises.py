"""How often promises on new examples are given, and how often one that is given is false.

The populations are known, so that whether a promise holds is computed and not estimated.
A population has as many values of x as a grid, with known probabilities of groups and
labels, and what a rule does is its answer to each of them. Its probabilities are a given
function, right in group "a" and too high in group "b".

Constraints, with `constraint_confidence`: from each sample a rule is fitted, which is
certified or refused. A promise is false if the rule that was returned violates the
constraint on the population; the share of such draws, among all, is promised to be at
most 1 - confidence. Sizes are numbers of those examples that the constraint counts and
that are few: of group "b", or in all where there are no groups. Labels are fixed for
rates among labels, and drawn for the others ("rows"). Of size 0 there are examples
without the label, or with weight zero.

Sets, with `confidence_level`: sizes are those of the examples that calibrate, of one
class or group with `condition`. With each sample goes one new example. How often it is
missed is binomial, with a probability of at most 1 - level; the mean coverage on the
population is printed beside it. Folds (``cv=5``) are fits of naive Bayes to a normal
distribution, whose population is a large sample, and prove 1 - 2 (1 - level).

A number is in the band if no more promises are false than a binomial variable with the
promised probability has at most, but once in a thousand times. Sizes that are all refused
show by which error.

``--only NAME ...`` measures these kinds; others keep their results, which are written to
``results/promises.json``. More ``--draws`` than are known are added to them.
"""

import json
import warnings
from collections import Counter

import _confusion
from _common import HERE, make_parser, np, placed, print_table
from scipy.special import softmax
from scipy.stats import binom
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB

from sklearn_structsvm import ComplexMetricClassifier, ConformalClassifier
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    Precision,
    PredictiveParity,
    Recall,
    SelectionRate,
    Specificity,
)
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError

SIZES = [0, 1, 5, 20, 100, 1000]
CONFIDENCE, LEVEL = 0.95, 0.9
# Of being outside the band by chance.
OUTSIDE = 1e-3
RESULTS = HERE / "results" / "promises.json"
# Values of x, and by how much the probabilities of group "b" are too high.
GRID, SCALES = 400, (1.0, 0.6)
# Numbers of examples of group "a", and of group "b" where it lacks a label.
LARGE, FEW = 1000, 40
MET = 1e-9
# Kinds that are measured with the bound for all rules, too.
BOUNDED = [
    "Recall", "EqualOpportunity", "EqualizedOdds", "DemographicParity", "SelectionRate",
]  # fmt: skip

# What an error says: a word for it.
REASONS = {
    "there are no held-out": "none held out",
    "cannot be promised": "no examples",
    "There are no held-out": "none held out",
    "No rule is certified": "too few held out",
    "leaves none to": "too few held out",
    "looser": "bound too wide",
    "are too small": "bound too wide",
    "zero for every sample": "no examples",
    "should be a 1d array": "no examples",
    "did not occur in fit": "unknown group",
    "needs at least as many": "too few to calibrate",
    "Calibrat": "too few to calibrate",
    "calibrat": "too few to calibrate",
}


class Given(_confusion.Given):
    """Probabilities that are the features, with scores and predictions."""

    def __init__(self, n_classes=2):
        super().__init__(n_classes)

    def decision_function(self, X):
        """Log-probabilities."""
        return np.log(np.maximum(X, 1e-12))

    def predict(self, X):
        """The most probable class."""
        return self.classes_[np.argmax(X, axis=1)]


class GivenLabels(BaseEstimator):
    """The same of several labels."""

    def __init__(self, n_labels=4):
        self.n_labels = n_labels
        self.classes_ = np.arange(n_labels)

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        """Nothing to do."""
        return self

    def predict_proba(self, X):
        """X."""
        return X

    def predict(self, X):
        """Labels of probabilities above one half."""
        return (X > 0.5).astype(int)


class Population:
    """Two groups and labels over a grid of x, all of equal probability in a group.

    Attributes
    ----------
    P : ndarray of shape (n_values, k)
        What the model says.
    truth : ndarray of shape (n_groups, n_values, k)
        The probabilities of the labels.
    """

    def __init__(self, P, truth):
        self.P, self.truth = P, truth

    def of_labels(self, rng, numbers):
        """Rows (values, labels, groups) with so many of each group and label."""
        found = []
        for (group, label), n in np.ndenumerate(numbers):
            weights = self.truth[group, :, label]
            values = rng.choice(len(weights), size=n, p=weights / weights.sum())
            found.append((values, np.full(n, label), np.full(n, group)))
        return tuple(map(np.concatenate, zip(*found, strict=True)))

    def of_groups(self, rng, numbers):
        """Rows with so many of each group."""
        group = np.repeat(np.arange(len(numbers)), numbers)
        values = rng.integers(len(self.P), size=len(group))
        chances = self.truth[group, values].cumsum(axis=1)
        label = (rng.random((len(group), 1)) > chances).sum(axis=1)
        return values, np.minimum(label, self.P.shape[1] - 1), group

    def confusion(self, model, shares, baseline=None):
        """Confusion tensor of what `predict` says, by group and label of the baseline."""
        n_groups, n_values, k = self.truth.shape
        n_parts = 1 if baseline is None else k
        part = np.zeros(n_values, int) if baseline is None else baseline
        C = np.zeros((n_groups, n_parts, k, k))
        for group in range(n_groups):
            names = None
            if model.groups_ is not None:
                names = np.full(n_values, "ab"[group])
            said = model.predict(self.P, sensitive_features=names)
            for i in range(k):
                np.add.at(
                    C[group, :, i],
                    (part, said),
                    shares[group] * self.truth[group, :, i] / n_values,
                )
        return C


def two_classes():
    u = (np.arange(GRID) + 0.5) / GRID
    P = np.column_stack([1.0 - u, u])
    truth = np.array([np.column_stack([1.0 - s * u, s * u]) for s in SCALES])
    return Population(P, truth)


def several_classes(k=3):
    scores = np.random.default_rng(0).normal(scale=1.5, size=(GRID, k))
    tilted = 0.7 * scores + 0.5 * np.random.default_rng(1).normal(size=(GRID, k))
    return Population(softmax(scores, axis=1), softmax([scores, tilted], axis=2))


class Kind:
    """A constraint with the rule's metric and how its samples are drawn.

    Parameters
    ----------
    constraint : Constraint
    metric : str
    counts : {"label 0", "label 1", "label 2", "rows"}
        What sizes are numbers of.
    both : bool
        Whether the other labels have that size as well.
    groups : bool
        Whether there are groups; sizes are then those of group "b".
    population : Population
    params : dict
        Of the classifier.
    """

    def __init__(self, constraint, metric="zero_one", counts="label 1", groups=True,
                 population=None, both=False, **params):  # fmt: skip
        self.constraint, self.metric, self.counts = constraint, metric, counts
        self.both = both
        self.groups, self.params = groups, params
        self.population = two_classes() if population is None else population
        self.shares = (0.7, 0.3) if groups else (1.0, 0.0)

    def sample(self, rng, n):
        """Values, labels, groups and weights."""
        k = self.population.P.shape[1]
        few = 1 if self.groups else 0
        if self.counts == "rows":
            numbers = np.array([LARGE if self.groups else 0, 0])
            numbers[few] = max(n, 5)
            values, y, group = self.population.of_groups(rng, numbers)
            weights = np.ones(len(y))
            if not n:
                weights[group == few] = 0.0
            return values, y, group, weights
        numbers = np.zeros((2, k), int)
        if self.groups:
            numbers[0] = LARGE // k
        numbers[few] = max(n, FEW) if self.groups else LARGE // k
        numbers[few, int(self.counts[-1])] = n
        if self.both and n:
            numbers[few] = n
        values, y, group = self.population.of_labels(rng, numbers)
        return values, y, group, np.ones(len(y))

    def draw(self, rng, n):
        """Outcome: a reason of refusal, or whether the promise is false, as a bool."""
        values, y, group, weights = self.sample(rng, n)
        k = self.population.P.shape[1]
        model = placed(ComplexMetricClassifier)(
            Given(k), self.metric, self.constraint, cv="prefit", random_state=0,
            constraint_confidence=CONFIDENCE,
            solver_options={"min_group_size": None}, **self.params,
        )  # fmt: skip
        names = np.array(["a", "b"])[group] if self.groups else None
        with warnings.catch_warnings():
            # It is the rule of the least difference then, and nothing is promised.
            warnings.filterwarnings("error", ".*are too small")
            try:
                model.fit(
                    self.population.P[values], y, sample_weight=weights,
                    sensitive_features=names,
                )  # fmt: skip
            except (InfeasibleConstraintError, ValueError, UserWarning) as error:
                return reason(error)
        return self.violation(model) > MET

    def violation(self, model):
        baseline = getattr(self.constraint, "baseline", None)
        if baseline is not None:
            baseline = baseline.predict(self.population.P)
        C = self.population.confusion(model, self.shares, baseline)
        C = C if self.groups else C[:1]
        n_groups, n_parts, k, _ = C.shape
        C = C.reshape(-1, k, k)
        cells = Cells(
            C.sum(axis=2),
            np.arange(k),
            groups=np.repeat(np.arange(n_groups), n_parts) if self.groups else None,
            group_names=["a", "b"] if self.groups else None,
            baseline=None if baseline is None else np.tile(np.arange(k), n_groups),
        )
        return self.constraint.violation(C, cells)


def kinds():
    """By name."""
    uniform = {"constraint_calibration": "uniform", "confusion": "labels"}
    churn = Churn(Given(), 0.15)
    by_label = {
        "Recall(at_least=.8)": Kind(Recall(at_least=0.8), groups=False),
        "Recall(at_least=.5, group='b')": Kind(Recall(at_least=0.5, group="b")),
        "Recall of one of three classes": Kind(
            Recall(pos_label=2, at_least=0.8), groups=False, counts="label 2",
            population=several_classes(),
        ),
        "Specificity(at_least=.8)": Kind(
            Specificity(at_least=0.8), groups=False, counts="label 0"
        ),
        "EqualOpportunity(slack=.2)": Kind(EqualOpportunity(slack=0.2)),
        "the same, single rules": Kind(EqualOpportunity(slack=0.2), randomized=False),
        "the same, as a ratio of .6": Kind(EqualOpportunity(ratio=0.6, bound="ratio")),
        "the same, beside all": Kind(EqualOpportunity(slack=0.2, reference="overall")),
        "EqualizedOdds(slack=.2)": Kind(EqualizedOdds(slack=0.2), both=True),
    }  # fmt: skip
    by_row = {
        "Precision(at_least=.8)": Kind(Precision(at_least=0.8), groups=False),
        "Precision(at_least=.4, group='b')": Kind(
            Precision(at_least=0.4, group="b"), metric="recall"
        ),
        "PredictiveParity(slack=.1)": Kind(PredictiveParity(slack=0.1)),
        "DemographicParity(slack=.2)": Kind(DemographicParity(slack=0.2)),
        "SelectionRate(at_most=.4)": Kind(SelectionRate(at_most=0.4), groups=False),
        "Churn(at_most=.15)": Kind(churn, metric="recall", groups=False),
    }
    for kind in by_row.values():
        kind.counts = "rows"
    bounded = {
        f"{name}, uniform": Kind(
            kind.constraint, kind.metric, kind.counts, kind.groups, kind.population,
            kind.both, **uniform,
        )
        for name, kind in (by_label | by_row).items()
        if name.split("(")[0] in BOUNDED
    }  # fmt: skip
    return by_label | by_row | bounded


def reason(error):
    """A few words for an error."""
    said = str(error)
    found = [word for text, word in REASONS.items() if text in said]
    return found[0] if found else f"{type(error).__name__}: {said[:60]}"


class Sets:
    """Sets of one class a row, over given probabilities.

    Parameters
    ----------
    params : dict
        Of `ConformalClassifier`.
    """

    def __init__(self, **params):
        self.params = params
        self.population = several_classes(8)
        self.condition = params.get("condition")
        self.allowed = 1.0 - LEVEL

    def sample(self, rng, n):
        if self.condition == "class":
            numbers = np.zeros((2, 8), int)
            numbers[0] = FEW
            numbers[0, 0] = n
            return self.population.of_labels(rng, numbers)
        few = self.condition == "group"
        return self.population.of_groups(rng, [200, n] if few else [n, 0])

    def draw(self, rng, n):
        """(whether sets say everything, coverage) or the reason of a refusal."""
        values, y, group = self.sample(rng, n)
        model = ConformalClassifier(
            Given(8), confidence_level=LEVEL, cv="prefit", random_state=0, **self.params
        )
        by_group = self.condition == "group"
        names = np.array(["a", "b"])
        try:
            model.fit(
                self.population.P[values], y,
                sensitive_features=names[group] if by_group else None,
            )  # fmt: skip
        except ValueError as error:
            return reason(error)
        asked = {"sensitive_features": np.full(GRID, "b")} if by_group else {}
        try:
            sets = model.predict_set(self.population.P, **asked)
        except ValueError as error:  # a group without examples
            return reason(error)
        truth = self.population.truth[int(by_group)]
        if self.condition == "class":
            return sets[:, 0].all(), sets[:, 0] @ truth[:, 0] / truth[:, 0].sum()
        return sets.all(), (sets * truth).sum() / GRID


class LabelSets(Sets):
    """Sets of four labels of a row, which are independent given x."""

    def __init__(self, **params):
        super().__init__(**params)
        logits = np.random.default_rng(2).normal(scale=2.0, size=(GRID, 4))
        self.P = 1.0 / (1.0 + np.exp(-logits))
        self.truth = 1.0 / (1.0 + np.exp(-0.7 * logits - 0.2))

    def draw(self, rng, n):
        values = rng.integers(GRID, size=n)
        Y = (rng.random((n, 4)) < self.truth[values]).astype(int)
        model = ConformalClassifier(
            GivenLabels(), confidence_level=LEVEL, cv="prefit", **self.params
        )
        try:
            sets = model.fit(self.P[values], Y).predict_set(self.P)
        except ValueError as error:
            return reason(error)
        found = 0.0
        for labels in np.ndindex(2, 2, 2, 2):
            labels = np.array(labels, dtype=bool)
            chance = np.where(labels, self.truth, 1.0 - self.truth).prod(axis=1)
            covered = sets[:, labels]
            if self.params["coverage"] == "whole" or not labels.any():
                found += chance @ covered.all(axis=1)
            else:
                found += chance @ covered.mean(axis=1)
        return sets.all(), found / GRID


class Folds(Sets):
    """Sets by folds, of fits."""

    N_NEW = 4000

    def __init__(self, **params):
        super().__init__(**params)
        self.allowed = 2.0 * (1.0 - LEVEL)
        self.new = self.normal(np.random.default_rng(3), self.N_NEW)

    @staticmethod
    def normal(rng, n):
        y = rng.integers(4, size=n)
        X = rng.normal(size=(n, 4))
        X[np.arange(n), y] += 1.0
        return X, y

    def draw(self, rng, n):
        X, y = self.normal(rng, n)
        model = ConformalClassifier(
            GaussianNB(), confidence_level=LEVEL, random_state=0, **self.params
        )
        try:
            sets = model.fit(X, y).predict_set(self.new[0])
        except ValueError as error:
            return reason(error)
        return sets.all(), sets[np.arange(self.N_NEW), self.new[1]].mean()


def sets_of():
    """By name."""
    return {
        "lac": Sets(),
        "aps": Sets(conformity_score="aps"),
        "aps, randomized": Sets(conformity_score="aps", randomized=True),
        "raps": Sets(conformity_score="raps"),
        "margin": Sets(conformity_score="margin"),
        "condition='class'": Sets(condition="class"),
        "condition='group'": Sets(condition="group"),
        "labels, whole": LabelSets(coverage="whole"),
        "labels, average": LabelSets(coverage="average"),
        "cv=5": Folds(cv=5),
        "cv=.25": Folds(cv=0.25),
    }


def band(n_draws, allowed):
    """The most that there should be."""
    return int(binom.ppf(1.0 - OUTSIDE, n_draws, allowed))


def seeded(name, n, i):
    return np.random.default_rng([*name.encode(), n, i])


def measure(name, kind, n, old, n_draws, allowed):
    """A cell: given, refused by reason, false; of sets also full ones and the coverage.

    Draws that the old cell has are not made again.
    """
    cell = {"draws": 0, "given": 0, "false": 0, "refused": {}, "full": 0, "covered": 0.0}
    cell |= old
    refused = Counter(cell["refused"])
    for i in range(cell["draws"], n_draws):
        rng = seeded(name, n, i)
        found = kind.draw(rng, n)
        if isinstance(found, str):
            refused[found] += 1
            continue
        cell["given"] += 1
        if isinstance(kind, Kind):
            cell["false"] += int(found)
        else:
            cell["full"] += int(found[0])
            cell["covered"] += float(found[1])
            cell["false"] += int(rng.random() > found[1])
    cell["draws"] = max(cell["draws"], n_draws)
    cell["refused"] = dict(refused.most_common())
    return cell | {"band": band(cell["draws"], allowed)}


def table(cells):
    """Rows: by kind and size what came of it."""
    rows = []
    for name, by_size in cells.items():
        for n, cell in by_size.items():
            refused = ", ".join(f"{k}: {v}" for k, v in cell["refused"].items())
            row = [name, n, cell["draws"], cell["given"], cell["false"], cell["band"]]
            coverage = cell["covered"] / cell["given"] if cell["given"] else np.nan
            rows.append([*row, cell["full"], coverage, refused])
    return rows


def read():
    """What is known."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}


def keep(what, name, n, cell, known):
    """Write a cell, beside what other runs have written since."""
    results = read() | {"confidence": CONFIDENCE, "level": LEVEL}
    of_kind = results.get(what, {})
    by_size = of_kind.get(name, {}) | {str(n): cell}
    of_kind[name] = {size: by_size[size] for size in sorted(by_size, key=int)}
    results[what] = {name: of_kind[name] for name in known if name in of_kind}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", nargs="+", help="names of kinds, or how they begin")
    args = parser.parse_args()
    header = ["", "n", "draws", "given", "false", "at most", "all labels", "coverage",
              "refused"]  # fmt: skip
    for what, known in (("constraints", kinds()), ("sets", sets_of())):
        for name, kind in known.items():
            if args.only is None or name.startswith(tuple(args.only)):
                allowed = 1.0 - CONFIDENCE if what == "constraints" else kind.allowed
                for n in args.sizes:
                    old = read().get(what, {}).get(name, {}).get(str(n), {})
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        cell = measure(name, kind, n, old, args.draws, allowed)
                    keep(what, name, n, cell, known)
                print_table(header, table({name: read()[what][name]}))
    outside = [
        (name, n)
        for what in ("constraints", "sets")
        for name, by_size in read().get(what, {}).items()
        for n, cell in by_size.items()
        if cell["false"] > cell["band"]
    ]
    print(f"outside the band: {outside or 'none'}")


if __name__ == "__main__":
    main()

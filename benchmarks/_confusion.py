"""What the benchmarks of ComplexMetricClassifier share: splits, losses, peers, tables.

Import it before NumPy, like _common.
"""

import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import NamedTuple

from _common import HERE, data_file, np, peer_python, placed, print_table, run_lines
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.confusion.cells import Cells
from sklearn_structsvm.confusion.registry import get_metric
from sklearn_structsvm.metrics import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    MicroF1,
    SelectionRate,
)

MULTICLASS = ["abalone", "pageblocks", "satimage", "covtype7"]
FAIRNESS = ["compas", "lawschool", "adult", "crimes"]
METRICS = ["h_mean", "q_mean", "g_mean", "min_max", "micro_f1", "macro_f1"]
SLACKS = {"equal_opportunity": 0.05, "equalized_odds": 0.05, "demographic_parity": 0.05}
CONSTRAINTS = {
    "equal_opportunity": EqualOpportunity,
    "equalized_odds": EqualizedOdds,
    "demographic_parity": DemographicParity,
}
COVERAGE_SLACK = 0.01
# The paper's; its code draws the splits as `load_splits` does.
TEST_SHARE = 0.3
MAX_ITER = 10_000  # of logistic regression
PEERS = {
    "xcolumns": "XCOLUMNS_PYTHON",
    "fairlearn": "FAIRLEARN_PYTHON",
    "paper": "CONSTRAINED_CLASSIFICATION_PYTHON",
    "oxonfair": "OXONFAIR_PYTHON",
    "error_parity": "ERROR_PARITY_PYTHON",
}


class Part(NamedTuple):
    """Training or test examples: standardized features, labels, groups, probabilities."""

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray
    P: np.ndarray


class Split(NamedTuple):
    """A random split, with the class probabilities of one logistic regression."""

    data: str
    seed: int
    train: Part
    test: Part

    @property
    def n_classes(self):
        return self.train.P.shape[1]

    @property
    def n_groups(self):
        return int(self.train.group.max()) + 1


def load_splits(name, data_home, n_splits):
    """Return the splits of a data set; print what is missing and return [].

    Seven tenths are for training, drawn without regard to the labels by
    ``train_test_split(random_state=0, 1, ...)``, as the paper's code does: where the rows
    are in its order (all sets but covtype7 and adult) these are its splits.
    """
    path = data_file(data_home, name, f"{name}.npz")
    if path is None:
        return []
    with np.load(path) as data:
        X, y = data["X"].astype(np.float64), data["y"]
        group = data["group"] if "group" in data else np.zeros(len(y), dtype=int)
    return [_split(name, X, y, group, seed) for seed in range(n_splits)]


def _split(name, X, y, group, seed):
    halves = train_test_split(X, y, group, test_size=TEST_SHARE, random_state=seed)
    scaler = StandardScaler().fit(halves[0])
    X_train, X_test = map(scaler.transform, halves[:2])
    model = LogisticRegression(max_iter=MAX_ITER).fit(X_train, halves[2])
    train = Part(X_train, halves[2], halves[4], model.predict_proba(X_train))
    test = Part(X_test, halves[3], halves[5], model.predict_proba(X_test))
    return Split(name, seed, train, test)


class Given(ClassifierMixin, BaseEstimator):
    """A fitted probability model whose features are the class probabilities."""

    def __init__(self, n_classes):
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, X, y):
        """Nothing to do."""
        return self

    def predict_proba(self, X):
        """X."""
        return X


class GivenLabels(ClassifierMixin, BaseEstimator):
    """Rows are their own probabilities of labels."""

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        return X


def metric_of(name, split):
    """The metric; micro-F1's default class is the largest, as in the paper's code."""
    return MicroF1(default_label=largest_class(split)) if name == "micro_f1" else name


def largest_class(split):
    """Largest class of training and test part together, the same for all splits."""
    counts = np.bincount(split.train.y) + np.bincount(split.test.y)
    return int(counts.argmax())


def fairness_constraint(name, slack=None):
    """Each group beside all examples, as in the paper."""
    slack = SLACKS[name] if slack is None else slack
    return CONSTRAINTS[name](slack=slack, reference="overall")


def coverage():
    """Constrain every class to be predicted as often as it occurs, within 0.01."""
    return SelectionRate(target="priors", slack=COVERAGE_SLACK)


def expected_confusion(part, probabilities, by_group=False):
    """Confusion tensor (m, k, k) of a randomized classifier, m = 1 without groups.

    ``probabilities[x, j]`` is the chance that it predicts j.
    """
    k = probabilities.shape[1]
    cells = part.group * by_group
    n_cells = int(part.group.max()) + 1 if by_group else 1
    C = np.zeros((n_cells * k, k))
    np.add.at(C, cells * k + part.y, probabilities)
    return C.reshape(n_cells, k, k) / len(part.y)


def loss(metric, C):
    """Value of the metric, as a loss, at a confusion tensor."""
    C = np.asarray(C)
    return get_metric(metric, np.arange(C.shape[-1])).value(C.sum(axis=0))


def violation(constraint, C):
    """By how much the constraint exceeds its slack at C; at most 0 if it is met."""
    C = np.asarray(C)
    m, k, _ = C.shape
    cells = Cells(C.sum(axis=2), np.arange(k), groups=np.arange(m), group_names=range(m))
    return constraint.violation(C, cells)


class Run(NamedTuple):
    """What is kept of a fit: confusion tensors, seconds, and what the solver says."""

    train: np.ndarray
    test: np.ndarray
    seconds: float = np.nan
    calls: float = np.nan
    gap: float = np.nan
    certified_violation: float = np.nan


def plugin_run(split, weights, by_group=False):
    """`Run` of the classifier argmax_j weights_j η_j(x)."""

    def predicted(part):
        return np.eye(split.n_classes)[np.argmax(part.P * weights, axis=1)]

    return Run(
        expected_confusion(split.train, predicted(split.train), by_group),
        expected_confusion(split.test, predicted(split.test), by_group),
    )


def zero_one(split, by_group=False):
    """The plug-in classifier of the 0-1 loss."""
    return plugin_run(split, 1.0, by_group)


def balanced(split, by_group=False):
    """The plug-in classifier of the balanced loss."""
    counts = np.bincount(split.train.y, minlength=split.n_classes)
    return plugin_run(split, 1.0 / counts, by_group)


def fit_ours(split, metric, constraint=None, *, by_group=False, lmo="plugin", **params):
    """A `Run` of ComplexMetricClassifier, and the classifier.

    The seconds leave out the probability model, which is given. An LMO that fits
    classifiers is charged for all of them, and sees the standardized features.
    """
    plugin = lmo == "plugin"
    if plugin and split.n_classes == 2:
        # As peers do, to whom these are compared.
        params = {"confusion": "labels"} | params
    model = placed(ComplexMetricClassifier)(
        Given(split.n_classes) if plugin else LogisticRegression(max_iter=MAX_ITER),
        metric_of(metric, split) if isinstance(metric, str) else metric,
        () if constraint is None else constraint,
        solver_options={"lmo": lmo},
        cv="prefit" if plugin else None,
        **params,
    )
    features = "P" if plugin else "X"
    group = split.train.group if by_group else None
    X = getattr(split.train, features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The classifier predicts")
        start = process_time()
        model.fit(X, split.train.y, sensitive_features=group)
        seconds = process_time() - start

    def confusion(part):
        X, groups = getattr(part, features), part.group if by_group else None
        predicted = model.predict_proba(X, sensitive_features=groups)
        return expected_confusion(part, predicted, by_group)

    run = Run(
        confusion(split.train), confusion(split.test), seconds,
        model.n_oracle_calls_, model.dual_gap_, model.constraint_violation_,
    )  # fmt: skip
    return run, model


@contextmanager
def saved_splits(splits):
    """Path of a temporary ``.npz`` file from which peers read the splits."""
    arrays = {}
    for i, split in enumerate(splits):
        for half in ("train", "test"):
            for field, array in getattr(split, half)._asdict().items():
                arrays[f"{field}_{half}_{i}"] = array
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "splits.npz")
        np.savez(path, **arrays)
        yield path


class Peer:
    """A package of others, run by an interpreter that has it.

    Parameters
    ----------
    name : {"xcolumns", "fairlearn", "paper", "oxonfair", "error_parity"}
    """

    def __init__(self, name):
        module = "sklearn" if name == "paper" else name
        self.python = peer_python(PEERS[name], module)

    def runs(self, path, method, target, **options):
        """Return a `Run` for each saved split; [] if the peer is not installed."""
        if self.python is None:
            return []
        script = HERE / "peers" / "confusion_peer.py"
        command = [self.python, script, path, method, target]
        for key, value in options.items():
            command += [f"--{key.replace('_', '-')}", value]
        return [
            Run(np.array(line["train"]), np.array(line["test"]), line["seconds"],
                line["calls"])
            for line in run_lines(command)
        ]  # fmt: skip


def mean_std(values):
    """ "mean ± standard deviation" of numbers."""
    if len(values) == 0:
        return "-"
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def median(values):
    return float(np.median(values)) if len(values) else np.nan


def print_by_data(title, cells, columns):
    """A table with a row for each method, a column for each data set.

    Parameters
    ----------
    cells : dict of {method: {column: str or float}}
    """
    print(f"{title}\n")
    rows = [[name, *(row.get(c, "-") for c in columns)] for name, row in cells.items()]
    print_table(["", *columns], rows)

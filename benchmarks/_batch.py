"""What the benchmarks of the batch classifiers share: data, optima, seconds.

Import it before NumPy, like _common.
"""

import json
from pathlib import Path
from typing import NamedTuple

from _common import (
    HERE,
    data_file,
    fetch_ocr_letters,
    fit_quietly,
    load_reuters,
    np,
    placed,
    sparse,
)

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    PragamClassifier,
    SubLBFGSClassifier,
)

NO_LIMIT = 10**9
METHODS = {
    "SubLBFGS": (SubLBFGSClassifier, {}),
    "SubLBFGS, hybrid": (SubLBFGSClassifier, {"solver": "hybrid"}),
    "SubLBFGS, squared hinge": (SubLBFGSClassifier, {"loss": "squared_hinge"}),
    "subLBFGS alone": (SubLBFGSClassifier, {"solver": "sublbfgs"}),
    "BMRM, line search": (BMRMClassifier, {}),
    "BMRM": (BMRMClassifier, {"line_search": False}),
    "BMRM, one variable": (
        BMRMClassifier,
        {"subproblem": "line", "line_search": False},
    ),
    "Pragam": (PragamClassifier, {}),
    "BCFW": (BCFWClassifier, {"random_state": 0}),
    "BCFW, pairwise": (BCFWClassifier, {"step": "pairwise", "random_state": 0}),
}

# By kind of problem: sets, and the lambda of the objective's curves. That of a9a,
# letter and scene is the paper's; of the others the one of 1e-6, ..., 1e-1 with the
# highest accuracy on a test set or, where there is none, on a fifth held out. (Of yeast,
# W = 0 is all but optimal at each of them.)
CURVES = {
    "binary": {"a9a": 1e-5, "reuters_usa": 1e-4, "polarity": 1e-5, "ocr-2": 1e-4},
    "multiclass": {"letter": 1e-6, "satimage": 1e-5, "reuters-58": 1e-4, "ocr-26": 1e-4},
    "multilabel": {"scene": 1e-1, "reuters-10": 1e-4},
}
# The same of L1 and the logistic loss; that of a9a is the paper's.
L1_CURVES = {"a9a": 1e-4, "reuters_usa": 1e-5, "polarity": 1e-5, "ocr-2": 1e-4}


class Problem(NamedTuple):
    """Training data: y in {-1, 1}, or 0 to k - 1, or an indicator of labels."""

    name: str
    X: object
    y: np.ndarray

    @property
    def n_samples(self):
        return self.X.shape[0]

    @property
    def kind(self):
        if self.y.ndim == 2:
            return "multilabel"
        return "binary" if self.y.min() < 0 else "multiclass"


def _csr(path):
    return sparse.csr_matrix(sparse.load_npz(path), dtype=np.float64)


def _a9a(home):
    path = data_file(home, "a9a", "X_train.npz")
    return path and (_csr(path), np.load(path.parent / "y_train.npy"))


def _binary_text(folder):
    def load(home):
        path = data_file(home, folder, "X.npz")
        return path and (_csr(path), np.load(path.parent / "y.npy"))

    return load


def _letters(home):
    words, labels = fetch_ocr_letters(subset="all", data_home=home, return_X_y=True)
    y = np.unique(np.concatenate(labels), return_inverse=True)[1]
    return np.concatenate(words).astype(np.float64), y


def _letters_in_two(home):
    X, y = _letters(home)
    return X, np.where(y < 13, 1, -1)


def _letter(home):
    path = data_file(home, "letter", "data.npz")
    if path is None:
        return None
    with np.load(path) as data:
        return data["X_train"] / 7.5 - 1.0, data["y_train"]


def _satimage(home):
    path = data_file(home, "satimage", "satimage.npz")
    if path is None:
        return None
    with np.load(path) as data:
        return data["X"], data["y"]


def _topics(n_topics):
    def load(home):
        parts = load_reuters(home, n_topics)
        return parts and parts[:2]

    return load


def _single_topics(home):
    topics = _topics(90)(home)
    if topics is None:
        return None
    X, Y = topics
    single = Y.sum(axis=1) == 1
    return X[single], np.unique(Y[single].argmax(axis=1), return_inverse=True)[1]


def _mulan(folder):
    def load(home):
        path = data_file(home, folder, "data.npz")
        if path is None:
            return None
        with np.load(path) as data:
            return data["X_train"], data["Y_train"]

    return load


PROBLEMS = {
    "a9a": _a9a,
    "reuters_usa": _binary_text("reuters_usa"),
    "polarity": _binary_text("polarity"),
    "ocr-2": _letters_in_two,
    "letter": _letter,
    "satimage": _satimage,
    "reuters-58": _single_topics,
    "ocr-26": _letters,
    "scene": _mulan("scene"),
    "yeast": _mulan("yeast"),
    "reuters-10": _topics(10),
    "reuters-90": _topics(90),
}


def load_problems(names, data_home):
    """Yield each problem whose data are found; print which ones are missing."""
    for name in names:
        data = PROBLEMS[name](data_home)
        if data is not None:
            X, y = data
            X = X if sparse.issparse(X) else np.ascontiguousarray(X, np.float64)
            yield Problem(name, X, y.astype(np.intc))


def load_test(problem, data_home):
    """The problem's training part, and (X, y) of its test set or of a fifth held out."""
    if problem.name == "a9a":
        path = data_file(data_home, "a9a", "X_test.npz")
        return problem, (_csr(path), np.load(path.parent / "y_test.npy"))
    order = np.random.default_rng(0).permutation(problem.n_samples)
    test, train = np.split(order, [problem.n_samples // 5])
    X, y = problem.X, problem.y
    return problem._replace(X=X[train], y=y[train]), (X[test], y[test])


def fit(method, problem, lam, *, tol, max_time, **params):
    """Fit the classifier of this method (see `METHODS`) without an intercept."""
    kind, options = METHODS[method]
    model = placed(kind)(
        C=1.0 / (lam * problem.n_samples),
        fit_intercept=False,
        tol=tol,
        solver_options={"max_time": max_time},
        **({"max_iter": NO_LIMIT} | options | params),
    )
    return fit_quietly(model, problem.X, problem.y)


def add_optimum_options(parser):
    """The options that `optimum` reads."""
    parser.add_argument(
        "--optima",
        default=str(HERE / "results" / "optima"),
        help="folder where the optima are kept",
    )
    parser.add_argument(
        "--optimum-time", type=float, default=150.0, help="seconds of each try at one"
    )


def optimum(problem, lam, args, rtol, method="SubLBFGS"):
    """Return an upper and a lower bound of the least objective, from a file or computed.

    Two solvers take turns until the bounds are within `rtol` of each other. Only one of
    them has the squared hinge.
    """
    is_squared = method != "SubLBFGS"
    suffix = "-squared" if is_squared else ""
    path = Path(args.optima, f"{problem.name}-{lam:g}{suffix}.json")
    # At W = 0 the hinge of two labels or more is 1, and the squared hinge of each class
    # against the rest; no loss is negative.
    largest = 1.0
    if is_squared and problem.kind == "multiclass":
        largest = float(problem.y.max() + 1)
    known = {"upper": largest, "lower": 0.0, "tried": np.inf}
    if path.exists():
        known = json.loads(path.read_text())
    methods = [method, "BCFW, pairwise"]
    if is_squared or problem.kind == "multilabel":
        # BCFW's loss of an indicator is another one.
        del methods[1]
    elif problem.X.shape[1] > problem.n_samples:
        # More weights than dual variables: the dual's turn first.
        methods.reverse()

    def gap():
        return (known["upper"] - known["lower"]) / known["upper"]

    # The first time only for the scale of the objective.
    for method, wanted in [(methods[0], 0.1), *((m, rtol) for m in methods)]:
        if gap() <= rtol or known["tried"] <= rtol:
            break
        tol = 0.5 * wanted * known["upper"]
        model = fit(method, problem, lam, tol=tol, max_time=args.optimum_time)
        known["upper"] = min(known["upper"], float(model.objective_))
        lower = float(model.history_["dual_objective"].max())
        known["lower"] = max(known["lower"], lower)
    if rtol < known["tried"]:
        known["tried"] = rtol
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known))
    if gap() > rtol:
        print(f"[{problem.name}, {lam:g}: the optimum is known to {gap():.1e} only]\n")
    return known["upper"], known["lower"]


def first_seconds(history, key, target):
    """Seconds until `history[key]` was first at most the target, or inf."""
    below = np.flatnonzero(history[key] <= target)
    return float(history["seconds"][below[0]]) if len(below) else np.inf

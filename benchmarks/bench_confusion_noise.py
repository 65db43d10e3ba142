"""Unbalanced classes with noisy labels: Table 10 of Narasimhan et al. on letters.

The paper has CIFAR-10 and a residual network. Here images of the ten most frequent
letters of OCR and a logistic regression of their pixels take their place; everything
else is as in the paper. A tenth of the first five classes is kept. In training the
labels of the tenth class are replaced by labels drawn from all ten; the test part is
clean. The methods know the shares of the classes, but not the noise:

plug-in: the most probable class.
noise correction: Patrini et al. (2017), a logistic regression whose loss sees each label
    through a matrix of transitions, which is estimated from the plug-in rule's
    probabilities (at the most probable example of each class) or, for a bound, exact.
H-mean, 0-1: that loss is minimized on the training labels, by column generation;
    "coverage": with every class predicted as often as it occurs, within 0.01. FW and
    SplitFW are the paper's solvers for the same.

Means and standard deviations over --splits. "violation" is the largest deviation of the
share of a class's predictions less 0.01.
"""

import sys

from _common import fetch_ocr_letters, make_parser, np, print_table
from _confusion import (
    COVERAGE_SLACK,
    MAX_ITER,
    TEST_SHARE,
    Part,
    Run,
    SelectionRate,
    Split,
    expected_confusion,
    fit_ours,
    loss,
    mean_std,
    violation,
    zero_one,
)
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

N_CLASSES = 10
# Of the first five; so many times less.
RARE, FACTOR = 5, 10
NOISY = 9
PRIORS = np.repeat([1.0, FACTOR], [RARE, N_CLASSES - RARE])
PRIORS /= PRIORS.sum()
# Name: metric, whether coverage is bounded, parameters. "frank_wolfe" is SplitFW with it.
OURS = {
    "H-mean": ("h_mean", False, {}),
    "0-1, coverage": ("zero_one", True, {}),
    "H-mean, coverage": ("h_mean", True, {}),
    "FW [H-mean]": ("h_mean", False, {"solver": "frank_wolfe"}),
    "SplitFW [0-1]": ("zero_one", True, {"solver": "frank_wolfe"}),
    "SplitFW [H-mean]": ("h_mean", True, {"solver": "frank_wolfe"}),
}


def load_images(data_home):
    """Pixels, letters, the ten most frequent, and how many there are of each at least."""
    words, letters = fetch_ocr_letters(subset="all", data_home=data_home, return_X_y=True)
    X, letters = np.concatenate(words).astype(float), np.concatenate(letters)
    names, counts = np.unique(letters, return_counts=True)
    chosen = names[np.argsort(-counts, kind="stable")[:N_CLASSES]]
    return X, letters, chosen, counts[np.argsort(-counts, kind="stable")[N_CLASSES - 1]]


def make_split(images, seed):
    """Unbalanced training and test parts, with noisy labels in training."""
    X, letters, chosen, n = images
    rng = np.random.default_rng(seed)
    rows, y = [], []
    for c, letter in enumerate(chosen):
        own = rng.permutation(np.flatnonzero(letters == letter))
        rows.append(own[: n // FACTOR if c < RARE else n])
        y.append(np.full(len(rows[-1]), c))
    rows, y = np.concatenate(rows), np.concatenate(y)
    X, X_test, y, y_test = train_test_split(
        X[rows], y, test_size=TEST_SHARE, random_state=seed, stratify=y
    )
    noisy = y == NOISY
    y[noisy] = rng.integers(N_CLASSES, size=noisy.sum())
    model = LogisticRegression(max_iter=MAX_ITER).fit(X, y)

    def part(X, y):
        return Part(X, y, np.zeros(len(y), dtype=int), model.predict_proba(X))

    return Split("letters", seed, part(X, y), part(X_test, y_test))


def fit_forward(X, y, T):
    """Class probabilities by a logistic regression of labels that T[c, y] makes noisy.

    1/2 ||W||² - Σ_i ln Σ_c softmax(Wᵀx_i)_c T[c, y_i], with intercepts that are free, as
    of scikit-learn's with C = 1.
    """
    X = np.column_stack([X, np.ones(len(X))])
    k = len(T)
    seen = T[:, y].T

    def value_and_slope(flat):
        W = flat.reshape(-1, k)
        P = softmax(X @ W, axis=1)
        joint = P * seen
        total = joint.sum(axis=1, keepdims=True)
        ridge = W.copy()
        ridge[-1] = 0.0
        value = 0.5 * np.vdot(ridge, ridge) - np.log(total).sum()
        return value, (ridge + X.T @ (P - joint / total)).ravel()

    # The loss of noisy labels is not convex: from the regression on them.
    start = LogisticRegression(max_iter=MAX_ITER).fit(X[:, :-1], y)
    W = np.vstack([start.coef_.T, start.intercept_])
    found = minimize(
        value_and_slope, W.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 2000}
    )
    W = found.x.reshape(-1, k)
    return lambda X: np.exp(log_softmax(X @ W[:-1] + W[-1], axis=1))


def transitions(split):
    """Patrini et al.'s: the probabilities at the surest example of each class."""
    P = split.train.P
    return P[P.argmax(axis=0)]


def exact_transitions():
    T = np.eye(N_CLASSES)
    T[NOISY] = 1.0 / N_CLASSES
    return T


def corrected(split, T):
    """The plug-in rule of the corrected regression, judged on the given labels."""
    predict = fit_forward(split.train.X, split.train.y, T)

    def confusion(part):
        predicted = np.eye(N_CLASSES)[predict(part.X).argmax(axis=1)]
        return expected_confusion(part, predicted)

    return Run(confusion(split.train), confusion(split.test))


def runs_of(split):
    """By name of a method."""
    coverage = SelectionRate(target=PRIORS, slack=COVERAGE_SLACK)
    found = {
        "plug-in": zero_one(split),
        "noise correction, estimated": corrected(split, transitions(split)),
        "noise correction, exact": corrected(split, exact_transitions()),
    }
    for name, (metric, is_bounded, params) in OURS.items():
        constraint = coverage if is_bounded else None
        found[name], _ = fit_ours(split, metric, constraint, **params)
    return found


def facts(run):
    """0-1, H-mean and violation in training, and on the test part."""
    coverage = SelectionRate(target=PRIORS, slack=COVERAGE_SLACK)
    return [
        value
        for C in (run.train, run.test)
        for value in (loss("zero_one", C), loss("h_mean", C), violation(coverage, C))
    ]


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--splits", type=int, default=5)
    args = parser.parse_args()
    images = load_images(args.data)
    found = {}
    for seed in range(args.splits):
        split = make_split(images, seed)
        for name, run in runs_of(split).items():
            found.setdefault(name, []).append(facts(run))
    print(
        f"{len(split.train.y)} training and {len(split.test.y)} test images; priors "
        f"{PRIORS[0]:.3f} and {PRIORS[-1]:.3f}\n"
    )
    header = [""]
    for half in ("train", "test"):
        header += [f"{half}: 0-1", "H-mean", "violation"]
    print_table(
        header,
        [[name, *map(mean_std, np.transpose(rows))] for name, rows in found.items()],
    )


if __name__ == "__main__":
    sys.exit(main())

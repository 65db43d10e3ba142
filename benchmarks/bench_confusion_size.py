"""Convergence to the best classifier with the sample's size (the paper's Figure 7).

Examples of three Gaussians, for which the class probabilities are known. Q-mean, and
Q-mean under coverage within 0.01, of ComplexMetricClassifier with logistic regression
fitted to samples of several sizes, by solver; losses and coverages are expectations over
a million other examples. The optimum is that of the true class probabilities of these,
certified to 1e-5. The paper searches a grid of class weights for it, which must not do
better: printed for the Q-mean without the constraint.

Means over --draws. Writes figures/confusion_size.png.
"""

import warnings

from _common import HERE, make_axes, make_parser, np, print_table, save_figure
from _confusion import COVERAGE_SLACK, Part, Split, coverage, fit_ours, loss, violation
from bench_confusion_calls import COLORS, MARKERS, SOLVERS
from sklearn.exceptions import ConvergenceWarning

from sklearn_structsvm import ComplexMetricClassifier

PRIORS = np.array([0.85, 0.1, 0.05])
MEANS = np.array([[1.0, 1.0], [0.0, 0.0], [-1.0, -1.0]])
COVARIANCE = np.array([[5.0, 1.0], [1.0, 5.0]])
SIZES = [100, 300, 1000, 3000, 10_000, 100_000]
TEST_SIZE = 10**6
BATCH = 10**5  # rows predicted at once
EXACTLY = 1e-5
# Of Frank-Wolfe, GDA and ellipsoid, which converge slowly.
MAX_ITER = 300
# Logarithms of the weights of the second and third class; the first one's is 0.
GRID = np.linspace(0.0, 4.0, 41)
GRID_SIZE = 10**5
TASKS = {"no constraint": None, "coverage": coverage()}
PANELS = {
    ("no constraint", 0): "Q-mean loss",
    ("coverage", 0): "Q-mean loss under coverage",
    ("coverage", 1): "deviation from the coverage",
}


def draw(size, rng):
    """Features and labels."""
    y = rng.choice(3, p=PRIORS, size=size)
    root = np.linalg.cholesky(COVARIANCE)
    return MEANS[y] + rng.standard_normal((size, 2)) @ root.T, y


def class_probabilities(X):
    """η(x), the softmax of linear functions."""
    inverse = np.linalg.inv(COVARIANCE)
    scores = X @ inverse @ MEANS.T - 0.5 * np.einsum("ij,jk,ik->i", MEANS, inverse, MEANS)
    weights = PRIORS * np.exp(scores)
    return weights / weights.sum(axis=1, keepdims=True)


def expected(P, predict):
    """Confusion tensor (1, 3, 3) over rows of true probabilities P."""
    C = np.zeros((3, 3))
    for start in range(0, len(P), BATCH):
        rows = slice(start, start + BATCH)
        C += P[rows].T @ predict(rows)
    return C[None] / len(P)


def best(P, y, constraint):
    """Loss and deviation of the best classifier for true class probabilities."""
    part = Part(P, y, np.zeros(len(y), dtype=int), P)
    split = Split("synthetic", 0, part, part)
    model = fit_ours(split, "q_mean", constraint, tol=EXACTLY)[1]
    C = expected(P, lambda rows: model.predict_proba(P[rows]))
    return loss("q_mean", C), violation(coverage(), C) + COVERAGE_SLACK


def grid_search(P):
    """The least loss of the classifiers argmax_i w_i η_i(x)."""
    found = np.inf
    for second in GRID:
        for third in GRID:
            chosen = np.argmax(np.log(P) + np.array([0.0, second, third]), axis=1)
            C = P.T @ np.eye(3)[chosen] / len(P)
            found = min(found, loss("q_mean", C[None]))
    return found


def measure(size, solver, constraint, X_test, P_test, args):
    """Mean test loss and deviation over the draws."""
    found = []
    for seed in range(args.draws):
        X, y = draw(size, np.random.default_rng(seed))
        model = ComplexMetricClassifier(
            None, "q_mean", () if constraint is None else constraint,
            solver_options={"solver": solver},
            max_iter=MAX_ITER, cv=None,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        C = expected(P_test, lambda rows, m=model: m.predict_proba(X_test[rows]))
        found.append((loss("q_mean", C), violation(coverage(), C) + COVERAGE_SLACK))
    return np.mean(found, axis=0)


def plot(curves, optima, sizes, path):
    figure, axes = make_axes(1, 3)
    for ax, ((task, column), title) in zip(axes[0], PANELS.items(), strict=True):
        for solver, of_tasks in curves.items():
            ax.semilogx(
                sizes, of_tasks[task][:, column], color=COLORS[solver],
                marker=MARKERS[solver], markersize=4,
                label=SOLVERS[solver],
            )  # fmt: skip
        if column == 0:
            ax.axhline(optima[task][0], color="0.3", linestyle="--", label="optimum")
        else:
            ax.axhspan(0.0, COVERAGE_SLACK, color="C2", alpha=0.2)
            ax.set_ylim(bottom=0.0)
        ax.set(title=title, xlabel="training examples")
    save_figure(figure, axes, path)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--test-size", type=int, default=TEST_SIZE)
    args = parser.parse_args()
    X_test, y_test = draw(args.test_size, np.random.default_rng(10**6))
    P_test = class_probabilities(X_test)
    optima = {task: best(P_test, y_test, c) for task, c in TASKS.items()}
    searched = grid_search(P_test[:GRID_SIZE])
    same = best(P_test[:GRID_SIZE], y_test[:GRID_SIZE], None)[0]
    print(f"Q-mean of {GRID_SIZE} examples: grid {searched:.5f}, here {same:.5f}\n")
    curves = {
        solver: {
            task: np.array([
                measure(size, solver, constraint, X_test, P_test, args)
                for size in args.sizes
            ])
            for task, constraint in TASKS.items()
        }
        for solver in args.solvers
    }  # fmt: skip
    for (task, column), title in PANELS.items():
        rows = [[SOLVERS[s], *of[task][:, column]] for s, of in curves.items()]
        rows.append(["optimum", *[optima[task][column]] * len(args.sizes)])
        print(f"{title}, by training examples\n")
        print_table(["", *args.sizes], rows)
    path = HERE / "figures" / "confusion_size.png"
    plot(curves, optima, args.sizes, path)
    print(f"wrote figures/{path.name}")


if __name__ == "__main__":
    main()

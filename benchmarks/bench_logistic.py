"""CPU seconds of logistic regression to a relative 1e-3, beside scikit-learn's.

`CRFClassifier` on rows of one label: letter, a9a and reuters90 (the first topic of each
document), without an intercept. Its gap is certified. LogisticRegression has no
certificate: it gets the largest tol of 1e-1, 1e-2, ... 1e-6 that takes it within 1e-3 of
the optimum, and the search for this tol is not counted. The data are read from
letter/data.npz, and from X_train.npz beside y_train.npy or Y_train.npy.
"""

import sys
from time import process_time

from _common import data_file, fit_quietly, make_parser, np, print_table, sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import CRFClassifier

RELATIVE = 1e-3
ROWS = ["letter", "a9a", "reuters90"]
PEERS = ["lbfgs", "newton-cholesky", "saga"]
# Entries of a Hessian that newton-cholesky has room for.
MAX_HESSIAN = 10**8


def load_rows(name, data_home):
    """X and y of rows with one label each, or None."""
    path = data_file(data_home, name, "data.npz" if name == "letter" else "X_train.npz")
    if path is None:
        return None
    if name == "letter":
        with np.load(path) as data:
            return StandardScaler().fit_transform(data["X_train"]), data["y_train"]
    X = sparse.load_npz(path).astype(np.float64).tocsr()
    if name == "a9a":
        return X, np.load(path.parent / "y_train.npy")
    return X, np.load(path.parent / "Y_train.npy").argmax(axis=1)


def excess(model, X, y, optimum):
    """How far a model is from the optimum, relative to it."""
    w = model.coef_.ravel()
    loss = log_loss(y, model.predict_proba(X), labels=model.classes_)
    return (0.5 * w @ w / (model.C * len(y)) + loss) / optimum - 1.0


def timed(model, X, y):
    start = process_time()
    fit_quietly(model, X, y)
    return process_time() - start


def own_row(X, y, C, solver, optimum, repeats):
    options = {"C": C, "solver": solver, "fit_intercept": False, "max_iter": 10**4}
    models = [
        CRFClassifier(tol=RELATIVE * optimum, random_state=seed, **options)
        for seed in range(repeats)
    ]
    seconds = float(np.median([timed(model, X, y) for model in models]))
    name = f"library, {solver}"
    if solver == "auto":
        name += f" ({models[-1].solver_})"
    return [name, seconds, models[-1].n_iter_, excess(models[-1], X, y, optimum)]


def peer_row(X, y, C, solver, optimum, max_iter):
    model = LogisticRegression(
        C=C, solver=solver, fit_intercept=False, max_iter=max_iter, random_state=0
    )
    for digits in range(1, 7):
        model.set_params(tol=10.0**-digits)
        seconds = timed(model, X, y)
        found = excess(model, X, y, optimum)
        if found <= RELATIVE:
            return [f"LogisticRegression, {solver}", seconds, model.n_iter_[0], found]
        if model.n_iter_[0] >= max_iter:
            break
    # Not reached.
    return [f"LogisticRegression, {solver}", np.inf, model.n_iter_[0], found]


def compare(name, data_home, repeats, max_iter):
    problem = load_rows(name, data_home)
    if problem is None:
        return
    X, y = problem
    n_weights = X.shape[1] * (1 if len(np.unique(y)) == 2 else len(np.unique(y)))
    for C in (0.1, 1.0, 100.0):
        reference = CRFClassifier(C=C, fit_intercept=False, tol=1e-7, max_iter=10**4)
        optimum = fit_quietly(reference, X, y).dual_objective_
        rows = [
            own_row(X, y, C, solver, optimum, repeats)
            for solver in ("auto", "dual", "lbfgs")
        ]
        for solver in PEERS:
            if solver != "newton-cholesky" or n_weights**2 <= MAX_HESSIAN:
                rows.append(peer_row(X, y, C, solver, optimum, max_iter))
        print(f"{name}, C = {C:g}: {X.shape[0]} rows, {X.shape[1]} features\n")
        print_table(
            ["", "CPU s to 1e-3", "passes", "excess", "times our time"],
            [[*row, row[1] / rows[0][1]] for row in rows],
        )


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--problems", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-iter", type=int, default=300, help="of LogisticRegression")
    args = parser.parse_args()
    for name in args.problems:
        compare(name, args.data, args.repeats, args.max_iter)


if __name__ == "__main__":
    sys.exit(main())

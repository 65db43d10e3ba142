"""A linear classifier's solver on a saved problem; run by an interpreter that has it.

Fits at smaller and smaller tolerances until the objective is at most the target, and
repeats that fit. Prints a JSON line a fit: its seconds (of the training call alone), its
CPU seconds, its tolerance and whether it arrived. A fit that takes longer than the limit
ends the process.
"""

import argparse
import json
import signal
import warnings
from time import perf_counter, process_time

import numpy as np
from scipy import sparse

# Tolerances begin at 1 and are halved this often at most.
N_TOLERANCES = 30
# No method here needs as many passes; the limit of time ends it before.
MAX_ITER = 10**6


def objective(X, y, W, lam, is_squared):
    """λ/2 ||W||² + mean hinge, of y in {-1, 1} and one row of W, or of classes.

    The squared hinge is that of each class against the rest.
    """
    scores = X @ W.T
    if is_squared:
        present = y[:, None] == (1 if len(W) == 1 else np.arange(len(W)))
        signs = np.where(present, 1.0, -1.0)
        losses = (np.maximum(0.0, 1.0 - signs * scores) ** 2).sum(axis=1)
    elif len(W) == 1:
        losses = np.maximum(0.0, 1.0 - y * scores[:, 0])
    else:
        rows = np.arange(len(y))
        margins = scores - scores[rows, y][:, None] + 1.0
        margins[rows, y] = 0.0
        losses = margins.max(axis=1)
    return 0.5 * lam * np.vdot(W, W) + losses.mean()


def liblinear(X, y, C):
    """LIBLINEAR's dual coordinate descent (-s 3), or Crammer and Singer's (-s 4)."""
    from liblinear.liblinear import problem
    from liblinear.liblinearutil import train

    binary = y.min() < 0
    data = problem(y.astype(float), sparse.csr_matrix(X))

    def fit(tol):
        start = perf_counter()
        options = f"-s {3 if binary else 4} -c {C!r} -e {tol!r} -B -1 -q"
        model = train(data, options)
        seconds = perf_counter() - start
        # Its classes are in the order in which they occur; 1 comes before -1.
        labels = model.get_labels()
        rows = [model.get_decfun(c)[0] for c in range(1 if binary else len(labels))]
        return seconds, np.array(rows)[[0] if binary else np.argsort(labels)]

    return fit


def linearsvc(X, y, C):
    """scikit-learn's LinearSVC with the hinge loss."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(
        loss="hinge",
        multi_class="ovr" if y.min() < 0 else "crammer_singer",
        C=C,
        fit_intercept=False,
        max_iter=MAX_ITER,
        random_state=0,
    )

    def fit(tol):
        start = perf_counter()
        model.set_params(tol=tol).fit(X, y)
        return perf_counter() - start, model.coef_

    return fit


def linearsvc_squared(X, y, C):
    """scikit-learn's LinearSVC with its default loss."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(
        dual="auto", C=C, fit_intercept=False, max_iter=MAX_ITER, random_state=0
    )

    def fit(tol):
        start = perf_counter()
        model.set_params(tol=tol).fit(X, y)
        return perf_counter() - start, model.coef_

    return fit


def rehline(X, y, C):
    """ReHLine, of two classes."""
    from rehline import ReHLine

    U, V = -y[None, :].astype(float), np.ones((1, len(y)))

    def fit(tol):
        start = perf_counter()
        model = ReHLine(C=C, U=U, V=V, tol=tol, max_iter=MAX_ITER).fit(X)
        return perf_counter() - start, model.coef_[None, :]

    return fit


METHODS = {
    "liblinear": liblinear,
    "linearsvc": linearsvc,
    "linearsvc-squared": linearsvc_squared,
    "rehline": rehline,
}


def load(path):
    with np.load(path) as data:
        if "X" in data:
            return data["X"], data["y"]
        parts = data["data"], data["indices"], data["indptr"]
        return sparse.csr_matrix(parts, shape=data["shape"]), data["y"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("problem")
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("lam", type=float)
    parser.add_argument("target", type=float)
    parser.add_argument("--limit", type=int, default=25, help="seconds of a fit")
    parser.add_argument("--repeats", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = load(args.problem)
    fit = METHODS[args.method](X, y, 1.0 / (args.lam * len(y)))

    def timed(tol):
        # Not handled: it ends the process, compiled code or not.
        signal.alarm(args.limit)
        start = process_time()
        seconds, W = fit(tol)
        cpu_seconds = process_time() - start
        signal.alarm(0)
        is_squared = args.method == "linearsvc-squared"
        arrived = bool(objective(X, y, W, args.lam, is_squared) <= args.target)
        line = {"seconds": seconds, "cpu_seconds": cpu_seconds, "tol": tol}
        line["arrived"] = arrived
        print(json.dumps(line), flush=True)
        return arrived

    for tol in 0.5 ** np.arange(N_TOLERANCES):
        if timed(float(tol)):
            for _ in range(args.repeats - 1):
                timed(float(tol))
            break


if __name__ == "__main__":
    main()

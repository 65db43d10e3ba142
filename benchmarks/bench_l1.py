"""CPU seconds of a fit with an L1 penalty, beside LIBLINEAR's (-s 5, by LinearSVC).

All minimize lambda |w|_1 + mean loss without an intercept, so C = 1 / (lambda n), by one
thread. The loss is the squared hinge and, in the last column, which LIBLINEAR lacks, the
hinge.

newton, OWL-QN: a fit that ends with a duality gap of at most --rtol of the objective, or
    after 1000 passes: then the gap is in parentheses, as a share of the objective.
LinearSVC: the fit with the largest tolerance of 1, 1/2, ... whose objective is within
    --rtol of the best one known. It has no certificate, and is not charged for finding
    the tolerance.

Medians of --repeats fits.
"""

import warnings
from statistics import median
from time import process_time

from _batch import load_problems
from _common import make_parser, np, placed, print_table
from sklearn.svm import LinearSVC

from sklearn_structsvm import SubLBFGSClassifier

DATA = ["a9a", "reuters_usa", "ocr-2"]
N_TOLERANCES = 20


def cpu_seconds(fit, repeats):
    """Median, and what the last fit returns."""
    seconds = []
    for _ in range(repeats):
        start = process_time()
        found = fit()
        seconds.append(process_time() - start)
    return median(seconds), found


def objective(problem, lam, w):
    slack = np.maximum(0.0, 1.0 - problem.y * (problem.X @ w))
    return lam * np.abs(w).sum() + (slack**2).mean()


def our_cell(problem, lam, best, args, **params):
    """Seconds, with the gap if it is not closed, and the model."""
    model = placed(SubLBFGSClassifier)(
        penalty="l1",
        C=1.0 / (lam * problem.n_samples),
        fit_intercept=False,
        tol=args.rtol * best,
        **params,
    )
    seconds, model = cpu_seconds(
        lambda: model.fit(problem.X, problem.y), 1 if best == 1.0 else args.repeats
    )
    share = model.dual_gap_ / model.objective_
    cell = f"{seconds:.2g}"
    return (f"{cell} ({share:.1g})" if share > 1.1 * args.rtol else cell), model


def peer_seconds(problem, lam, best, args):
    peer = LinearSVC(
        penalty="l1",
        dual=False,
        C=1.0 / (lam * problem.n_samples),
        fit_intercept=False,
        max_iter=10**5,
        random_state=0,
    )
    for tol in 0.5 ** np.arange(N_TOLERANCES):
        peer.set_params(tol=tol)
        start = process_time()
        peer.fit(problem.X, problem.y)
        if process_time() - start > args.limit:
            break
        if objective(problem, lam, peer.coef_[0]) <= (1.0 + args.rtol) * best:
            return cpu_seconds(lambda: peer.fit(problem.X, problem.y), args.repeats)[0]
    return np.inf


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--problems", nargs="+", default=DATA)
    parser.add_argument("--lams", type=float, nargs="+", default=[1e-2, 1e-3, 1e-4])
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="s of a LinearSVC")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for problem in load_problems(args.problems, args.data):
        for lam in args.lams:
            squared = {"loss": "squared_hinge"}
            # A first fit tells the scale of the objective.
            _, model = our_cell(problem, lam, 1.0, args, **squared)
            best = model.objective_
            newton, model = our_cell(problem, lam, best, args, **squared)
            owlqn, _ = our_cell(problem, lam, best, args, solver="owlqn", **squared)
            theirs = peer_seconds(problem, lam, best, args)
            _, other = our_cell(problem, lam, 1.0, args)
            hinge, other = our_cell(problem, lam, other.objective_, args)
            used = np.count_nonzero(model.coef_), np.count_nonzero(other.coef_)
            rows.append(
                [
                    f"{problem.name}, {lam:g}",
                    f"{used[0]}, {used[1]}",
                    newton,
                    owlqn,
                    theirs,
                    hinge,
                ]
            )
    print_table(
        ["data, lambda", "weights", "newton", "OWL-QN", "LinearSVC", "hinge, newton"],
        rows,
    )


if __name__ == "__main__":
    main()

"""The regularization path of OCR within eps: exact and heuristic, beside a grid.

The grid has a fit from scratch, to a gap of eps, at each breakpoint of the path (or at
every k-th, times k): what the path saves.
"""

import sys
from time import perf_counter

from _common import (
    ChainStructure,
    chain_classifier,
    fit_quietly,
    load_ocr,
    make_parser,
    print_table,
)

from sklearn_structsvm import bcfw_path


def grid_seconds(X, y, lambdas, eps, most=30):
    """Seconds of separate fits at the breakpoints, from at most `most` of them."""
    every = -(-len(lambdas) // most)
    start = perf_counter()
    for lam in lambdas[::every]:
        fit_quietly(
            chain_classifier(C=1.0 / (lam * len(X)), tol=eps, random_state=0), X, y
        )
    return (perf_counter() - start) * len(lambdas) / len(lambdas[::every])


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--subsets", nargs="+", default=["small", "large"])
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--no-grid", action="store_true")
    args = parser.parse_args()
    header = [
        "",
        "s",
        "breakpoints",
        "passes",
        "largest lambda",
        "smallest lambda",
        "largest gap seen / eps",
        "s of the grid",
        "times faster than the grid",
    ]
    for subset in args.subsets:
        X, y = load_ocr(subset, args.data)
        rows = []
        for heuristic in (False, True):
            start = perf_counter()
            path = bcfw_path(
                X,
                y,
                structure=ChainStructure(),
                eps=args.eps,
                heuristic=heuristic,
                random_state=0,
            )
            seconds = perf_counter() - start
            grid = float("nan")
            if not args.no_grid:
                grid = grid_seconds(X, y, path.lambdas, args.eps)
            rows.append(
                [
                    "heuristic" if heuristic else "exact",
                    seconds,
                    len(path.lambdas),
                    float(path.n_iter[-1]),
                    float(path.lambdas[0]),
                    float(path.lambdas[-1]),
                    float(path.gaps.max() / args.eps),
                    grid,
                    grid / seconds,
                ]
            )
        print(f"OCR-{subset}, eps = {args.eps:g}\n")
        print_table(header, rows)


if __name__ == "__main__":
    sys.exit(main())

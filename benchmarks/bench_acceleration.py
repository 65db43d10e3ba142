"""Accelerated corrective steps beside the steps of 0.1.0: seconds and passes to a gap.

"now" has today's defaults. "0.1.0" has the defaults of that version, as this version
makes these steps: pairwise steps on blocks drawn by their gaps for chains, exact steps
without acceleration for rows of a matrix.

Each gap has its own fits. Seconds are process time of the whole `fit`, medians of
--repeats fits; the two versions take turns. A fit that does not end in --limit seconds
has a dash and counts as --limit seconds, so the ratio is a lower bound.
"""

import sys
from time import process_time

from _batch import load_problems
from _common import (
    ChainStructure,
    fit_quietly,
    load_ocr,
    make_parser,
    np,
    placed,
    print_table,
)

from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM

PAIRWISE = {
    "step": "pairwise",
    "sampling": "gap",
    "acceleration": False,
}
BEFORE = {"chains": PAIRWISE, "rows": {"acceleration": False}}


def works(args):
    """(name, estimator, kind of data, X, y, λ, gaps)"""
    small, large = (load_ocr(subset, args.data) for subset in ("small", "large"))
    n = len(small[0])
    chain = {"structure": ChainStructure()}
    for name, lam, gaps in (
        ("OCR-small, 0.01", 0.01, (1e-3, 1e-5)),
        ("OCR-small, 1/n", 1.0 / n, (1e-3, 1e-5)),
    ):
        yield name, placed(BCFWClassifier)(**chain), "chains", *small, lam, gaps
    for name, lam in (("OCR-small slack, 0.01", 0.01), ("OCR-small slack, 1/n", 1 / n)):
        yield name, placed(SlackRescaledSSVM)(**chain), "chains", *small, lam, (1e-3,)
    for name, lam in (("OCR-large, 0.001", 1e-3), ("OCR-large, 1/n", 1 / len(large[0]))):
        yield name, placed(BCFWClassifier)(**chain), "chains", *large, lam, (1e-2,)
    rows = BCFWClassifier(fit_intercept=False)
    for problem in load_problems(["letter", "a9a", "ocr-2", "satimage"], args.data):
        for lam in (1e-4, 1e-6):
            name = f"{problem.name}, {lam:g}"
            yield name, rows, "rows", problem.X, problem.y, lam, (1e-3,)


def fit_once(model, X, y, args):
    """Process seconds and passes; seconds are inf where the gap was not reached."""
    started = process_time()
    fit_quietly(
        model.set_params(max_iter=10**6, solver_options__max_time=args.limit), X, y
    )
    seconds = process_time() - started
    return seconds if model.dual_gap_ <= model.tol else np.inf, model.n_iter_


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30.0)
    args = parser.parse_args()
    rows = []
    for name, model, kind, X, y, lam, gaps in works(args):
        for gap in gaps:
            found = {"now": [], "0.1.0": []}
            for seed in range(args.repeats):
                for version, facts in found.items():
                    params = BEFORE[kind] if version == "0.1.0" else {}
                    fresh = type(model)(**model.get_params(deep=False) | params)
                    fresh.set_params(C=1.0 / (lam * len(y)), tol=gap, random_state=seed)
                    facts.append(fit_once(fresh, X, y, args))
            now, before = (np.median(facts, axis=0) for facts in found.values())
            ratio = min(before[0], args.limit) / min(now[0], args.limit)
            row = [name, f"{gap:g}", now[0], now[1], before[0], before[1], ratio]
            rows.append(row)
            print(*row, file=sys.stderr)
    header = ["data, λ", "gap", "now, s", "passes", "0.1.0, s", "passes", "ratio"]
    print_table(header, rows)


if __name__ == "__main__":
    main()

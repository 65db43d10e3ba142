"""The eight variants of the paper's figures: gap against passes and seconds.

Gap or uniform sampling, Frank-Wolfe or pairwise steps, with or without cache, on
OCR-small and OCR-large. A pass is n calls of the oracle, those of the gap checks
included, which are a part of gap sampling.
"""

import sys
from itertools import product

from _common import (
    HERE,
    chain_classifier,
    fit_quietly,
    load_ocr,
    make_parser,
    np,
    print_table,
    reached,
)

VARIANTS = [*product(("uniform", "gap"), ("fw", "pairwise"), (False, True))]
COLORS = {
    ("uniform", "fw"): "tab:blue",
    ("uniform", "pairwise"): "tab:green",
    ("gap", "fw"): "tab:orange",
    ("gap", "pairwise"): "tab:red",
}


def variant_name(sampling, step, cache):
    return f"{sampling}, {step}{', cache' if cache else ''}"


def run(X, y, lam, args):
    """History of each variant, with passes counted by oracle calls."""
    histories = {}
    for sampling, step, cache in VARIANTS:
        model = chain_classifier(
            C=1.0 / (lam * len(X)),
            sampling=sampling,
            step=step,
            acceleration=False,
            cache=cache,
            tol=args.tol,
            max_iter=args.max_iter,
            max_time=args.max_time,
            gap_check_interval=args.check_every,
            random_state=args.seed,
        )
        history = dict(fit_quietly(model, X, y).history_)
        history["passes"] = history["n_oracle_calls"] / len(X)
        histories[sampling, step, cache] = history
    return histories


def table_rows(histories, targets):
    """Passes and seconds of each variant to the targets, and ratios to the plainest."""
    plain = histories["uniform", "fw", False]
    for variant, history in histories.items():
        row = [variant_name(*variant), float(history["dual_gap"][-1])]
        for target in targets:
            seconds = reached(history, "seconds", target)
            row += [
                reached(history, "passes", target),
                seconds,
                float(np.divide(reached(plain, "seconds", target), seconds))
                if np.isfinite(seconds)
                else np.inf,
            ]
        yield row


def plot(results, path):
    """One panel a problem and measure of effort, one line a variant."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    subsets = [*dict.fromkeys(subset for subset, _ in results)]
    lams = [*dict.fromkeys(lam for _, lam in results)]
    efforts = ("passes", "seconds")
    figure, axes = plt.subplots(
        2 * len(subsets),
        len(lams),
        squeeze=False,
        layout="constrained",
        figsize=(4.2 * len(lams), 5.6 * len(subsets)),
    )
    for (s, subset), (m, lam), (e, effort) in product(
        enumerate(subsets), enumerate(lams), enumerate(efforts)
    ):
        ax = axes[2 * s + e, m]
        for variant, history in results[subset, lam].items():
            positive = history["dual_gap"] > 0
            ax.loglog(
                history[effort][positive],
                history["dual_gap"][positive],
                color=COLORS[variant[:2]],
                linestyle="--" if variant[2] else "-",
                linewidth=1.3,
                label=variant_name(*variant),
            )
        ax.set(title=f"OCR-{subset}, $\\lambda$ = {lam:g}", xlabel=effort)
        ax.grid(alpha=0.3)
    for ax in axes[:, 0]:
        ax.set_ylabel("duality gap")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--subsets", nargs="+", default=["small", "large"])
    parser.add_argument("--lams", type=float, nargs="+", default=[0.1, 1e-3, 1e-4])
    parser.add_argument("--targets", type=float, nargs="+", default=[1e-1, 1e-2])
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument("--max-iter", type=int, default=2000)
    parser.add_argument("--max-time", type=float, default=20.0, help="of each fit")
    parser.add_argument("--check-every", type=int, default=10, help="passes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", default=str(HERE / "figures" / "variants.png"))
    args = parser.parse_args()
    header = ["", "last gap"]
    for target in args.targets:
        header += [f"passes to {target:g}", f"s to {target:g}", "times the plainest"]
    results = {}
    for subset, lam in product(args.subsets, args.lams):
        results[subset, lam] = run(*load_ocr(subset, args.data), lam, args)
        print(f"OCR-{subset}, lambda = {lam:g}\n")
        print_table(header, table_rows(results[subset, lam], args.targets))
    plot(results, HERE / args.figure)


if __name__ == "__main__":
    sys.exit(main())

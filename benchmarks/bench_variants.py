"""The eight variants of the paper's figures: gap against passes and seconds.

Gap or uniform sampling, Frank-Wolfe or pairwise steps, with or without cache, on
OCR-small and OCR-large. --sets conll: the sentences of CoNLL-2000. --sets shapes: in the
size of HorseSeg-small, 147 generated images of shapes cut into at most 150 superpixels,
with 500 random features of their noisy colors, 12 of pairs that touch, and minimum cuts
for an oracle, which need bounds on the weights of pairs. A pass is n calls of the oracle,
those of the gap checks included, which are a part of gap sampling.
"""

import sys
from itertools import product

from _common import (
    HERE,
    BCFWClassifier,
    ChainStructure,
    fit_quietly,
    load_ocr,
    make_axes,
    make_parser,
    np,
    print_table,
    reached,
    save_figure,
)

from sklearn_structsvm.datasets import fetch_conll2000, make_segmentation
from sklearn_structsvm.structures import GraphStructure

# The λ of the paper's figures 5 and 6 for the first three, and ones for the last that are
# as far apart.
LAMBDAS = {
    "OCR-small": [0.1, 1e-3, 1e-4],
    "OCR-large": [0.1, 1e-3, 1e-4],
    "conll": [0.1, 1e-2, 1e-4],
    "shapes": [10.0, 1.0, 0.1],
}
VARIANTS = [*product(("uniform", "gap"), ("fw", "pairwise"), (False, True))]
COLORS = {
    ("uniform", "fw"): "tab:blue",
    ("uniform", "pairwise"): "tab:green",
    ("gap", "fw"): "tab:orange",
    ("gap", "pairwise"): "tab:red",
    ("auto", "auto"): "black",
}
# What the estimator does where it is told nothing.
DEFAULT = ("auto", "auto", "auto")


def variant_name(sampling, step, cache):
    if (sampling, step, cache) == DEFAULT:
        return "default"
    return f"{sampling}, {step}{', cache' if cache else ''}"


def load(name, data_home):
    """Structure, X and y."""
    if name == "shapes":
        return GraphStructure(transition="potts", attractive=True), *make_shapes()
    if name == "conll":
        X, y = fetch_conll2000(data_home=data_home, return_X_y=True)
    else:
        X, y = load_ocr(name.removeprefix("OCR-"), data_home)
    return ChainStructure(), X, y


def make_shapes(n_samples=147, n_features=500):
    """Graphs of superpixels: random cosines of colors, and how alike pairs are."""
    data = make_segmentation(
        n_samples, shape=(48, 64), kind="shapes", size=10.0, noise=2.0,
        n_superpixels=150, random_state=0,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    frequencies = rng.standard_normal((3, n_features))
    phases = rng.uniform(0.0, 2.0 * np.pi, n_features)
    widths = 2.0 ** np.arange(-5, 6)
    X = []
    for colors, edges, *_ in data.X:
        colors = colors[:, :3]
        square = np.square(colors[edges[:, 0]] - colors[edges[:, 1]]).sum(axis=1)
        alike = np.exp(-np.outer(square, widths))
        pairs = np.hstack([np.ones((len(edges), 1)), alike])
        features = np.cos(colors @ frequencies + phases) * np.sqrt(2.0 / n_features)
        X.append((features, edges, pairs))
    return X, data.y


def run(structure, X, y, lam, args, variants=VARIANTS):
    """History of each variant, with passes counted by oracle calls."""
    histories = {}
    for sampling, step, cache in variants:
        model = BCFWClassifier(
            structure,
            C=1.0 / (lam * len(X)),
            solver_options={
                "sampling": sampling,
                "acceleration": "auto" if sampling == "auto" else False,
                "cache": cache,
                "max_time": args.max_time,
                "gap_check_interval": args.check_every,
            },
            step=step,
            tol=args.tol,
            max_iter=args.max_iter,
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
    """Draw a panel for each problem and measure of effort, a line for each variant.

    `results` has the histories of each problem's name and λ.
    """
    by_set = {}
    for name, lam in results:
        by_set.setdefault(name, []).append(lam)
    n_columns = max(map(len, by_set.values()))
    efforts = ("passes", "seconds")
    figure, axes = make_axes(2 * len(by_set), n_columns)
    for (s, name), m, (e, effort) in product(
        enumerate(by_set), range(n_columns), enumerate(efforts)
    ):
        ax = axes[2 * s + e, m]
        lam = by_set[name][m]
        for variant, history in results[name, lam].items():
            positive = history["dual_gap"] > 0
            ax.loglog(
                history[effort][positive],
                history["dual_gap"][positive],
                color=COLORS[variant[:2]],
                linestyle="--" if variant[2] is True else "-",
                linewidth=1.3,
                label=variant_name(*variant),
            )
        ax.set(title=f"{name}, $\\lambda$ = {lam:g}", xlabel=effort)
        ax.minorticks_off()
    for ax in axes[:, 0]:
        ax.set_ylabel("duality gap")
    save_figure(figure, axes, path)


def main():
    parser = make_parser(__doc__)
    parser.add_argument(
        "--sets", nargs="+", default=["OCR-small", "OCR-large"], choices=LAMBDAS
    )
    parser.add_argument("--lams", type=float, nargs="+", help="default: by set")
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
    for name in args.sets:
        problem = load(name, args.data)
        for lam in args.lams or LAMBDAS[name]:
            results[name, lam] = run(*problem, lam, args)
            print(f"{name}, lambda = {lam:g}\n")
            print_table(header, table_rows(results[name, lam], args.targets))
    plot(results, HERE / args.figure)


if __name__ == "__main__":
    sys.exit(main())

"""Figures 1 and 2 of the paper on BCFW: stale gaps, and the cache's two parameters.

A third part measures what the safeguard of its steps is worth.

staleness (Figure 1): plain steps by gap sampling, with a check of all block gaps after
    every 1, 5, 10 or 100 passes or never, beside uniform sampling. (a) the true gap; (b)
    the sum of the block gaps as last seen, as a share of the true one; (c) the factor
    that Theorem 2 promises for the current gaps, chi(g)^3 / chi(C), C_i taken from the
    largest |psi_i| seen, as in the paper.
cache (Figure 2): the same with a cache, F and nu of its criterion on a grid, to as many
    steps or calls of the oracle as --cache-passes has: (a) the share of steps that hit;
    (b) the gap against passes for some of them.
safeguard (appendix G): pairwise and away steps with it and without, as printed.

A pass is n calls of the oracle, those of the checks included; true gaps are measured
beside the runs and not counted. Writes figures/bcfw_staleness.png and bcfw_cache.png.
"""

import sys
from pathlib import Path

from _common import (
    HERE,
    ChainStructure,
    load_ocr,
    make_axes,
    make_parser,
    np,
    print_table,
    save_figure,
    true_gap,
)

from sklearn_structsvm.solvers.blocks.bcfw import make_pass, start_bcfw

REFRESH = {"gap 1": 1, "gap 5": 5, "gap 10": 10, "gap 100": 100, "gap inf": np.inf}
FACTORS = [0.0, 0.01, 0.1, 0.25, 0.5, 0.9, 2.0]
FLOORS = [0.0, 0.001, 0.01, 0.1, 0.5, 1.0, 10.0]
# (F, nu) whose gaps are drawn, and what the paper calls their regimes.
SHOWN = {
    (0.0, 0.0): "always hit",
    (0.25, 0.01): "local, the default",
    (0.9, 0.01): "local",
    (0.0, 0.5): "global",
    (0.0, 10.0): "hardly ever hit",
}
# Labelings kept: all that are seen, as in the paper.
ALL = 10**6
PASSES_BETWEEN_CHECKS = 10


def begin(problem, lam, **options):
    """An iterate of plain steps on OCR, with its gaps known."""
    X, y = problem
    structure = ChainStructure().fit(X, y)
    p = np.full(len(X), 1.0 / len(X))
    options = {"step": "fw", "cache": False, "cache_size": ALL} | options
    iterate, _, _ = start_bcfw(structure.make_oracle(X, y), p, lam, **options)
    iterate.check_gaps()
    return iterate


def run(iterate, sampling, refresh, passes, seed, look=lambda iterate: None):
    """Rows (passes, true gap, gap as last seen, chi of the block gaps), thinned.

    Ends after `passes` times n calls, or after as many steps where fewer are called for.
    `look` is called at passes 0, 1, 2, 4, ...
    """
    rng = np.random.default_rng(seed)
    n, rows, beside = len(iterate.active_blocks), [], 0
    shown = {0, *np.geomspace(1, passes, 60).astype(int)}
    for k in range(passes + 1):
        calls = iterate.n_oracle_calls
        spent = (calls - beside) / n
        if k in shown or spent >= passes:
            known, spread = iterate.estimated_gap, chi(iterate.block_gaps)
            rows.append((spent, true_gap(iterate), known, spread))
            beside += iterate.n_oracle_calls - calls
        if k & (k - 1) == 0:
            look(iterate)
        if spent >= passes:
            break
        make_pass(iterate, sampling, rng)
        if (k + 1) % refresh == 0:
            iterate.check_gaps()
    return np.array(rows)


def chi(x):
    """Definition 5: 1 for equal numbers, the root of n where all but one are zero."""
    x = np.maximum(x, 0.0)
    total = x.sum()
    return np.sqrt(len(x)) * np.linalg.norm(x) / total if total > 0.0 else np.nan


class Radii:
    """R_i^2, R_i the largest |psi_i(y)| of the labelings seen to violate most."""

    def __init__(self, problem):
        self.X, self.y = problem
        self.structure = ChainStructure().fit(*problem)
        self.squares = np.zeros(len(self.X))

    def look(self, iterate):
        w, structure = iterate.weights, self.structure
        for i, (x, labels) in enumerate(zip(self.X, self.y, strict=True)):
            worst = structure.loss_augmented_decode(x, labels, w)
            psi = structure.joint_feature(x, labels) - structure.joint_feature(x, worst)
            self.squares[i] = max(self.squares[i], psi @ psi)


def staleness(problem, args):
    """Rows by name of a run, and chi(C) by name of those in (c)."""
    runs, curvatures = {}, {}
    for name, refresh in {"uniform": np.inf, **REFRESH}.items():
        sampling = "uniform" if name == "uniform" else "gap"
        radii, options = Radii(problem), {}
        if name in ("uniform", "gap 10"):
            options = {"look": radii.look}
        iterate = begin(problem, args.lam)
        runs[name] = run(iterate, sampling, refresh, args.passes, args.seed, **options)
        if options:
            curvatures[name] = chi(radii.squares)
    return runs, curvatures


def at(rows, passes, column):
    """A column where the passes are first at least this many, or at the end."""
    return float(rows[min(np.searchsorted(rows[:, 0], passes), len(rows) - 1), column])


def print_staleness(runs, curvatures, args):
    marks = [p for p in (10, 30, 100, 300) if p <= args.passes]
    header = ["", *(f"gap, {p} passes" for p in marks)]
    header += [f"known / true, {p}" for p in marks]
    rows = []
    for name, run_ in runs.items():
        gaps = [at(run_, p, 1) for p in marks]
        known = [at(run_, p, 2) for p in marks]
        rows.append([name, *gaps, *(k / g for k, g in zip(known, gaps, strict=True))])
    print_table(header, rows)
    header = ["chi(g)^3 / chi(C)", "chi(C)", *(f"{p} passes" for p in marks)]
    rows = [
        [name, float(c), *(at(runs[name], p, 3) ** 3 / c for p in marks)]
        for name, c in curvatures.items()
    ]
    print_table(header, rows)


def plot_staleness(runs, curvatures, path):
    figure, axes = make_axes(1, 3)
    for name, rows in runs.items():
        style = {"color": "black", "linestyle": "--"} if name == "uniform" else {}
        axes[0, 0].loglog(rows[:, 0], rows[:, 1], label=name, **style)
        if name != "uniform":
            axes[0, 1].semilogx(rows[:, 0], rows[:, 2] / rows[:, 1])
        else:
            # The colors are those of the panel before.
            axes[0, 1].semilogx([], [], **style)
        if name in curvatures:
            factor = rows[:, 3] ** 3 / curvatures[name]
            axes[0, 2].loglog(rows[:, 0], factor, label=name, **style or {"color": "C2"})
    titles = ("(a) true gap", "(b) known / true gap", "(c) promised by Theorem 2")
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set(title=title, xlabel="passes")
    axes[0, 2].axhline(1.0, color="gray", linewidth=0.6)
    save_figure(figure, axes, path)


def cache_runs(problem, args):
    """By (F, nu): rows, share of hits, the gap at the end."""
    found = {}
    pairs = {(F, nu) for F in args.factors for nu in args.floors} | set(SHOWN)
    for F, nu in sorted(pairs):
        iterate = begin(problem, args.lam, cache=True, cache_factor=F, cache_floor=nu)
        rows = run(iterate, "gap", PASSES_BETWEEN_CHECKS, args.cache_passes, args.seed)
        hits = iterate.n_cache_hits / iterate.n_steps
        found[F, nu] = rows, hits, at(rows, args.cache_passes, 1)
        print(f"F = {F:g}, nu = {nu:g}: {hits:.0%}", file=sys.stderr)
    return found


def print_cache(found, args):
    for column, title in ((1, "share of steps that hit"), (2, "gap at the end")):
        print(f"{title}; rows F, columns nu\n")
        rows = [
            [f"{F:g}", *(float(found[F, nu][column]) for nu in args.floors)]
            for F in args.factors
        ]
        print_table(["", *(f"{nu:g}" for nu in args.floors)], rows)
    print("calls of the oracle / n at the end; rows F, columns nu\n")
    rows = [
        [f"{F:g}", *(float(found[F, nu][0][-1, 0]) for nu in args.floors)]
        for F in args.factors
    ]
    print_table(["", *(f"{nu:g}" for nu in args.floors)], rows)


def plot_cache(found, args, path):
    figure, axes = make_axes(1, 2)
    figure.set_size_inches(10.0, 6.0)
    shares = [[found[F, nu][1] for nu in args.floors] for F in args.factors]
    axes[0, 0].imshow(
        shares, vmin=0, vmax=1, cmap="viridis", origin="lower", aspect="auto"
    )
    for row, values in enumerate(shares):
        for column, value in enumerate(values):
            axes[0, 0].text(
                column, row, f"{value:.0%}", ha="center", va="center", fontsize=10,
                color="black" if value > 0.5 else "white",
            )  # fmt: skip
    floors = [f"{nu:g}" for nu in args.floors]
    axes[0, 0].set_xticks(range(len(floors)), floors, rotation=45)
    axes[0, 0].set_yticks(range(len(args.factors)), [f"{F:g}" for F in args.factors])
    axes[0, 0].set(title="(a) share of hits", xlabel="$\\nu$", ylabel="F")
    for (F, nu), regime in SHOWN.items():
        rows = found[F, nu][0]
        label = f"F = {F:g}, $\\nu$ = {nu:g}: {regime}"
        axes[0, 1].loglog(rows[:, 0], rows[:, 1], label=label)
    axes[0, 1].set(title="(b) true gap", xlabel="passes")
    save_figure(figure, axes[:, 1:], path)


def print_safeguard(problem, args):
    """The true gap by passes, of pairwise and away steps."""
    marks = [p for p in (10, 30, 100, 300) if p <= args.passes]
    rows = []
    for step in ("pairwise", "away"):
        for safeguard in (True, False):
            iterate = begin(problem, args.lam, step=step, safeguard=safeguard)
            found = run(iterate, "gap", PASSES_BETWEEN_CHECKS, args.passes, args.seed)
            name = f"{step}, {'with' if safeguard else 'without'} the safeguard"
            rows.append([name, *(at(found, p, 1) for p in marks)])
    print_table(["", *(f"gap, {p} passes" for p in marks)], rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--subset", default="large", choices=["small", "large"])
    parser.add_argument("--lam", type=float, default=1e-3)
    parser.add_argument("--passes", type=int, default=300)
    parser.add_argument("--cache-passes", type=int, default=100)
    parser.add_argument("--factors", type=float, nargs="+", default=FACTORS)
    parser.add_argument("--floors", type=float, nargs="+", default=FLOORS)
    parts = ["staleness", "cache", "safeguard"]
    parser.add_argument("--parts", nargs="+", default=parts, choices=parts)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figures", default=str(HERE / "figures"), help="folder")
    args = parser.parse_args()
    problem = load_ocr(args.subset, args.data)
    print(f"OCR-{args.subset}, lambda = {args.lam:g}\n")
    if "staleness" in args.parts:
        runs = staleness(problem, args)
        print_staleness(*runs, args)
        plot_staleness(*runs, Path(args.figures, "bcfw_staleness.png"))
    if "cache" in args.parts:
        found = cache_runs(problem, args)
        print_cache(found, args)
        plot_cache(found, args, Path(args.figures, "bcfw_cache.png"))
    if "safeguard" in args.parts:
        print_safeguard(problem, args)


if __name__ == "__main__":
    sys.exit(main())

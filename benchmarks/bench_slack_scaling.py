"""How the time of one search grows with the number of labels.

A search is for the most violating labeling of slack rescaling, by angular search, with
the potentials that it needs; beside it is one call of the max-oracle of margin
rescaling at the same weights. Data are generated, and weights are those after a few
passes of training (slack rescaling, lambda = 1/n); the work of a search depends on both.
The growth is the local exponent b of ms ~ size^b between a line and the line before;
for 2^k it would be about 0.7 k. A series ends before the size whose search is
expected to take longer than --slowest seconds, or its training longer than a minute.

queries: calls of the (constrained) λ-oracle, which where labelings are listed (all
    structures but roof and lp) are looks at that list.
"""

import sys
from time import perf_counter

from _common import has_highs, make_parser, np, print_table

from sklearn_structsvm.datasets import make_chains, make_hierarchical, make_multilabel
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw, start_bcfw
from sklearn_structsvm.structures import (
    ChainStructure,
    HierarchicalStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
)

F = 20
SIZES = (2, 5, 10, 20, 50, 100, 200)
# A pass is timed until this many seconds are over, and if it is quick this many times.
TIMING = 0.05
MIN_TIMINGS = 3
TRAINING_LIMIT = 60.0
# Those of the two gap checks of the training, and of the timing.
N_OTHER_PASSES = 4


def multilabel(structure):
    def make(k, n):
        X, Y = make_multilabel(
            n, n_features=F, n_classes=k, n_labels=min(k / 2, 3.0), random_state=0
        )
        return structure, X, Y

    return make


def chains(length=None, n_classes=None):
    """Chains of this length and number of classes; the size replaces None."""

    def make(size, n):
        X, y = make_chains(
            n,
            n_features=F,
            n_classes=n_classes or size,
            min_length=length or size,
            max_length=length or size,
            random_state=0,
        )
        return ChainStructure(normalize_loss=False), X, y

    return make


def hierarchy(k, n):
    X, Y, edges = make_hierarchical(
        n,
        n_features=F,
        n_nodes=k + max(k // 4, 1),
        n_leaves=k,
        n_labels=min(k / 2, 2.0),
        random_state=0,
    )
    return HierarchicalStructure(edges), X, Y


def pairwise(inference, pairs="all"):
    return multilabel(PairwiseMultilabelStructure(pairs, inference=inference))


SERIES = {
    "independent labels": (SIZES, multilabel(MultilabelStructure())),
    "pairwise, by enumeration": (
        (2, 4, 6, 8, 10, 12, 14, 16, 18),
        pairwise("enumerate"),
    ),
    "pairwise, roof": (SIZES, pairwise("roof")),
    "pairwise, lp": (SIZES, pairwise("lp")),
    "pairwise, a tree, roof": (SIZES, pairwise("roof", "tree")),
    "pairwise, a tree, lp": (SIZES, pairwise("lp", "tree")),
    "length of a chain of 10 classes": (SIZES, chains(n_classes=10)),
    "classes of a chain of length 10": (SIZES, chains(length=10)),
    "leaves of a hierarchy": (SIZES, hierarchy),
}


def pass_time(solver, w, slowest):
    """Seconds of one oracle call at w for each block: the quickest of a few passes."""
    times = []
    while sum(times) < TIMING or (len(times) < MIN_TIMINGS and times[0] < slowest):
        start = perf_counter()
        solver.hinge(w)
        times.append(perf_counter() - start)
    return min(times) / len(solver.active_blocks)


def measure(make, size, args):
    """Seconds of a search and of a max-oracle, and queries of a search."""
    structure, X, y = make(size, args.n)
    structure.fit(X, y, **({"bias": 1.0} if structure.flat else {}))
    p = np.full(args.n, 1.0 / args.n)

    def searcher():
        return SlackOracle(structure.make_oracle(X, y), "angular", args.rtol)

    iterate, _, _ = start_bcfw(searcher(), p, 1.0 / args.n, step="pairwise", cache=False)
    limits = {"tol": 0.0, "max_iter": args.passes, "max_time": TRAINING_LIMIT}
    w = run_bcfw(iterate, gap_check_interval=args.passes, rng=0, **limits).weights
    oracle = searcher()
    slack = BlockFrankWolfe(oracle, p, 1.0)
    # The first pass only finds the λ at which a search in training would begin.
    slack.hinge(w)
    asked, calls = oracle.n_queries, slack.n_oracle_calls
    seconds = pass_time(slack, w, args.slowest)
    queries = (oracle.n_queries - asked) / (slack.n_oracle_calls - calls)
    margin = BlockFrankWolfe(structure.make_oracle(X, y), p, 1.0)
    return seconds, pass_time(margin, w, args.slowest), queries


def grow(name, sizes, make, args):
    rows, last, exponent = [], None, 0.0
    for size in sizes:
        if size > args.largest:
            break
        if last is not None:
            expected = last[1] * (size / last[0]) ** max(exponent, 1.0)
            training = expected * args.n * (args.passes + N_OTHER_PASSES)
            if expected > args.slowest or training > TRAINING_LIMIT:
                print(f"[{name}: stopped before {size}]\n")
                break
        seconds, margin, queries = measure(make, size, args)
        growth = np.inf
        if last is not None:
            growth = exponent = float(np.log(seconds / last[1]) / np.log(size / last[0]))
        last = size, seconds
        ratio = seconds / margin
        rows.append([size, 1e3 * seconds, 1e3 * margin, ratio, queries, growth])
    header = [name, "ms a search", "ms a max-oracle", "ratio", "queries", "growth"]
    print_table(header, rows)


def main():
    parser = make_parser(__doc__)
    parser.add_argument(
        "--series",
        type=int,
        nargs="+",
        default=range(len(SERIES)),
        help=f"which, by number: {', '.join(f'{i} {s}' for i, s in enumerate(SERIES))}",
    )
    parser.add_argument("--n", type=int, default=20, help="examples")
    parser.add_argument("--passes", type=int, default=3, help="of the training")
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--largest", type=int, default=200, help="size")
    parser.add_argument("--slowest", type=float, default=0.5, help="search, in seconds")
    args = parser.parse_args()
    for i, (name, (sizes, make)) in enumerate(SERIES.items()):
        if i in args.series and ("lp" not in name or has_highs()):
            grow(name, sizes, make, args)


if __name__ == "__main__":
    sys.exit(main())

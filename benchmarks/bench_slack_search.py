"""How the searches for the most violating labeling compare: Table 1 of the paper.

Choi, Meshi and Srebro trained multilabel models with pairwise potentials by cutting
planes, and in each round let every search look for a violated constraint of each
example, at the same weights; the answers of angular search alone were learned from.
This script does the same on yeast (14 labels) and on Reuters-21578 (its most frequent
topics, where the paper has those of RCV1), with the first 160 examples of each.

success: the share of searches that found a labeling whose violation L (1 + f(y) - f(y_i))
    exceeds the example's slack by more than --eps.
missed: of the cases in which any search, or the one through all labelings, found a
    violator, the share in which this search did not.
queries: calls of the (constrained) λ-oracle in a search. Over an enumeration the
    oracle reads a table that is made once in each search.
ms: of a search with the potentials that it needs, the mean over all rounds.

"enumerate" goes through all labelings and is exact. "roof" and "lp" are over the local
polytope with its fractional labelings, as in the paper, by maximum flow and by HiGHS,
and stop at 1 - --rtol of the largest violation.
"""

import sys
from time import perf_counter

from _common import (
    has_highs,
    load_reuters,
    load_yeast,
    make_parser,
    np,
    print_table,
)

from sklearn_structsvm.solvers.blocks._empirical_risk import EmpiricalRisk
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.bcfw import CACHE_SIZE
from sklearn_structsvm.solvers.blocks.cutting_plane import _WorkingSets
from sklearn_structsvm.structures import PairwiseMultilabelStructure
from sklearn_structsvm.structures._probe import Probe

SEARCHES = ("angular", "bisecting", "sarawagi", "binary")


class Contender:
    """A search and its counts.

    Parameters
    ----------
    structure : Structure, fitted
    X, Y : the examples
    search : str
    rtol : float
    n_asked : int
        How many examples it is asked about in a round, each time the next ones.
    """

    def __init__(self, structure, X, Y, search, rtol, n_asked):
        self.inner = structure.make_oracle(X, Y)
        # Each search is to find by itself what it finds.
        self.oracle = SlackOracle(self.inner, search, rtol, cache_size=0)
        self.n_asked = min(n_asked, len(Y))
        self.seconds = 0.0
        self.n_queries = 0
        self.asked = []
        self.found = []

    def ask(self, w, slacks, eps):
        """One search for each example; notes which found a violator."""
        n = len(slacks)
        asked = np.zeros(n, dtype=bool)
        first = len(self.asked) * self.n_asked
        asked[np.arange(first, first + self.n_asked) % n] = True
        self.risk = EmpiricalRisk(self.oracle, asked / asked.sum())
        self.oracle.slacks[:] = slacks
        before, start = self.oracle.n_queries, perf_counter()
        self.risk.ask(w)
        self.seconds += perf_counter() - start
        self.n_queries += self.oracle.n_queries - before
        labels, starts = self.risk.answers
        found = np.zeros(n, dtype=bool)
        for i in np.flatnonzero(asked):
            labeling = labels[starts[i] : starts[i + 1]]
            score, loss = Probe(self.inner, i, w).evaluate(labeling)
            found[i] = (1.0 + score) * loss > slacks[i] + eps
        self.asked.append(asked)
        self.found.append(found)

    def row(self, name, violated):
        """Row of the table; `violated` marks the examples that have a violator."""
        asked = np.array(self.asked)
        found, there = np.array(self.found)[asked], violated[asked]
        return [
            name,
            len(found),
            f"{100 * found.mean():.1f} %",
            f"{(there & ~found).sum()} of {there.sum()}",
            self.n_queries / len(found),
            1e3 * self.seconds / len(found),
        ]


def train(trainer, contenders, args):
    """Train by planes of one search, and ask the other searches at the same weights."""
    n = trainer.n_asked
    p = np.full(n, 1.0 / n)
    rng = np.random.default_rng(0)
    model = _WorkingSets(trainer.oracle, p, args.lam, CACHE_SIZE, rng)
    deadline = perf_counter() + args.max_time
    for _ in range(args.rounds):
        w = model.weights.copy()
        slacks = model.iterate.largest_cached()
        for contender in (trainer, *contenders):
            contender.ask(w, slacks, args.eps)
            if contender is not trainer:
                contender.risk.release_answers()
        if not trainer.found[-1].any():
            return "no violation left"
        model.gap = 0.5 * model.iterate.lam * w.dot(w) - model.dual_objective
        model.gap += float(np.mean(trainer.risk.block_values))
        model.risk = trainer.risk
        model.improve(args.eps, np.inf)
        if perf_counter() >= deadline:
            return "out of time"
    return "out of rounds"


def compare(title, X, Y, inferences, n_asked, args):
    """The table of one data set, by enumeration or by relaxations.

    `n_asked` says for each inference how many of its searches there are in a round.
    """
    structures = {
        name: PairwiseMultilabelStructure(inference=name).fit(X, Y, bias=1.0)
        for name in inferences
    }
    first = inferences[0]
    exact = first == "enumerate"
    rtol = args.exact_rtol if exact else args.rtol
    trainer = Contender(structures[first], X, Y, "angular", rtol, len(Y))
    contenders = {}
    for name, structure in structures.items():
        for search in SEARCHES:
            if (name, search) != (first, "angular"):
                contenders[f"{name}: {search}"] = Contender(
                    structure, X, Y, search, rtol, n_asked[name]
                )
    if Y.shape[1] <= args.enumerate_to:
        # Also where it is only to tell what the relaxations must find.
        structure = PairwiseMultilabelStructure(inference="enumerate")
        structure.fit(X, Y, bias=1.0)
        contenders["enumerate: exact"] = Contender(structure, X, Y, "exact", 0.0, len(Y))
    end = train(trainer, contenders.values(), args)
    everyone = {f"{first}: angular": trainer} | contenders
    violated = np.logical_or.reduce([c.found for c in everyone.values()])
    rounds = len(trainer.found)
    print(f"{title}, {len(Y)} examples, {rounds} rounds by {first} ({end})\n")
    print_table(
        ["", "searches", "success", "missed", "queries", "ms"],
        [c.row(name, violated) for name, c in everyone.items()],
    )


def first_examples(X, Y, n):
    """The first n, with only those features that occur in them."""
    X, Y = X[:n], Y[:n]
    return X[:, np.flatnonzero(np.ravel(abs(X).sum(axis=0)))], Y


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["yeast", "reuters"])
    parser.add_argument("--n", type=int, default=160, help="examples")
    parser.add_argument("--topics", type=int, default=50, help="of reuters")
    parser.add_argument("--lam", type=float, default=0.1)
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--rtol", type=float, default=1e-3, help="of the relaxations")
    parser.add_argument("--exact-rtol", type=float, default=0.0, help="by enumeration")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--max-time", type=float, default=60.0, help="of each training")
    parser.add_argument(
        "--lp-examples",
        type=int,
        nargs=2,
        default=[16, 2],
        help="which lp is asked about in each round, of yeast and of reuters",
    )
    parser.add_argument("--enumerate-to", type=int, default=16, help="labels")
    args = parser.parse_args()
    relaxations = ["roof", "lp"] if any(args.lp_examples) and has_highs() else ["roof"]
    n_asked = dict.fromkeys(("enumerate", "roof"), args.n)
    if "yeast" in args.sets and (data := load_yeast(args.data)):
        X, Y = first_examples(*data[:2], args.n)
        n_asked["lp"] = args.lp_examples[0]
        compare("yeast", X, Y, ["enumerate"], n_asked, args)
        compare("yeast", X, Y, relaxations, n_asked, args)
    if "reuters" in args.sets and (data := load_reuters(args.data, args.topics)):
        X, Y = first_examples(*data[:2], args.n)
        n_asked["lp"] = args.lp_examples[1]
        name = f"reuters, {args.topics} topics"
        compare(name, X, Y, relaxations, n_asked, args)


if __name__ == "__main__":
    sys.exit(main())

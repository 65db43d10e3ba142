"""How the searches for the most violating labeling compare: Table 1 of the paper.

Choi, Meshi and Srebro trained multilabel models with pairwise potentials by cutting
planes, and in each round let every search look for a violated constraint of each
example, at the same weights; the answers of angular search alone were learned from.
Here it is done again, on yeast (14 labels) and on Reuters-21578 (its most frequent
topics, where the paper has those of RCV1), with the first 160 examples of each.

success: the share of searches that found a labeling whose violation L (1 + f(y) - f(y_i))
    exceeds the example's slack by more than --eps.
missed: how often a search found none although another search, or the one through all
    labelings, did; as a share of the cases where there was one.
queries: calls of the (constrained) λ-oracle in a search. Over an enumeration the
    oracle reads a table that is made once in each search.
ms: of a search with the potentials that it needs, the mean over all rounds.

"enumerate" goes through all labelings and is exact. "roof" and "lp" are over the local
polytope with its fractional labelings, as in the paper, by maximum flow and by HiGHS,
and stop at 1 - --rtol of the largest violation. "with memory" begins, as a training over
the linear program does, with the labelings of the rounds before; the others begin anew,
from the λ at which they ended.
"""

import sys
from time import perf_counter

from _common import load_reuters, load_yeast, make_parser, np, print_table

from sklearn_structsvm.solvers._joint_oracle import JointOracle
from sklearn_structsvm.solvers._slack_oracle import SlackOracle, points_of
from sklearn_structsvm.solvers.bcfw import CACHE_SIZE
from sklearn_structsvm.solvers.cutting_plane import _WorkingSets
from sklearn_structsvm.structures import PairwiseMultilabelStructure

SEARCHES = ("angular", "bisecting", "sarawagi", "binary")
REMEMBERING = ", with memory"
MEMORY = f"angular{REMEMBERING}"


class Contender:
    """A search and what it did.

    Parameters
    ----------
    structure : Structure, fitted
    X, Y : the examples
    search : str
    rtol : float
    asked : ndarray of bool
        Which examples it is asked about.
    """

    def __init__(self, structure, X, Y, search, rtol, asked):
        self.inner = structure.make_oracle(X, Y)
        size = {} if search == MEMORY else {"cache_size": 0}
        search = search.removesuffix(REMEMBERING)
        self.oracle = SlackOracle(self.inner, search, rtol, **size)
        self.asked = asked
        self.risk = JointOracle(self.oracle, asked / asked.sum())
        self.seconds = 0.0
        self.n_queries = 0
        self.found = []

    def ask(self, w, slacks, eps):
        """One search for each example; notes which found a violator."""
        self.oracle.slacks[:] = slacks
        before, start = self.oracle.n_queries, perf_counter()
        self.risk.ask(w)
        self.seconds += perf_counter() - start
        self.n_queries += self.oracle.n_queries - before
        labels, starts = self.risk.answers
        found = np.zeros(len(slacks), dtype=bool)
        for i in np.flatnonzero(self.asked):
            labeling = labels[np.newaxis, starts[i] : starts[i + 1]]
            h, g = points_of(self.inner, i, w, labeling)[0]
            found[i] = h * g > slacks[i] + eps
        self.found.append(found)

    def row(self, name, violated):
        """Of the table; `violated` says where there was something to find."""
        found = np.concatenate([part[self.asked] for part in self.found])
        there = np.concatenate([part[self.asked] for part in violated])
        missed = (there & ~found).sum() / max(there.sum(), 1)
        n, rounds = len(found), len(self.found)
        return [
            name,
            f"{rounds} x {n // rounds}",
            f"{100 * found.mean():.1f} %",
            f"{100 * missed:.2f} %",
            self.n_queries / n,
            1e3 * self.seconds / n,
        ]


def train(trainer, contenders, args):
    """Cutting planes from the trainer's answers, the others asked along the way."""
    n = len(trainer.asked)
    p = np.full(n, 1.0 / n)
    rng = np.random.default_rng(0)
    model = _WorkingSets(trainer.oracle, p, args.lam or 1.0 / n, CACHE_SIZE, rng)
    model.risk = trainer.risk
    deadline = perf_counter() + args.max_time
    for _ in range(args.rounds):
        w = model.weights.copy()
        slacks = model.iterate.largest_at_hand()
        for contender in (trainer, *contenders):
            contender.ask(w, slacks, args.eps)
            if contender is not trainer:
                contender.risk.forget()
        if not trainer.found[-1].any():
            return "no violation left"
        model.gap = 0.5 * model.iterate.lam * w.dot(w) - model.dual_objective
        model.gap += float(np.mean(trainer.risk.block_values))
        model.improve(args.eps, np.inf)
        if perf_counter() >= deadline:
            return "out of time"
    return "out of rounds"


def compare(title, X, Y, inferences, n_asked, args):
    """The table of one data set, by enumeration or by relaxations.

    `n_asked` says for each inference about how many examples its searches are asked.
    """
    structures = {
        name: PairwiseMultilabelStructure(inference=name).fit(X, Y, bias=1.0)
        for name in inferences
    }
    everywhere = np.ones(len(Y), dtype=bool)
    first = inferences[0]
    exact = first == "enumerate"
    rtol = 0.0 if exact else args.rtol
    trainer = Contender(structures[first], X, Y, "angular", rtol, everywhere)
    contenders = {}
    for name, structure in structures.items():
        asked = np.arange(len(Y)) < n_asked[name]
        for search in SEARCHES if name == first else (MEMORY, *SEARCHES):
            if (name, search) != (first, "angular"):
                contenders[f"{name}: {search}"] = Contender(
                    structure, X, Y, search, rtol, asked
                )
    if Y.shape[1] <= args.enumerate_to:
        # Also where it is only to tell what the relaxations must find.
        structure = PairwiseMultilabelStructure(inference="enumerate")
        structure.fit(X, Y, bias=1.0)
        contenders["enumerate: exact"] = Contender(
            structure, X, Y, "exact", 0.0, everywhere
        )
    end = train(trainer, contenders.values(), args)
    everyone = {f"{first}: angular": trainer} | contenders
    violated = np.logical_or.reduce([c.found for c in everyone.values()])
    print(f"{title}, {len(Y)} examples, trained by {first} ({end})\n")
    print_table(
        ["", "rounds x examples", "success", "missed", "queries", "ms"],
        [c.row(name, violated) for name, c in everyone.items()],
    )


def first_examples(X, Y, n):
    """The first n, with only those features that occur in them."""
    X, Y = X[:n], Y[:n]
    return X[:, np.flatnonzero(np.ravel(abs(X).sum(axis=0)))], Y


def has_highs():
    try:
        import highspy  # noqa: F401
    except ImportError:
        print("[skipped lp: highspy is not installed]\n")
        return False
    return True


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["yeast", "reuters"])
    parser.add_argument("--n", type=int, default=160, help="examples")
    parser.add_argument("--topics", type=int, default=50, help="of reuters")
    parser.add_argument("--lam", type=float, help="default: 1/n")
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--rtol", type=float, default=1e-3, help="of the relaxations")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--max-time", type=float, default=60.0, help="of each training")
    parser.add_argument(
        "--roof-examples", type=int, default=160, help="asked about in each round"
    )
    parser.add_argument("--lp-examples", type=int, default=16, help="the same of lp")
    parser.add_argument("--enumerate-to", type=int, default=16, help="labels")
    args = parser.parse_args()
    n_asked = {
        "enumerate": args.n,
        "roof": args.roof_examples,
        "lp": args.lp_examples,
    }
    relaxations = ["roof", "lp"] if args.lp_examples and has_highs() else ["roof"]
    if "yeast" in args.sets and (data := load_yeast(args.data)):
        X, Y = first_examples(*data[:2], args.n)
        compare("yeast", X, Y, ["enumerate"], n_asked, args)
        compare("yeast", X, Y, relaxations, n_asked, args)
    if "reuters" in args.sets and (data := load_reuters(args.data, args.topics)):
        X, Y = first_examples(*data[:2], args.n)
        name = f"reuters, {args.topics} topics"
        compare(name, X, Y, relaxations, n_asked, args)


if __name__ == "__main__":
    sys.exit(main())

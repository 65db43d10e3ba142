"""CPU seconds of conditional random fields to a relative 1e-3, beside CRFsuite.

Ours are certified by the duality gap. CRFsuite has no certificate: it is credited with
the first iteration within 1e-3 of the best loss that any of its algorithms reaches with
this c2, and a second column has its seconds until it stops by itself. All have the same
strength of regularization, that of CRFsuite being c2; it is given all transitions, and of
attributes and labels those that occur together. CRFSUITE_PYTHON names an interpreter that
has python-crfsuite, CHAINE_PYTHON one that has chaine and NumPy.

With ``--cv`` one more table: c2 is chosen by cross-validation on the training part, and
all of its fits are counted, ours at the default ``tol``.
"""

import sys
from time import process_time

from _common import (
    ChainStructure,
    fit_quietly,
    fit_seconds,
    load_ocr,
    make_parser,
    np,
    peer_python,
    print_table,
    saved,
)
from _crfsuite import run_crfsuite
from _tagging import load_ewt
from scipy import sparse
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import fetch_conll2000
from sklearn_structsvm.metrics import (
    entity_f1_score,
    entity_f1_scorer,
    token_accuracy_score,
    token_accuracy_scorer,
)
from sklearn_structsvm.preprocessing import SequenceTransformer

RELATIVE = 1e-3
# Name of a problem: subsets of OCR that are for training and test.
OCR = {
    "ocr-small": ("small", "large"),
    "ocr-small-scaled": ("small", "large"),
    "ocr-large": ("large", "small"),
}
# Those of CRFsuite's algorithms that minimize our objective, and those that do not.
LIKELIHOODS, OTHERS = ("lbfgs", "l2sgd"), ("ap", "pa", "arow")


def load(name, data_home):
    """X, y, X_test, y_test and the structure of a problem, or None."""
    if name == "conll2000":
        parts = [
            fetch_conll2000(subset=subset, data_home=data_home, return_X_y=True)
            for subset in ("train", "test")
        ]
        return *parts[0], *parts[1], ChainStructure()
    if name in OCR:
        (X, y), (X_test, y_test) = (load_ocr(subset, data_home) for subset in OCR[name])
        if name.endswith("scaled"):
            scaler = SequenceTransformer(StandardScaler())
            X, X_test = scaler.fit_transform(X), scaler.transform(X_test)
        return X, y, X_test, y_test, ChainStructure()
    data = load_ewt(data_home)
    if data is None:
        return None
    # Its attributes have the biases.
    return *data, ChainStructure(bias=False, first_bias=False, last_bias=False)


def measure(name):
    """Title of the column, scorer for a search, and a function of true and found."""

    def error(y, p):
        return 1.0 - token_accuracy_score(y, p)

    if name == "conll2000":
        return "test chunk F1", entity_f1_scorer, lambda y, p: 100 * entity_f1_score(y, p)
    return "test error", token_accuracy_scorer, error


def own_row(problem, score, c2, solver, repeats):
    """Row of the table: the median of the repetitions, each with its own seed."""
    X, y, X_test, y_test, structure = problem
    model = CRFClassifier(structure, C=0.5 / c2, solver=solver, random_state=0)
    # The objective that the gap is to be relative to, not timed.
    objective = fit_quietly(model.set_params(tol=0.02), X, y).objective_
    model.set_params(tol=RELATIVE * objective)
    seconds = fit_seconds(model, X, y, repeats)
    found = score(y_test, model.predict(X_test))
    return [f"library, {solver}", f"{c2:g}", seconds, seconds, model.n_iter_, found]


class Peer:
    """CRFsuite, or chaine, by the interpreter that has it.

    Parameters
    ----------
    name : str
    python : str
    algorithm : str
    is_chaine : bool
    """

    def __init__(self, name, python, algorithm, is_chaine=False):
        self.name, self.python, self.algorithm = f"{name}, {algorithm}", python, algorithm
        self.is_chaine = is_chaine

    def run(self, problem, c2=None):
        """Facts of a training, and the labels of the test part."""
        X, y, X_test, y_test, structure = problem
        classes = np.unique(np.concatenate([*y, *y_test]))
        problems = {
            "train": ([*map(sparse.csr_array, X)], y, classes),
            "test": ([*map(sparse.csr_array, X_test)], y_test, classes),
        }
        lengths = [len(labels) for labels in y_test]
        params = {"feature.possible_transitions": 1}
        if any(x.min() < 0.0 for x in X):
            # It takes the sum of the values for how often a feature occurs.
            params["feature.minfreq"] = -1e9
        if c2 is not None:
            params["c2"] = c2
        with saved(**problems) as paths:
            return run_crfsuite(
                self.python,
                (self.algorithm, params),
                paths,
                classes,
                lengths,
                biases=structure.bias,
                chaine=self.is_chaine,
            )


def peer_rows(peers, problem, score, c2):
    runs = {peer: peer.run(problem, c2) for peer in peers}
    losses = [facts["losses"] for facts, _ in runs.values() if facts["losses"]]
    best = min(map(min, losses)) if c2 is not None and losses else -np.inf
    rows = []
    for peer, (facts, found) in runs.items():
        cpu, n = facts["cpu_seconds"], len(facts["losses"])
        within = np.flatnonzero(np.array(facts["losses"]) <= (1.0 + RELATIVE) * best)
        reached = (within[0] + 1) / n * cpu if len(within) else np.inf
        c = "-" if c2 is None else f"{c2:g}"
        rows.append(
            [peer.name, c, reached, cpu, facts["n_iter"], score(problem[3], found)]
        )
    return rows


def print_fits(name, problem, args, peers):
    """The table of fits with each c2, and of those that have none."""
    title, _, score = measure(name)
    rows, own_seconds = [], {}
    for c2 in args.c2:
        rows += [own_row(problem, score, c2, s, args.repeats) for s in args.solvers]
        own_seconds[f"{c2:g}"] = rows[-len(args.solvers)][2]
        penalized = [peer for peer in peers if peer.algorithm in LIKELIHOODS]
        rows += peer_rows(penalized, problem, score, c2)
    rows += peer_rows([p for p in peers if p.algorithm in OTHERS], problem, score, None)
    print(f"{name}: {len(problem[0])} sequences\n")
    # Those that have no c2 beside our slowest fit.
    slowest = max(own_seconds.values())
    for row in rows:
        seconds = row[2] if np.isfinite(row[2]) else row[3]
        row.append(seconds / own_seconds.get(row[1], slowest))
    print_table(
        ["", "c2", "CPU s to 1e-3", "CPU s in all", "passes", title, "times our time"],
        rows,
    )


def print_searches(name, problem, args, peers):
    """The table of searches over c2 by cross-validation on the training part."""
    title, scorer, score = measure(name)
    X, y, X_test, y_test, structure = problem
    # Equal words stand side by side: without shuffling, folds would have none in common.
    folds = KFold(args.cv, shuffle=True, random_state=0)
    model = CRFClassifier(structure, solver=args.solvers[0], random_state=0)
    grid = {"C": [0.5 / c2 for c2 in args.c2]}
    search = GridSearchCV(model, grid, scoring=scorer, cv=folds)
    start = process_time()
    fit_quietly(search, X, y)
    seconds = process_time() - start
    c2 = 0.5 / search.best_params_["C"]
    found = score(y_test, search.predict(X_test))
    rows = [[f"library, {model.solver}", f"{c2:g}", seconds, found, 1.0]]
    # Errors are the smaller the better.
    sign = 1.0 if name == "conll2000" else -1.0
    for peer in peers:
        if peer.algorithm not in LIKELIHOODS:
            continue
        scores, charged = np.zeros(len(args.c2)), 0.0
        for train, test in folds.split(X):
            parts = [[data[i] for i in rows] for rows in (train, test) for data in (X, y)]
            for j, c2 in enumerate(args.c2):
                facts, found = peer.run((*parts, structure), c2)
                charged += facts["cpu_seconds"]
                scores[j] += sign * score(parts[3], found)
        c2 = args.c2[int(scores.argmax())]
        facts, found = peer.run(problem, c2)
        charged += facts["cpu_seconds"]
        ratio = charged / seconds
        rows.append([peer.name, f"{c2:g}", charged, score(y_test, found), ratio])
    print(f"{name}: c2 of {len(args.c2)} by cross-validation in {args.cv} folds\n")
    print_table(["", "c2 chosen", "CPU s in all", title, "times our time"], rows)


def main():
    parser = make_parser(__doc__)
    names = [*OCR, "conll2000", "ud_ewt"]
    parser.add_argument("--problems", nargs="+", choices=names, default=names)
    parser.add_argument("--c2", type=float, nargs="+", default=[1.0, 0.1])
    parser.add_argument("--solvers", nargs="+", default=["dual", "lbfgs"])
    parser.add_argument(
        "--algorithms",
        nargs="*",
        choices=[*LIKELIHOODS, *OTHERS],
        default=["lbfgs", "l2sgd", "ap", "pa"],
        help="of CRFsuite",
    )
    parser.add_argument("--chaine", default="l2sgd", help="its algorithm; '' for none")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cv", type=int, default=0, help="folds; 0: no search")
    args = parser.parse_args()
    peers = []
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    if python:
        peers += [Peer("CRFsuite", python, algorithm) for algorithm in args.algorithms]
    python = peer_python("CHAINE_PYTHON", "chaine") if args.chaine else None
    if python:
        peers.append(Peer("chaine", python, args.chaine, is_chaine=True))
    for name in args.problems:
        problem = load(name, args.data)
        if problem is None:
            continue
        print_fits(name, problem, args, peers)
        if args.cv:
            print_searches(name, problem, args, peers)


if __name__ == "__main__":
    sys.exit(main())

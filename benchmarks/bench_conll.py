"""CoNLL-2000 chunking: time of a pass, memory, chunk F1, beside CRFsuite.

Both see the same binary attributes. Ours chooses C on a held-out fifth of the training
sentences; CRFsuite is tried with every setting, and its best test score counts. Each
training runs in a process of its own. CRFSUITE_PYTHON names an interpreter that has
python-crfsuite.
"""

import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from _common import (
    chain_classifier,
    fit_quietly,
    make_parser,
    np,
    pass_seconds,
    peak_megabytes,
    peer_python,
    print_table,
    run_lines,
    saved,
)
from _crfsuite import SETTINGS, run_crfsuite
from scipy import sparse

from sklearn_structsvm.datasets import fetch_conll2000
from sklearn_structsvm.metrics import entity_f1_score
from sklearn_structsvm.structures import ChainStructure

MAX_ITER = 10


def load_saved(path):
    """Items and label indices of a file that `saved` wrote."""
    with np.load(path) as problem:
        shape = len(problem["y"]), int(problem["n_features"])
        parts = problem["data"], problem["indices"], problem["indptr"]
        offsets, y = problem["offsets"], problem["y"]
    rows = sparse.csr_matrix(parts, shape=shape)
    bounds = zip(offsets[:-1], offsets[1:], strict=True)
    return [rows[a:b] for a, b in bounds], np.split(y, offsets[1:-1])


def fit_saved(train, test, output, C, tol, passes, transitions):
    """The child process: train on one file, predict another, print the facts."""
    X, y = load_saved(train)
    if transitions == "None":
        transitions = None
    else:
        # Labels are places here, and so a mask says what their names would; of those in
        # training, the beginning and the end.
        used = np.append(np.unique(np.concatenate(y)), -1)
        transitions = np.load(transitions)[np.ix_(used, used)]
    before = peak_megabytes()
    # The average of a few passes predicts better than the optimum, and its gap is known.
    model = chain_classifier(
        transitions,
        C=C,
        tol=tol,
        step="fw",
        solver_options={"cache": False},
        average=True,
        max_iter=MAX_ITER,
        random_state=0,
    )
    start = perf_counter()
    fit_quietly(model, X, y)
    facts = {"seconds": perf_counter() - start, "before_mb": before}
    facts |= {"peak_mb": peak_megabytes(), "n_iter": model.n_iter_}
    facts |= {"gap": model.dual_gap_, "n_weights": model.coef_.size}
    if passes:
        options = {"step": "fw", "sampling": "permuted", "acceleration": False}
        options |= {"C": C, "transitions": transitions}
        facts["pass_seconds"] = pass_seconds(X, y, passes, **options)
    np.save(output, np.concatenate(model.predict(load_saved(test)[0])))
    print(json.dumps(facts))


def table_of(scheme, classes):
    """Tell which labels may follow which, may begin, and may end a sentence."""
    structure = ChainStructure(transitions=scheme)
    return structure.fit([np.zeros((1, 1))], [["O"]], classes=classes).allowed_


def run_ours(paths, classes, y_test, C, tol, passes=0, scheme=None):
    """Facts and chunk F1 of a fit in a child process."""
    with tempfile.TemporaryDirectory() as folder:
        output, transitions = Path(folder, "labels.npy"), None
        if scheme is not None:
            transitions = Path(folder, "transitions.npy")
            np.save(transitions, table_of(scheme, classes))
        command = [sys.executable, __file__, "--child", paths["train"], paths["test"]]
        facts = run_lines([*command, output, C, tol, passes, transitions])[0]
        labels = np.split(
            classes[np.load(output)], np.cumsum([len(y) for y in y_test])[:-1]
        )
    table, k, facts["invalid"] = table_of("bio", classes), len(classes), 0
    for tags in labels:
        places = np.searchsorted(classes, tags)
        facts["invalid"] += int((~table[np.append(k, places[:-1]), places]).sum())
    return facts, 100 * entity_f1_score(y_test, labels)


def choose_C(X, y, classes, Cs, tol):
    """C of the best chunk F1 on the last fifth of the sentences."""
    if len(Cs) == 1:
        return Cs[0]
    cut = len(X) * 4 // 5
    train, test = (X[:cut], y[:cut], classes), (X[cut:], y[cut:], classes)
    with saved(train=train, test=test) as paths:
        scores = [run_ours(paths, classes, y[cut:], C, tol)[1] for C in Cs]
    print_table(["C", "held-out F1"], zip(Cs, scores, strict=True))
    return Cs[int(np.argmax(scores))]


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--Cs", type=float, nargs="+", default=[0.01, 0.03, 0.1])
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--passes", type=int, default=5, help="timed for a pass")
    parser.add_argument(
        "--transitions", action="store_true", help="once more with those of BIO tags"
    )
    parser.add_argument(
        "--settings",
        nargs="+",
        choices=SETTINGS,
        default=["lbfgs, c2=1", "l2sgd, c2=1", "averaged perceptron", "arow"],
    )
    args = parser.parse_args()
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    X, y = fetch_conll2000(data_home=args.data, return_X_y=True)
    X_test, y_test = fetch_conll2000(subset="test", data_home=args.data, return_X_y=True)
    classes = np.unique(np.concatenate([*y, *y_test]))
    C = choose_C(X, y, classes, args.Cs, args.tol)

    rows = []
    with saved(train=(X, y, classes), test=(X_test, y_test, classes)) as paths:
        facts, f1 = run_ours(paths, classes, y_test, C, args.tol, args.passes)
        rows.append([f"library, C={C:g}", facts, f1])
        if args.transitions:
            bio, f1 = run_ours(paths, classes, y_test, C, args.tol, args.passes, "bio")
            rows.append(["the same, transitions='bio'", bio, f1])
            ratio = bio["pass_seconds"] / facts["pass_seconds"]
            print(
                f"invalid tags predicted: {facts['invalid']}, and {bio['invalid']} with "
                f"transitions='bio'; a pass is {ratio:.2f} times as long"
            )
        if python:
            lengths = [len(labels) for labels in y_test]
            for setting in args.settings:
                peer, labels = run_crfsuite(python, setting, paths, classes, lengths)
                f1 = 100 * entity_f1_score(y_test, labels)
                rows.append([f"CRFsuite, {setting}", peer, f1])
    print(
        f"{len(X)} sentences, {facts['n_weights']} weights, gap {facts['gap']:.2g}\n"
        f"a pass of plain steps: {facts['pass_seconds']:.3f} s\n"
        f"peak memory: {facts['peak_mb']:.0f} MB, before the fit "
        f"{facts['before_mb']:.0f} MB\n"
    )
    own = rows[0][1]["seconds"]
    print_table(
        ["", "s to train", "passes", "chunk F1", "times our time"],
        [
            [name, f["seconds"], f["n_iter"], f"{f1:.2f}", f["seconds"] / own]
            for name, f, f1 in rows
        ],
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        train, test, output = sys.argv[2:5]
        C, tol, passes = map(float, sys.argv[5:8])
        sys.exit(fit_saved(train, test, output, C, tol, int(passes), sys.argv[8]))
    sys.exit(main())

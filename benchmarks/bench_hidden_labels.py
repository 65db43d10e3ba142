"""Hidden labels: test errors of what learns from the sentences in which they are.

Labels of tokens are hidden at random. Beside the marginal likelihood and the latent hinge
there are those who do without the hidden ones: the same model of the sentences that are
labeled in full, of as many labels in whole sentences, and of the runs of tokens between
hidden ones, which then have the weight 0. The first table has the marginal likelihood
beside pytorch-partial-crf, which minimizes the same objective by L-BFGS of PyTorch:
PYTORCH_PARTIAL_CRF_PYTHON names an interpreter that has it.
"""

import json
import sys
from pathlib import Path

from _common import (
    HERE,
    fit_quietly,
    load_ocr,
    make_parser,
    np,
    peer_python,
    print_table,
    process_time,
    run_lines,
    saved,
)

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.datasets import fetch_conll2000
from sklearn_structsvm.metrics import entity_f1_score, token_accuracy_score
from sklearn_structsvm.structures import MISSING, ChainStructure

# C of the two classifiers.
MODELS = {
    name: (
        CRFClassifier(ChainStructure(), C=C),
        BCFWClassifier(ChainStructure(normalize_loss=False), C=C),
    )
    for name, C in (("ocr", 1.0), ("conll2000", 0.5))
}
RUNS = "hidden of weight 0"
PEER_HEADER = ["", "hidden", "error %", "chunk F1", "objective", "passes", "CPU s"]


def load(name, n, data_home):
    """X, y, X_test, y_test and how chunks are scored, or None."""
    if name == "ocr":
        train, test = (load_ocr(subset, data_home) for subset in ("small", "large"))
        return *train, *test, None
    (X, y), (X_test, y_test) = (
        fetch_conll2000(subset=subset, data_home=data_home, return_X_y=True)
        for subset in ("train", "test")
    )
    return X[:n], y[:n], X_test, y_test, entity_f1_score


def hide(y, rate, seed):
    """Labelings of objects, each label hidden with this probability."""
    rng, result = np.random.default_rng(seed), []
    for labels in y:
        own = np.array(labels, dtype=object)
        own[rng.random(len(own)) < rate] = MISSING
        result.append(own)
    return result


def widen(y, classes, seed):
    """Each label as a set, with two wrong ones beside it."""
    rng, result = np.random.default_rng(seed), []
    for labels in y:
        own = []
        for label in labels.tolist():
            wrong = rng.choice(classes[classes != label], 2, replace=False)
            own.append({label, *wrong.tolist()})
        result.append(own)
    return result


def runs(X, y):
    """Runs of tokens whose labels are known, each a sequence of its own."""
    parts, labelings = [], []
    for x, labels in zip(X, y, strict=True):
        known = np.array([label is not MISSING for label in labels])
        ends = np.flatnonzero(np.diff([0, *known.astype(int), 0]))
        for start, stop in ends.reshape(-1, 2):
            parts.append(x[start:stop])
            labelings.append(np.array(labels[start:stop].tolist()))
    return parts, labelings


def training_sets(X, y, hidden):
    """What each way learns from, by its name."""
    full = [i for i, own in enumerate(hidden) if MISSING not in own.tolist()]
    n_known = sum(int(np.sum(own != MISSING)) for own in hidden)
    n_whole = int(np.searchsorted(np.cumsum([len(own) for own in y]), n_known))
    return {
        "hidden labels": (X, hidden),
        RUNS: runs(X, hidden),
        "whole sentences, as many labels": (X[:n_whole], y[:n_whole]),
        f"the {len(full)} labeled in full": ([X[i] for i in full], [y[i] for i in full]),
    }


def rows_of(model, rate, sets, classes, test, score):
    """A row for each way: means over the seeds."""
    X_test, y_test = test
    rows = []
    for k, name in enumerate(sets[0]):
        found = []
        for own in sets:
            X, y = list(own.values())[k]
            if len(X) == 0:
                continue
            # Few runs begin or end where a sentence does.
            has_ends = name != RUNS
            model.set_params(
                solver_options__classes=classes,
                random_state=0,
                structure__first_bias=has_ends,
                structure__last_bias=has_ends,
            )
            start = process_time()
            fit_quietly(model, X, y)
            seconds = process_time() - start
            predicted = model.predict(X_test)
            f1 = np.nan if score is None else score(y_test, predicted)
            error = 1.0 - token_accuracy_score(y_test, predicted)
            found.append((100.0 * error, f1, model.dual_gap_, model.n_iter_, seconds))
        if found:
            label = name if len(sets) == 1 or "full" not in name else "labeled in full"
            rows.append([type(model).__name__, rate, label, *np.mean(found, axis=0)])
    return rows


def peer_rows(python, model, rate, data, score, max_iter):
    """Rows of the marginal likelihood, ours and the peer's."""
    X, hidden, X_test, y_test, classes = data
    model.set_params(
        solver_options__classes=classes,
        random_state=0,
        structure__first_bias=True,
        structure__last_bias=True,
    )
    start = process_time()
    fit_quietly(model, X, hidden)
    seconds = process_time() - start
    found = [("library", model.predict(X_test), model.objective_, model.n_iter_, seconds)]
    # Places of labels, and -1 for what is hidden.
    places = {label: c for c, label in enumerate(classes.tolist())}
    codes = [np.array([places.get(label, -1) for label in own]) for own in hidden]
    test_codes = [np.searchsorted(classes, own) for own in y_test]
    numbers = np.arange(-1, len(classes))
    script = HERE / "peers" / "partial_crf.py"
    with saved(train=(X, codes, numbers), test=(X_test, test_codes, numbers)) as paths:
        options = ["--labels", len(classes), "--C", model.C, "--max-iter", max_iter]
        *lines, last = run_lines([python, script, *paths.values(), *options])
    ends = np.cumsum([len(own) for own in y_test])[:-1]
    predicted = np.split(classes[last["labels"]], ends)
    # Ours is in units of the mean loss of a sequence.
    objective = lines[-1]["objective"] / (model.C * len(X))
    found.append(
        ("pytorch-partial-crf", predicted, objective, len(lines), lines[-1]["seconds"])
    )
    rows = []
    for name, labels, *others in found:
        f1 = np.nan if score is None else score(y_test, labels)
        error = 100.0 * (1.0 - token_accuracy_score(y_test, labels))
        rows.append([name, rate, error, f1, *others])
    return rows


def main():
    parser = make_parser(__doc__)
    names = list(MODELS)
    parser.add_argument("--problems", nargs="+", choices=names, default=names)
    parser.add_argument("--rates", nargs="+", type=float, default=[0.3, 0.5, 0.7])
    parser.add_argument("--sentences", type=int, default=400, help="of CoNLL-2000")
    parser.add_argument("--seeds", type=int, default=1, help="of what is hidden")
    parser.add_argument("--rows", help="a JSON file for the rows")
    parser.add_argument("--max-iter", type=int, default=100, help="of the peer")
    parser.add_argument("--only-peer", action="store_true", help="the first table alone")
    args = parser.parse_args()
    python = peer_python("PYTORCH_PARTIAL_CRF_PYTHON", "pytorch_partial_crf")
    header = ["", "hidden", "learned from", "error %", "chunk F1"]
    header += ["gap", "passes", "CPU s"]
    results = {}
    for name in args.problems:
        X, y, *test, score = load(name, args.sentences, args.data)
        classes = np.unique(np.concatenate([*y, *test[1]]))
        print(f"{name}: {len(X)} sequences, {sum(map(len, y))} tokens\n")
        if python:
            rows = []
            for rate in args.rates:
                data = X, hide(y, rate, 0), *test, classes
                likelihood = MODELS[name][0]
                rows += peer_rows(python, likelihood, rate, data, score, args.max_iter)
            print_table(PEER_HEADER, rows)
        if args.only_peer:
            continue
        rows = []
        for model in MODELS[name]:
            if isinstance(model, BCFWClassifier):
                model.set_params(tol=0.1)
            sets_of_three = X, widen(y, classes, 0)
            known = [{"all labels": (X, y), "sets of three labels": sets_of_three}]
            rows += rows_of(model, 0.0, known, classes, test, score)
            for rate in args.rates:
                sets = [
                    training_sets(X, y, hide(y, rate, seed)) for seed in range(args.seeds)
                ]
                rows += rows_of(model, rate, sets, classes, test, score)
        print_table(header, rows)
        results[name] = [
            {key: value for key, value in zip(header, row, strict=True) if value == value}
            for row in rows
        ]
    if args.rows:
        Path(args.rows).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())

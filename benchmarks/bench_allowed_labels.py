"""What `allowed` costs: predictions among some labels beside those among all.

The test sentences of CoNLL-2000, one token in ten with a known label, and one in ten
with three that it may have. `allowed` is given as lists and as boolean arrays. Calls
with and without it take turns, the figures are medians of user CPU seconds, and the
ratio is that of a turn to the plain call before it. Writes
`results/allowed_labels.json`.
"""

import json
import resource

from _common import HERE, circumstances, fit_quietly, make_parser, np, print_table

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import chunking_attributes, fetch_conll2000
from sklearn_structsvm.preprocessing import SequenceTransformer

# The fit takes as many of the training sentences, and as many passes.
N_TRAIN, N_PASSES = 1000, 3


def user_seconds(call):
    start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - start


def as_lists(y, classes, rng):
    """For each token, make its known label, the labels that it may have, or None."""
    found = []
    for labels in map(np.ndarray.tolist, y):
        kinds = rng.uniform(size=len(labels))
        own = [None] * len(labels)
        for t in np.flatnonzero(kinds < 0.2).tolist():
            others = classes[rng.integers(len(classes), size=2)].tolist()
            own[t] = labels[t] if kinds[t] < 0.1 else {labels[t], *others}
        found.append(own)
    return found


def as_masks(lists, classes):
    places = {label: c for c, label in enumerate(classes.tolist())}
    masks = []
    for own in lists:
        mask = np.ones((len(own), len(classes)), dtype=bool)
        for t, entry in enumerate(own):
            if entry is not None:
                mask[t] = False
                some = entry if isinstance(entry, set) else (entry,)
                mask[t, [places[label] for label in some]] = True
        masks.append(mask)
    return masks


def calls_of(model, X, y):
    return {
        "predict": model.predict,
        "predict_proba": model.predict_proba,
        "entropy": model.entropy,
        "log_likelihood": lambda X, **own: model.log_likelihood(X, y, **own),
        "predict_k_best, k=3": lambda X, **own: model.predict_k_best(X, 3, **own),
    }


def measure(call, X, ways, repeats):
    """Median seconds of the plain call, and the median ratio of each way to it."""
    plain, ratios = [], {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, allowed in ways.items():
            before = user_seconds(lambda: call(X))
            own = user_seconds(lambda allowed=allowed: call(X, allowed=allowed))
            if turn:
                plain.append(before)
                ratios[name].append(own / before)
    return float(np.median(plain)), {n: float(np.median(r)) for n, r in ratios.items()}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    parts = {}
    for part in ("train", "test"):
        text = fetch_conll2000(subset=part, data_home=args.data)
        tokens = [chunking_attributes(sentence) for sentence in text.tokens]
        parts[part] = tokens, list(text.target)
    (tokens, tags), (test_tokens, y) = parts["train"], parts["test"]
    transformer = SequenceTransformer()
    X = transformer.fit_transform(tokens[:N_TRAIN])
    classes = np.unique(np.concatenate([*tags, *y]))
    model = CRFClassifier(
        "chain", solver_options={"classes": classes}, max_iter=N_PASSES, random_state=0
    )
    fit_quietly(model, X, tags[:N_TRAIN])
    X = transformer.transform(test_tokens)
    lists = as_lists(y, classes, np.random.default_rng(0))
    ways = {"lists": lists, "arrays": as_masks(lists, classes)}
    rows = []
    for name, call in calls_of(model, X, y).items():
        seconds, ratios = measure(call, X, ways, args.repeats)
        rows.append({"call": name, "plain_seconds": seconds, **ratios})
    results = {"circumstances": circumstances(__file__), "rows": rows}
    path = HERE / "results" / "allowed_labels.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    header = ["call", "plain, ms", "lists, ratio", "arrays, ratio"]
    cells = [
        [
            row["call"],
            f"{1000 * row['plain_seconds']:.0f}",
            *(f"{row[way]:.2f}" for way in ways),
        ]
        for row in rows
    ]
    print_table(header, cells)


if __name__ == "__main__":
    main()

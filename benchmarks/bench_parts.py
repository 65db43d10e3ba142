"""Rounds and bytes of fits to data in many parts, and what a large cluster would cost.

The parts are in this process, so rounds and bytes are exact on every machine. A round is
one message to all parts and their replies. Fits that `results/parts.json` lacks are
measured and added; then the tables are printed from it. With `--show` nothing is
measured. Seconds are CPU seconds of one thread.
"""

import json
import math
from time import process_time
from unittest.mock import patch

from _common import HERE, fit_quietly, load_ocr, make_parser, np, print_table
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import fetch_conll2000
from sklearn_structsvm.distributed.dask_workers import FAN_IN, LocalWorkers

RESULTS = HERE / "results" / "parts.json"
PARTS = 1, 4, 16, 64, 256
TOLS = 1e-2, 1e-3
MAX_ITER = 2000
# Of sentences, to the smaller gap: more parts would take hours in one process.
MOST_PARTS = 16
# Each part keeps some vectors of w's length, which are long for CoNLL.
PARTS_OF = {"CoNLL": PARTS[:-1], "dense rows": PARTS[:1]}
# Where the number of parts changes nothing but rounding.
FEW_PARTS = 1, 16, 256

# What is assumed of the cluster: bytes a second of a link, seconds until a message
# arrives, and seconds of the scheduler for a task, the upper end of what Dask states.
CLUSTER = {"bandwidth": 1e9, "latency": 1e-3, "task": 1e-3}
WORKERS = 10, 100, 1000
# Name, examples, weights, which of the measured problems stands for its rounds, and
# which for the seconds of an example.
LARGE = [
    ("1e9 rows, 100 features", 10**9, 100, "a9a", "dense rows"),
    ("1e8 sentences, 1e5 weights", 10**8, 10**5, "CoNLL", "CoNLL"),
    ("1e8 sentences, 1e6 weights", 10**8, 10**6, "CoNLL", "CoNLL"),
]


def size_of(thing):
    """Bytes of all arrays, and eight for every number beside them."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, (list, tuple)):
        return sum(map(size_of, thing))
    if isinstance(thing, dict):
        return sum(map(size_of, thing.values()))
    if hasattr(thing, "__dict__"):
        return size_of(vars(thing))
    return 8 if isinstance(thing, (int, float, np.number)) else 0


class Counted:
    """Messages that `LocalWorkers` pass on, and bytes to and from one part."""

    def __init__(self):
        self.n_rounds, self.down, self.up = 0, 0, 0

    def tell(self, workers, function, message, merge):
        replies = [function(shard, message) for shard in workers.shards]
        self.n_rounds += 1
        self.down += size_of(message)
        self.up += max(map(size_of, replies))
        return merge(replies)


def in_parts(data, n_parts):
    """Delayed parts, or a dask.array of as many chunks."""
    import dask
    import dask.array as da

    n = data.shape[0] if hasattr(data, "shape") else len(data)
    bounds = [j * n // n_parts for j in range(n_parts + 1)]
    if not hasattr(data, "shape"):
        pairs = zip(bounds[:-1], bounds[1:], strict=True)
        return [dask.delayed(data[begin:end]) for begin, end in pairs]
    chunks = (tuple(np.diff(bounds).tolist()), *data.shape[1:])
    if sparse.issparse(data):
        return da.from_array(data.toarray(), chunks).map_blocks(sparse.csr_array)
    return da.from_array(data, chunks)


def count(model, X, y, n_parts, tol):
    """Rounds, bytes to and from a part in a round, weights, gap, and CPU seconds."""
    import dask

    counted, places = Counted(), "sklearn_structsvm.distributed.{}.n_places"
    parts = in_parts(X, n_parts), in_parts(y, n_parts)
    model.set_params(tol=tol, max_iter=MAX_ITER)
    with (
        dask.config.set(scheduler="sync"),
        patch(places.format("rows"), lambda: n_parts),
        patch(places.format("sequences"), lambda: n_parts),
        patch.object(LocalWorkers, "tell", lambda *args: counted.tell(*args)),
    ):
        started = process_time()
        fit_quietly(model, *parts)
        seconds = process_time() - started
    return {
        "rounds": counted.n_rounds,
        "down": counted.down / counted.n_rounds,
        "up": counted.up / counted.n_rounds,
        "weights": int(model.coef_.size + np.size(getattr(model, "intercept_", ()))),
        "gap": float(model.dual_gap_),
        "seconds": seconds,
    }


def shuffled(X, y, n=None):
    """The first n in random order."""
    order = np.random.default_rng(0).permutation(len(y))[:n]
    if isinstance(X, list):
        return [X[i] for i in order], [y[i] for i in order]
    return X[order], y[order]


def load_a9a(data_home):
    folder = f"{data_home}/a9a"
    X = sparse.csr_array(sparse.load_npz(f"{folder}/X_train.npz").astype(np.float64))
    return X, np.load(f"{folder}/y_train.npy")


def load_covtype(data_home):
    with np.load(f"{data_home}/covtype7/covtype7.npz") as data:
        X = np.hstack([data["X"], np.eye(40)[data["soil_type"].astype(int) % 40]])
        return StandardScaler().fit_transform(X), data["y"].astype(int)


def load_sentences(data_home, n=2000, fewest=5):
    """Some sentences of CoNLL-2000, with features that are frequent enough."""
    X, y = fetch_conll2000(data_home=data_home, return_X_y=True)
    X, y = shuffled(list(X), list(y), n)
    kept = np.flatnonzero(sparse.vstack(X).sum(axis=0) >= fewest)
    return [sparse.csr_array(x)[:, kept] for x in X], y


def problems(data_home):
    """(data, what each is called, λ, models by name)"""
    batch = {
        "CRF, L-BFGS": CRFClassifier(solver="lbfgs"),
        "SubLBFGS": SubLBFGSClassifier(solver="hybrid"),
        "BMRM": BMRMClassifier(),
    }
    blocks = {"BCFW": BCFWClassifier(random_state=0)}
    a9a = load_a9a(data_home)
    yield "a9a", shuffled(*a9a), 1e-4, blocks | batch
    yield "a9a, a quarter", shuffled(*a9a, len(a9a[1]) // 4), 1e-4, blocks
    yield "covtype", shuffled(*load_covtype(data_home)), 1e-3, blocks | batch
    words = load_ocr("large", data_home)
    sums = {"CRF, L-BFGS": batch["CRF, L-BFGS"]}
    yield "OCR", shuffled(*map(list, words)), 1e-2, blocks | sums
    yield "OCR, a quarter", shuffled(*map(list, words), len(words[1]) // 4), 1e-2, blocks
    yield "CoNLL", load_sentences(data_home), 5e-3, blocks | sums
    X, y = make_classification(100_000, 100, n_informative=20, flip_y=0.1, random_state=0)
    # For the seconds of a row; rounds of generated data say little.
    few = {"BCFW": blocks["BCFW"], "CRF, L-BFGS": sums["CRF, L-BFGS"]}
    yield "dense rows", (X, y), 1e-4, few


def read():
    """The fits measured so far."""
    return json.loads(RESULTS.read_text())["fits"] if RESULTS.exists() else []


def write(found, **derived):
    results = {"cluster": CLUSTER, **derived, "fits": found}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def key_of(facts):
    return [facts[name] for name in ("data", "model", "parts", "tol")]


def measure(args):
    """Measure the fits that the results lack."""
    for data, (X, y), lam, models in problems(args.data):
        if not data.startswith(args.only):
            continue
        n = len(y)
        for name, model in models.items():
            model.set_params(C=1.0 / (lam * n))
            parts = PARTS_OF.get(data, PARTS)
            for n_parts in parts if name == "BCFW" else sorted({*parts} & {*FEW_PARTS}):
                few = isinstance(X, list) and n_parts > MOST_PARTS
                for tol in TOLS[:1] if few else TOLS:
                    facts = {"data": data, "model": name, "parts": n_parts, "tol": tol}
                    if key_of(facts) in map(key_of, read()):
                        continue
                    facts |= {"n": n, "lam": lam} | count(model, X, y, n_parts, tol)
                    print(facts, flush=True)
                    write([*read(), facts])


def by_data(found):
    """Fits of each data, model and gap, by the number of parts."""
    cells = {}
    for facts in found:
        if facts["data"] != "dense rows":
            key = facts["data"], facts["n"], facts["model"], facts["tol"]
            cells.setdefault(key, {})[facts["parts"]] = facts
    return cells


def table_of_rounds(found):
    """Rounds by number of parts, their law, and how many vectors like w are sent."""
    for (data, n, model, tol), by_parts in by_data(found).items():
        rounds = [shown(by_parts.get(K), tol) for K in PARTS]
        one = by_parts[PARTS[0]]
        own = "-"
        if follows_law(model, by_parts):
            a, b, misfit = law(by_parts.values())
            own = f"{a:.3g} K^{b:.2f} ({misfit:.1f})"
        traffic = [one[way] / 8 / one["weights"] for way in ("down", "up")]
        yield [f"{data} ({n:,})", model, f"{tol:g}", *rounds, own, *traffic]


def laws(found):
    """R(K) = a K^b for dual steps on each data, to each gap."""
    for (data, n, model, tol), by_parts in by_data(found).items():
        if follows_law(model, by_parts):
            a, b, misfit = law(by_parts.values())
            facts = {"data": data, "n": n, "tol": tol, "parts": max(by_parts)}
            yield facts | {"a": a, "b": b, "misfit": misfit}


def shown(facts, tol):
    """Rounds, with the gap that is left if the target was not reached."""
    if facts is None:
        return ""
    reached = facts["gap"] <= tol
    return f"{facts['rounds']:,}" if reached else f"- ({facts['gap']:.2g})"


def follows_law(model, by_parts):
    """Whether the fit takes dual steps and was counted for enough numbers of parts."""
    return model == "BCFW" and len(by_parts) > 2


def law(fits):
    """a, b and the largest factor between rounds and a K^b, of fits that converged."""
    points = [(f["parts"], f["rounds"]) for f in fits if f["gap"] <= f["tol"]]
    K, rounds = np.log(np.array(points, dtype=float)).T
    b, a = np.polyfit(K, rounds, 1)
    return math.exp(a), b, math.exp(np.abs(a + b * K - rounds).max())


def levels(n_workers):
    """How often replies are merged on their way, if `FAN_IN` are merged at a time."""
    return max(1, math.ceil(math.log(n_workers, FAN_IN)))


def seconds_to_send(n_workers, n_weights):
    """Seconds of a round: workers copy messages on and merge replies in a tree."""
    copies, merges = math.ceil(math.log2(n_workers)), levels(n_workers)
    n_tasks = sum(math.ceil(n_workers / FAN_IN**j) for j in range(merges))
    sent = 8 * n_weights * (copies + FAN_IN * merges) / CLUSTER["bandwidth"]
    waits = CLUSTER["latency"] * (copies + merges)
    return sent + waits + CLUSTER["task"] * n_tasks


def costs(found):
    """Estimate the cost of fits to data larger than any here; see `seconds_to_send`.

    The rounds are between those of one part and those of the law at K parts, as such
    large parts resemble each other more than the parts that were counted.
    """
    tol = TOLS[0]
    for name, n, n_weights, like, timed in LARGE:
        for model in ("BCFW", "CRF, L-BFGS"):
            fits = [
                facts
                for facts in found
                if (facts["data"], facts["model"], facts["tol"]) == (like, model, tol)
            ]
            fewest = min(facts["rounds"] for facts in fits if facts["parts"] == 1)
            a, b = law(fits)[:2] if model == "BCFW" else (fewest, 0.0)
            (one,) = (
                facts for facts in found if key_of(facts) == [timed, model, 1, TOLS[1]]
            )
            each = one["seconds"] / one["rounds"] / one["n"]
            for K in WORKERS:
                rounds, work = [fewest, round(a * K**b)], n * each / K
                sending = seconds_to_send(K, n_weights)
                yield {
                    "data": name,
                    "model": model,
                    "like": like,
                    "each": each,
                    "workers": K,
                    "rounds": rounds,
                    "bytes": 16 * n_weights,
                    "work": work,
                    "sending": sending,
                    "hours": [r * (work + sending) / 3600 for r in rounds],
                }


def table_of_costs(found):
    for cost in costs(found):
        rounds = [f"{r:,}" for r in cost["rounds"]]
        hours = [f"{h:.2g}" for h in cost["hours"]]
        row = [cost["data"], cost["model"], f"{cost['workers']:,}"]
        yield [
            *row,
            " to ".join(dict.fromkeys(rounds)),
            f"{cost['bytes'] / 1e6:.3g} MB",
            f"{cost['work']:.2g}",
            f"{cost['sending']:.2g}",
            " to ".join(dict.fromkeys(hours)),
        ]


def show(found):
    header = ["data (examples)", "", "gap", *map(str, PARTS), "law (misfit)"]
    print_table([*header, "vectors down", "up"], table_of_rounds(found))
    header = ["data", "", "K", "rounds", "sent a round and part", "s of work a round"]
    print_table([*header, "s of sending", "hours"], table_of_costs(found))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--only", default="", help="data whose names begin with it")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    if not args.show:
        measure(args)
    found = read()
    if not args.only:
        write(found, laws=list(laws(found)), costs=list(costs(found)))
        show(found)


if __name__ == "__main__":
    main()

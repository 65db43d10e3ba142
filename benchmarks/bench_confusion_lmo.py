"""Milliseconds of a linear minimization over confusion tensors, and of its predictions.

Beside each call stand the same steps in NumPy, and how often the probabilities could have
been read meanwhile by one core (a BLAS dot product of them with themselves): no rule that
looks at every probability takes less than one such reading a core. Costs that a metric of
the recalls gives are "diagonal", others "any". Medians; calls and readings take turns.
"""

import sys
from functools import partial
from itertools import product
from time import perf_counter

from _common import make_parser, np, print_table

from sklearn_structsvm.confusion.lmo.plugin import (
    COUNTED,
    PluginLMO,
    mixture_proba,
    predict_plugin,
)
from sklearn_structsvm.confusion.lmo.thresholds import ThresholdLMO
from sklearn_structsvm.estimators.complex_metric.row_hash import row_uniforms

# Of seven kinds of forest cover.
SHARES = np.array([0.365, 0.488, 0.062, 0.005, 0.016, 0.030, 0.035])


def make_sample(n, k, rng):
    """Class probabilities as of a useful model, and labels drawn with them."""
    shares = np.resize(SHARES, k)
    scores = 1.5 * rng.standard_normal((n, k)) + np.log(shares / shares.sum())
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P, (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def medians(contenders, repeats):
    """Median milliseconds of functions that are called in turns."""
    seconds = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, function in contenders.items():
            start = perf_counter()
            function()
            seconds[name].append(perf_counter() - start)
    return {name: 1e3 * float(np.median(times)) for name, times in seconds.items()}


def in_numpy(P, y, L, confusion):
    """One call, the straightforward way."""
    k = P.shape[1]
    predicted = np.argmin(P @ L, axis=1)
    if confusion == "labels":
        return np.bincount(y * k + predicted, minlength=k * k).reshape(k, k) / len(y)
    sums = [P[predicted == j].sum(axis=0) for j in range(k)]
    return np.stack(sums, axis=1) / len(y)


def losses(lmo, rng):
    """Costs of the two kinds."""
    k = lmo.shape_[1]
    costs = rng.uniform(0.5, 1.5, k) / lmo.priors_[0]
    return {"diagonal": -np.diag(costs)[None], "any": rng.random((1, k, k))}


def call_rows(P, y, confusion, n_threads, args):
    """Rows of the table, one for each kind of costs."""
    lmo = PluginLMO(confusion, n_threads=n_threads).fit(P, y)
    flat = P.ravel()
    rows = []
    for kind, L in losses(lmo, np.random.default_rng(0)).items():
        fast = medians(
            {"call": partial(lmo, L), "reading": partial(np.dot, flat, flat)},
            args.repeats,
        )
        plain = {"peer": partial(in_numpy, P, y, L[0], confusion)}
        peer = medians(plain, args.peer_repeats)["peer"]
        ratios = [peer / fast["call"], fast["call"] / fast["reading"]]
        name = [P.dtype.name, confusion, kind, n_threads]
        rows.append([*name, fast["call"], peer, *ratios])
    return rows


def time_calls(P, y, args):
    rows = []
    for dtype in (np.float64, np.float32):
        Q = np.ascontiguousarray(P, dtype=dtype)
        # The threads of a call spin on for a while after it: not beside other calls.
        for confusion, n_threads in product(COUNTED, args.threads):
            rows += call_rows(Q, y, confusion, n_threads, args)
    print(f"A call on {args.n} x {args.k}\n")
    header = ["", "counts", "costs", "threads", "ms", "NumPy ms", "NumPy / ms"]
    print_table([*header, "readings"], rows)


def time_the_rest(P, y, args, rng):
    k = args.k
    L, Ls = -np.diag(rng.random(k))[None], -rng.random((10, 1, k, 1)) * np.eye(k)
    mixture = np.full(10, 0.1)
    X = rng.standard_normal((args.n, 54))
    scores = P[:, 1:2] / (P[:, :1] + P[:, 1:2])
    two, cells = np.hstack([1 - scores, scores]), rng.integers(0, 4, args.n)
    labels = (rng.random(args.n) < scores[:, 0]).astype(int)
    thresholds = ThresholdLMO().fit(two, labels, cells=cells)
    costs = rng.standard_normal((4, 2, 2))
    contenders = {
        "set up PluginLMO": lambda: PluginLMO().fit(P, y),
        "predict_plugin": lambda: predict_plugin(P, L),
        "mixture_proba of 10": lambda: mixture_proba(P, Ls, mixture),
        "row_uniforms of 54 columns": lambda: row_uniforms(X),
        "set up ThresholdLMO, 4 cells": lambda: ThresholdLMO().fit(
            two, labels, cells=cells
        ),
        "call of ThresholdLMO": lambda: thresholds(costs),
    }
    times = medians(contenders, args.peer_repeats)
    print(f"All else with {args.n} rows, float64, one thread\n")
    print_table(["", "ms"], list(times.items()))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--n", type=int, default=400_000, help="rows")
    parser.add_argument("--k", type=int, default=7, help="classes")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=51, help="of a call")
    parser.add_argument("--peer-repeats", type=int, default=7, help="of all else")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    P, y = make_sample(args.n, args.k, rng)
    time_calls(P, y, args)
    time_the_rest(P, y, args, rng)


if __name__ == "__main__":
    sys.exit(main())

"""float32 beside float64: what fits and predictions add to X, and seconds of a pass."""

import argparse
import tracemalloc
import warnings
from time import process_time

from _common import np

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)

N_FEATURES, N_CLASSES = 768, 9


def make_data(n_tokens, dtype):
    """Sequences of 5 to 60 embeddings; classes of the largest of random scores."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 60, 2 * n_tokens // 65 + 1)
    W = rng.standard_normal((N_FEATURES, N_CLASSES))
    X = [rng.standard_normal((T, N_FEATURES), dtype=np.float32) for T in lengths]
    y = [np.argmax(x @ W, axis=1) for x in X]
    return [x.astype(dtype) for x in X], y


def cases(X, y):
    """Names, models and data."""
    trees = [(x, np.arange(len(x)) // 2 - (np.arange(len(x)) == 0)) for x in X]
    graphs = [(x, np.column_stack([range(len(x) - 1), range(1, len(x))])) for x in X]
    rows, labels = np.concatenate(X), np.concatenate(y)
    few = {"max_iter": 5, "tol": 0.0}
    yield "chain", BCFWClassifier(**few), X, y
    yield "chain, CRF", CRFClassifier(solver="dual", **few), X, y
    yield "chain, cutting planes", BMRMClassifier("chain", **few), X, y
    yield "tree", BCFWClassifier("tree", **few), trees, y
    yield "graph", BCFWClassifier("graph", **few), graphs, y
    newton = CRFClassifier(solver="newton", **few)
    yield "rows, CRF by Newton's method", newton, rows, labels
    for model in (
        BCFWClassifier(**few),
        CRFClassifier(solver="dual", **few),
        SlackRescaledSSVM(max_iter=2, tol=0.0),
        SubLBFGSClassifier(**few),
        BMRMClassifier(**few),
        PragamClassifier(**few),
    ):
        yield f"rows, {type(model).__name__}", model, rows, labels


def added(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def memory():
    print("| | float32: fit | predict | float64: fit | predict |")
    print("| --- | --- | --- | --- | --- |")
    found = {}
    for dtype in (np.float32, np.float64):
        X, y = make_data(13_000, dtype)
        size = sum(x.nbytes for x in X)
        for name, model, data, labels in cases(X, y):
            fit = added(lambda model=model, X=data, y=labels: model.fit(X, y))
            predict = added(lambda model=model, X=data: model.predict(X))
            found.setdefault(name, []).extend([fit / size, predict / size])
    for name, cells in found.items():
        print(f"| {name} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")


def seconds(n_tokens, repeats):
    """Seconds of a pass over chains, and of a product of the same size."""
    data = {dtype: make_data(n_tokens, dtype) for dtype in (np.float32, np.float64)}
    W = np.random.default_rng(1).standard_normal((N_FEATURES, N_CLASSES))
    models = {
        "BCFWClassifier": lambda n: BCFWClassifier(
            max_iter=n, tol=0.0,
            solver_options={"acceleration": False, "gap_check_interval": 100},
            random_state=0,
        ),
        "CRFClassifier": lambda n: CRFClassifier(
            solver="dual", max_iter=n, tol=0.0,
            solver_options={"acceleration": False, "gap_check_interval": 100},
            random_state=0,
        ),
    }  # fmt: skip

    def timed(call):
        start = process_time()
        call()
        return process_time() - start

    print("| a pass | float32 | float64 | ratio |")
    print("| --- | --- | --- | --- |")
    rows = {}
    for _ in range(repeats):
        for dtype, (X, y) in data.items():
            for name, make in models.items():
                few = timed(lambda make=make, X=X, y=y: make(1).fit(X, y))
                many = timed(lambda make=make, X=X, y=y: make(4).fit(X, y))
                rows.setdefault(name, {}).setdefault(dtype, []).append((many - few) / 3)
            weights = W.astype(dtype)
            product = timed(lambda X=X, W=weights: [x @ W for x in X])
            rows.setdefault("X W by NumPy", {}).setdefault(dtype, []).append(product)
    for name, found in rows.items():
        one, other = (np.median(found[dtype]) for dtype in (np.float32, np.float64))
        print(f"| {name} | {one:.2f} s | {other:.2f} s | {one / other:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    memory()
    print()
    seconds(args.tokens, args.repeats)


if __name__ == "__main__":
    main()

"""What fits add to X in memory where X is mapped from a file, alone and through Dask.

As multiples of X, by tracemalloc, which does not count pages of files. Writes
`results/memory_maps.json`.
"""

import json
import tempfile
import tracemalloc
import warnings
from pathlib import Path

import dask
import dask.array as da
from _common import HERE, np, print_table

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SubLBFGSClassifier

N_ROWS, N_FEATURES, N_CHAINS, N_CHUNKS = 20_000, 768, 800, 8
FEW = {"max_iter": 5, "tol": 0.0}
ROWS = {
    "rows, BCFWClassifier": BCFWClassifier(**FEW),
    "rows, CRFClassifier, L-BFGS": CRFClassifier(solver="lbfgs", **FEW),
    "rows, SubLBFGSClassifier": SubLBFGSClassifier(solver="hybrid", **FEW),
}
CHAINS = {
    "chains, BCFWClassifier": BCFWClassifier(**FEW),
    "chains, CRFClassifier, L-BFGS": CRFClassifier(solver="lbfgs", **FEW),
}


def added(model, X, y, size):
    """The most memory that a fit adds, as a multiple of this size."""
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1] / size
    finally:
        tracemalloc.stop()


def cells(X, y, n_chunks):
    """Rows of each model: alone, through Dask in one part, and in several parts."""
    bounds = np.linspace(0, len(X), N_CHAINS + 1).astype(int)
    pairs = list(zip(bounds[:-1], bounds[1:], strict=True))
    chains, tags = ([data[i:j] for i, j in pairs] for data in (X, y))
    for name, model in ROWS.items():
        found = [added(model, X, y, X.nbytes)]
        for n in (1, n_chunks):
            chunks = -(-len(X) // n)
            parts = (
                da.from_array(X, (chunks, -1), asarray=False),
                da.from_array(y, chunks),
            )
            found.append(added(model, *parts, X.nbytes))
        yield name, found
    for name, model in CHAINS.items():
        found = [added(model, chains, tags, X.nbytes)]
        for n in (1, n_chunks):
            parts = (
                [dask.delayed(data[k::n], traverse=False) for k in range(n)]
                for data in (chains, tags)
            )
            found.append(added(model, *parts, X.nbytes))
        yield name, found


def main():
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, N_FEATURES), dtype=np.float32)
    y = (X[:, 0] > 0.0).astype(int)
    found = {}
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="sync"):
        for dtype in (np.float32, np.float64):
            path = Path(folder, f"{np.dtype(dtype)}.npy")
            np.save(path, X.astype(dtype))
            mapped = np.load(path, mmap_mode="r")
            for name, row in cells(mapped, y, N_CHUNKS):
                found.setdefault(name, []).extend(row)
            del mapped
    ways = ["", "Dask, one part", f"Dask, {N_CHUNKS} parts"]
    columns = [
        ", ".join(filter(None, [dtype, way]))
        for dtype in ("float32", "float64")
        for way in ways
    ]
    rows = [[name, *(f"{value:.2f}" for value in row)] for name, row in found.items()]
    results = {"columns": columns, "rows": rows}
    path = HERE / "results" / "memory_maps.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    print_table(["", *columns], rows)


if __name__ == "__main__":
    main()

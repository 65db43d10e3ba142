"""Embeddings beside attributes: a pass and bytes, as CSR, as arrays, and split."""

import argparse
import warnings
from time import process_time

from _common import np
from scipy import sparse

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.preprocessing import SplitMatrix

N_SEQUENCES, LENGTH, N_ATTRIBUTES, N_CLASSES = 500, 20, 20, 9
# With more attributes, arrays of all columns take more than 50 MB and are not made.
MOST_DENSE = 1_000
MODELS = {
    "BCFWClassifier": BCFWClassifier("chain"),
    "CRFClassifier": CRFClassifier("chain", solver="dual"),
}
FIXED = {
    "tol": 0.0,
    "random_state": 0,
    "solver_options": {"acceleration": False, "gap_check_interval": 100},
}


def make_data(n_columns, n_entries):
    """Float32 rows by their names in the table, and the classes of the rows."""
    rng = np.random.default_rng(0)
    n_tokens = N_SEQUENCES * LENGTH
    y = rng.integers(N_CLASSES, size=n_tokens)
    centers = rng.normal(size=(N_CLASSES, n_entries))
    vectors = centers[y] + 3 * rng.normal(size=(n_tokens, n_entries))
    vectors = vectors.astype(np.float32)
    own = [rng.choice(n_columns, N_ATTRIBUTES, replace=False) for _ in range(n_tokens)]
    attributes = sparse.csr_matrix(
        (
            np.ones(n_tokens * N_ATTRIBUTES, dtype=np.float32),
            np.sort(own, axis=1).ravel().astype(np.intc),
            np.arange(n_tokens + 1, dtype=np.intc) * N_ATTRIBUTES,
        ),
        shape=(n_tokens, n_columns),
    )
    both = sparse.hstack([sparse.csr_matrix(vectors), attributes], format="csr")
    found = {"vectors, array": vectors, "vectors, CSR": sparse.csr_matrix(vectors)}
    found |= {"attributes, CSR": attributes, "both, CSR": both}
    found["both, split"] = SplitMatrix([vectors, attributes])
    if n_columns <= MOST_DENSE:
        found["both, array"] = both.toarray()
    return found, y


def split(rows):
    return [rows[i : i + LENGTH] for i in range(0, rows.shape[0], LENGTH)]


def seconds(model, n_passes, X, y):
    model.set_params(max_iter=n_passes, **FIXED)
    start = process_time()
    model.fit(X, y)
    return process_time() - start


def n_bytes(rows):
    if isinstance(rows, SplitMatrix):
        return sum(map(n_bytes, rows.matrices))
    if sparse.issparse(rows):
        return rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    return rows.nbytes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--entries", type=int, default=256, help="of a vector")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| attributes | features | MB | {' | '.join(MODELS)} |")
    print("| --- | --- | --- | --- | --- |")
    for n_columns in (200, 500, 1_000, 5_000):
        data, labels = make_data(n_columns, args.entries)
        y = split(labels)
        for name, rows in data.items():
            X, cells = split(rows), [f"{n_bytes(rows) / 1e6:.1f}"]
            for model in MODELS.values():
                passes = [
                    (seconds(model, 11, X, y) - seconds(model, 1, X, y)) / 10
                    for _ in range(args.repeats)
                ]
                cells.append(f"{1e3 * np.median(passes):.0f} ms")
            print(f"| {n_columns:,} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

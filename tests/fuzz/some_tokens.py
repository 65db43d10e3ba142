"""Random tokens and tables, most of which are fine."""

import numpy as np
from scipy import sparse
from values import ODD, spoil

VALUES = (
    "x", "", "a=b", 1, 0, 2.5, -1, True, False, np.float32(3.0), np.int8(3), np.str_("n"),
    ["p", "q"], ("p",), {"p", "q"}, {"in": "x"}, {"in": {"in": 1}}, np.ones(2),
    np.arange(2), np.zeros(0), np.ones(2, dtype=np.float32),
)  # fmt: skip
NAMES = ("word", "len", "", "a:b", "a=b", "left", 0, None, 1.5, ("t",), b"b", True)


def some_tokens(rng):
    """A few sequences, usually of tokens of one kind."""
    kind = rng.integers(6)
    X = [
        [_token(rng, kind) for _ in range(rng.integers(0, 4))]
        for _ in range(rng.integers(1, 4))
    ]
    if kind == 4:
        X = [rng.normal(size=(rng.integers(1, 4), 3)) for _ in X]
    if kind == 5:
        X = [sparse.csr_array(rng.normal(size=(rng.integers(1, 4), 3))) for _ in X]
    return spoil(rng, X) if rng.random() < 0.3 else X


def _token(rng, kind):
    def pick(values):
        return values[rng.integers(len(values))]

    if rng.random() < 0.03:
        return pick(ODD)
    if kind == 0:
        names = [NAMES[i] for i in rng.integers(2 if rng.random() < 0.9 else 12, size=2)]
        values = VALUES if rng.random() < 0.8 else ODD
        return {name: pick(values) for name in names}
    if kind == 1:
        return [pick(["a", "b", "c=d", ""]) for _ in range(rng.integers(3))]
    if kind == 2:
        return pick(["the", "cat", ""])
    size = 2 if rng.random() < 0.9 else 3
    return pick([{"word": "x"}, ["a"], "a"]), rng.normal(size=size)


def some_table(rng):
    """A table, and the identifiers of its rows."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    n = int(rng.integers(0, 6))
    ids = np.sort(rng.integers(3, size=n))
    columns = {"id": ids, "x": rng.normal(size=n), "word": np.array(["w"] * n)}
    tables = [
        columns["x"], rng.normal(size=(n, 2)), sparse.csr_array(rng.random((n, 2))),
        sparse.csc_array(rng.random((n, 2))), pd.DataFrame(columns),
        pl.DataFrame(columns), pa.table(columns), list(columns["word"]), columns["word"],
        pd.Series(columns["word"]), pd.DataFrame(columns)[["x"]], *ODD,
    ]  # fmt: skip
    names = ["id", "x", "y", ids, ids.tolist(), ids.astype(str), ids[:-1], *ODD]
    return tables[rng.integers(len(tables))], names[rng.integers(len(names))]

"""What is refused of Dask collections, before any work, and its words."""

import sys

import numpy as np
import pytest
from _dask_data import bag, da, divided, in_bag, rows, spoilt
from _estimators import PythonMulticlass
from _seeds import cache_by_seed, new_seed
from _wrong_rows import row_of
from sklearn.preprocessing import label_binarize

from sklearn_structsvm import (
    BCFWClassifier,
    BMRMClassifier,
    CRFClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.structures import (
    ChainStructure,
    GraphStructure,
    HierarchicalStructure,
    MulticlassStructure,
    PairwiseMultilabelStructure,
    grid_edges,
)

NO_ROWS = "does not support Dask arrays and data frames"


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (("X", 160, 2), np.nan, "(?s)Chunk 2 of the Dask collection: .*X contains NaN"),
        (("y", 5), np.inf, "Chunk 0 of the Dask collection: .*y contains infinity"),
        (("y", 5), 0.5, "Chunk 0 of the Dask collection: Unknown label type: cont"),
        (("s", 299), -1.0, r"Chunk 4 .*sample_weight\[59\] must be finite .* got -1"),
        (("s", 299), np.nan, r"Chunk 4 .*sample_weight\[59\] must be finite .* got nan"),
    ],
)
def test_bad_values_are_refused_where_they_are(at, value, message):
    X, y, s = spoilt(at, value)
    model = SubLBFGSClassifier(C=0.1).fit(divided(rows()[0]), divided(rows()[1]))
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=s)
    assert vars(model) == before


@cache_by_seed
def of_rows():
    """(model, data, words)."""
    X, y, s = rows()
    X_, y_, s_ = divided(X), divided(y), divided(s)
    other = (100, 100, 100)
    several = label_binarize(y, classes=range(4))
    letter = np.array("a", dtype=object)
    halves = np.repeat(np.array(["a", 1], dtype=object), [150, 150])
    own = SubLBFGSClassifier()
    masks = [da.ma.masked_array(part, mask=part == part) for part in (X_, y_)]
    mixed = "y mixes labels that cannot be sorted"
    return [
        (own, (X_, y), "y must be .* the row chunks of X"),
        (own, (X, y_), "X must be a dask.array .* got ndarray"),
        (own, (X_, None), "y must be a Dask collection.* got NoneType"),
        (own, (X_, y_, s), "sample_weight must be a Dask"),
        (own, (X_, divided(y, other)),
         "X has 5 chunk.s. of 150, 1, 89, 0, 60 rows, and y 3"),
        (own, (da.from_array(X, chunks=(100, 4)), divided(y, other)),
         r"X must be chunked by rows alone: use X.rechunk\(\{1: -1\}\)"),
        (own, (y_, y_), "X must be a 2-D collection; got 1"),
        (own, (X_, 0 * y_), "only one class: 0"),
        (own, (X_, y_, 0 * s_), "must not be zero"),
        (own, (X_, y_, 0 * s_ + 1e308), "too large"),
        (own, (X_[:0], y_[:0]), r"Found array with 0 sample\(s\)"),
        (own, (X_, divided(np.where(y > 0, letter, 1))), mixed),
        (own, (X_, divided(halves)), mixed),
        (own, (X_, divided(2 * several)), "0 and 1; got 2"),
        (own, (X_, divided(several * np.arange(4))), "multiclass-multioutput"),
        (SubLBFGSClassifier(penalty="l1"), (X_, divided(y % 2)),
         "use loss='squared_hinge' or penalty='l2'"),
        (SubLBFGSClassifier("squared_hinge", solver="newton"), (X_, y_),
         "needs data in memory.* use solver='auto'"),
        (PragamClassifier(), (X_, y_), "BCFWClassifier or BMRM"),
        (BMRMClassifier(MulticlassStructure()), (X_, y_), "needs data in memory"),
        (BCFWClassifier(HierarchicalStructure([[0, 1], [0, 2]])), (X_, y_), NO_ROWS),
        (BCFWClassifier(ChainStructure()), (X_, y_), NO_ROWS),
        (CRFClassifier(ChainStructure()), (X_, y_), NO_ROWS),
        (BCFWClassifier(warm_start=True), (X_, y_),
         "warm_start=True needs data in memory"),
        (BCFWClassifier(step="exact", solver_options={"coef_bounds": (-1, 1)}), (X_, y_),
         "step='exact' requires coef_bounds=None"),
        (BCFWClassifier(), (X_, y), "y must be a Dask collection"),
        (
            BCFWClassifier(),
            (da.full_like(X_, np.nan), y_),
            r"Chunk \d of the Dask collec",
        ),
        (CRFClassifier(), (da.full_like(X_, np.nan), y_), r"Chunk \d of the Dask collec"),
        (BCFWClassifier(), (da.full_like(X_, 1e160), y_),
         "X has features as large as .*over"),
        (BCFWClassifier(), (masks[0], y_), r"^Chunk \d of the .*: X is a masked array"),
        (BCFWClassifier(), (X_, masks[1]), r"^Chunk \d of the .*: y has a masked label"),
    ]  # fmt: skip


def chains(n=9):
    return make_chains(n_samples=n, random_state=new_seed(0))


@cache_by_seed
def of_items():
    """(model, data, words)."""
    X, y = chains()
    X_, y_ = in_bag(X), in_bag(y)
    grid = np.ones((4, 2)), grid_edges((2, 2))
    graphs = bag.from_sequence([grid] * 4, npartitions=2)
    of_graphs = bag.from_sequence([np.arange(4) % 2] * 4, npartitions=2)
    memory = "needs data in memory"
    options = [
        (BCFWClassifier(warm_start=True), "warm_start=True"),
        (BCFWClassifier(step="fw"), "step='fw'"),
        (BCFWClassifier(solver_options={"average": True}), "average=True"),
        (BCFWClassifier(solver_options={"sampling": "gap"}), "sampling='gap'"),
        (SlackRescaledSSVM(solver="sgd"), "solver='sgd'"),
        (CRFClassifier(solver="dual"), "solver='dual'"),
        (CRFClassifier(solver="newton"), "solver='newton'"),
        (CRFClassifier(warm_start=True), "warm_start=True"),
        (CRFClassifier(class_weight="balanced"), "class_weight of .*"),
        (CRFClassifier(label_costs=1.0 - np.eye(3)), "label_costs of .*"),
    ]
    own = BCFWClassifier()
    return [(model, (X_, y_), f"{words} {memory}") for model, words in options] + [
        (
            CRFClassifier(PairwiseMultilabelStructure()),
            (X_, y_),
            "a structure that can sum",
        ),
        (
            CRFClassifier(GraphStructure()),
            (graphs, of_graphs),
            f"GraphStructure {memory}",
        ),
        (
            BCFWClassifier(MulticlassStructure()),
            (X_, y_),
            "one row per example: pass a Dask array or da",
        ),
        (
            BCFWClassifier(PythonMulticlass(), class_weight="balanced"),
            (X_, y_),
            "class_weight cannot be used with Python",
        ),
        (own, (X_, in_bag(y, 2)), "same number of parts; got 4, 3"),
        (own, (X_, y), "y must be a dask.bag"),
        (own, (X_, in_bag(y[:7])), "Part 1 has 3 examples in X, but 2 in y"),
        (own, (in_bag([]), in_bag([])), "X is empty"),
        (own, (in_bag([*X[:-1], X[-1][:, :3]]), y_), "features"),
        (
            own,
            (in_bag([*X[:-1], 1e160 * X[-1]]), y_),
            "X has features as large as .*overflow",
        ),
        (own, (X_, y_, in_bag([1, 1, 1, -1, *[1] * 5])), "Part 1: "),
    ]


@pytest.mark.parametrize("number", range(len(of_rows() + of_items())))
def test_what_makes_no_problem_is_refused(number):
    model, (X, y, *s), message = (of_rows() + of_items())[number]
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(X, y, *s)
    assert not hasattr(model, "coef_")


class Strays(PythonMulticlass):
    """For one example, its joint features have an index out of range."""

    def joint_feature(self, x, y):
        phi = super().joint_feature(x, y)
        return row_of(len(phi), [99]) if x[0] == 7.0 else phi


def test_errors_of_a_structure_on_a_worker_tell_of_which_part_they_are(monkeypatch):
    monkeypatch.setattr("sklearn_structsvm.distributed.sequences.n_places", lambda: 2)
    X, y = list(np.ones((12, 4))), [0] * 12
    X[7] = np.full(4, 7.0)
    message = "joint_feature of Strays must have indices from 0 to 11; got the index 99"
    with pytest.raises(ValueError, match=f"{message} for example 3") as caught:
        BCFWClassifier(Strays()).fit(in_bag(X, 3), in_bag(y, 3))
    assert caught.value.__notes__ == [
        "The example is one of part 1, 3, counted on from its start."
    ]


def test_without_dask_it_is_said_how_to_get_it(monkeypatch):
    X, y, _ = rows()
    data = divided(X), divided(y)
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match="pip install .*distributed"):
        SubLBFGSClassifier().fit(*data)
    # Nobody else needs it.
    SubLBFGSClassifier(C=0.1).fit(X, y)

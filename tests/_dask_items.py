"""Dask bags of sequences and other items, and what is so of fits to them."""

import numpy as np
import pytest
from _estimators import PythonMulticlass, assert_same_optimum
from _seeds import new_rng, new_seed
from scipy import sparse

from sklearn_structsvm import BCFWClassifier, CRFClassifier, SlackRescaledSSVM
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.preprocessing import SplitMatrix
from sklearn_structsvm.structures import ChainStructure, TreeStructure
from sklearn_structsvm.structures._probe import Probe


def chains(n=60):
    return make_chains(n_samples=n, random_state=new_seed(0))


def item_problems():
    X, y = chains()
    few = [sparse.csr_array(np.where(np.abs(x) > 1.0, x, 0.0)) for x in X]
    split = [SplitMatrix([x, own]) for x, own in zip(X, few, strict=True)]
    names = [np.array(list("abcdefghijkl"))[labels] for labels in y]
    rng = new_rng(0)
    trees = [(x, np.array([-1, *(rng.integers(t) for t in range(1, len(x)))])) for x in X]
    vectors = list(rng.standard_normal((60, 4)))
    labels = [int(np.argmax(x[:3])) for x in vectors]
    fit = {"C": 0.05, "tol": 1e-4, "max_iter": 10**5, "random_state": 0}
    exact = fit | {"tol": 1e-7}
    balanced = {"class_weight": "balanced"}
    return {
        "chains": (BCFWClassifier(**fit), X, y),
        "names": (BCFWClassifier(ChainStructure(), **fit, **balanced), few, names),
        "pairwise": (BCFWClassifier(**fit, step="pairwise"), X, y),
        "bounds": (BCFWClassifier(**fit, solver_options={"coef_bounds": (-0.1, 0.2)}),
                   split, y),
        "trees": (BCFWClassifier(TreeStructure(), **fit), trees, y),
        "slack": (SlackRescaledSSVM(**fit), X, y),
        "margin": (SlackRescaledSSVM(**fit, rescaling="margin"), X, y),
        "crf": (CRFClassifier(**exact), X, y),
        "crf, names": (CRFClassifier(**exact), X, names),
        "crf, trees": (CRFClassifier(TreeStructure(), **exact), trees, y),
        "python": (BCFWClassifier(PythonMulticlass(), **fit), vectors, labels),
    }  # fmt: skip


def check_items(model, X, y, s, here):
    assert_same_optimum(model, here, model.C * s.sum())
    assert model.dual_gap_ <= model.tol
    assert model.structure_.n_weights_ == here.structure_.n_weights_
    assert model.n_oracle_calls_ > len(X)
    if isinstance(model, CRFClassifier):
        value = 0.5 * model.coef_ @ model.coef_ / (model.C * s.sum())
        value -= s @ model.log_likelihood(X, y) / s.sum()
        assert model.objective_ == pytest.approx(value, rel=1e-10)
    # The objective, one example at a time.
    if isinstance(model, BCFWClassifier):
        w, hinge = model.coef_, 0.0
        for weight, x, labels in zip(s / s.sum(), X, y, strict=True):
            X_in, y_in = model.structure_.check_data([x], [labels])
            probe = Probe(model.structure_.make_oracle(X_in, y_in), 0, w)
            hinge += weight * sum(probe.best(1.0)[1:3])
        value = 0.5 * w @ w / (model.C * s.sum()) + hinge
        assert model.objective_ == pytest.approx(value, rel=1e-10)

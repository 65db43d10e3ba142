"""Kernels round a product before they add it, whichever of their loops is at work.

A compiler that contracts the two in some loops alone lets bits depend on the processor,
on the number of columns and even on where arrays lie in memory.
"""

import numpy as np
import pytest
from _seeds import new_rng
from scipy import sparse

from sklearn_structsvm.structures import MulticlassStructure
from sklearn_structsvm.structures._probe import Probe


@pytest.mark.parametrize("n_classes", range(2, 20))
def test_a_product_is_rounded_before_it_is_added(n_classes):
    rng = new_rng(n_classes)
    x = rng.uniform(1.0, 2.0)
    X, y = sparse.csr_array([[1.0, x]]), [0]
    structure = MulticlassStructure().fit(X, y, classes=np.arange(n_classes))
    w = rng.uniform(1.0, 2.0, n_classes)
    w[0] = 0.0
    probe = Probe(structure.make_oracle(X, y), 0, np.concatenate([-x * w, w]))
    scores = [probe.evaluate(np.array([c], dtype=np.intc))[0] for c in range(n_classes)]
    assert scores == [0.0] * n_classes


@pytest.mark.parametrize("n_classes", range(2, 20))
def test_the_same_holds_where_a_gradient_is_added_up(n_classes):
    rng = new_rng(n_classes)
    x = rng.uniform(1.0, 2.0, 2)
    X, y = sparse.csr_array(x[:, np.newaxis]), [0, 1]
    structure = MulticlassStructure().fit(X, y, classes=np.arange(n_classes))
    p = rng.uniform(size=2)
    p /= p.sum()
    _, gradient = structure.make_oracle(X, y).log_loss(p, np.zeros(structure.n_weights_))
    residuals = np.full((2, n_classes), 1.0 / n_classes) - np.eye(2, n_classes)
    terms = (p * x)[:, np.newaxis] * residuals
    np.testing.assert_array_equal(gradient, terms[0] + terms[1])

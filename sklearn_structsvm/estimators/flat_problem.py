"""Exact steps for the built-in structures of one feature vector per example."""

import numpy as np

from sklearn_structsvm._utils._matrix._rows import Rows
from sklearn_structsvm._utils.labels import encode
from sklearn_structsvm.solvers.blocks._exact_blocks import ClassAscent, LabelAscent
from sklearn_structsvm.structures import (
    BinaryStructure,
    MulticlassStructure,
    MultilabelStructure,
)


def has_exact_steps(structure):
    """Whether the best dual point of one example is known in closed form.

    A subclass may have changed what is predicted, or what it costs.
    """
    return type(structure) in (BinaryStructure, MulticlassStructure, MultilabelStructure)


def make_ascent(problem, lam):
    """A fresh `ExactAscent` for a `Problem` whose structure has exact steps."""
    structure, y, costs = problem.structure, problem.y, problem.structure.label_costs_
    rows = Rows(problem.X, structure.bias_)
    if isinstance(structure, MultilabelStructure):
        return LabelAscent(rows, structure._encode(y), costs, problem.weights, lam)
    codes = encode(y, structure.classes_)
    if isinstance(structure, BinaryStructure):
        indicator = codes[:, np.newaxis].astype(np.int8)
        costs = np.array([[costs[0, 1], costs[1, 0]]])
        return LabelAscent(rows, indicator, costs, problem.weights, lam)
    return ClassAscent(rows, codes, costs, problem.weights, lam)

"""The structure given by a parameter or by the data."""

from typing import Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.labels import as_classes
from sklearn_structsvm.solvers.batch.proximal_newton import MOST_MODELED
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    GraphStructure,
    MulticlassStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
    Structure,
    TreeStructure,
)

# Structures that need no arguments, by their names for `structure`.
STRUCTURES = {
    "binary": BinaryStructure,
    "chain": ChainStructure,
    "graph": GraphStructure,
    "multiclass": MulticlassStructure,
    "multilabel": MultilabelStructure,
    "pairwise": PairwiseMultilabelStructure,
    "tree": TreeStructure,
}
StructureName = Literal[
    "auto", "binary", "chain", "graph", "multiclass", "multilabel", "pairwise", "tree"
]
STRUCTURE_CONSTRAINT = [StrOptions({"auto", *STRUCTURES}), Structure]


def named_structure(structure):
    """The Structure given by the parameter `structure`, or None if the data decide.

    Tags are needed before parameters are checked, so a wrong name gives None as well.
    """
    if not isinstance(structure, str):
        return structure
    return STRUCTURES[structure]() if structure in STRUCTURES else None


def traits_of(structure):
    """What has a structure's attributes: it, its class if it is named, or None."""
    if isinstance(structure, str):
        return STRUCTURES.get(structure)
    return structure if isinstance(structure, Structure) else None


def fresh(structure):
    """An unfitted copy, after a check of its parameters."""
    structure = clone(structure)
    structure._check_parameters()
    return structure


def is_flat(structure):
    """Whether `structure` means one row of X per example, as far as known."""
    traits = traits_of(structure)
    return traits is None or traits.flat


def infer_structure(has_items, y, classes):
    """The structure that "auto" resolves to, for items or for rows."""
    if has_items:
        return ChainStructure()
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        return MultilabelStructure()
    if kind not in ("binary", "multiclass"):
        check_classification_targets(y)
        raise ValueError(
            f"structure='auto' does not support y of type {kind!r}. Supported are "
            "binary, multiclass and multilabel-indicator targets, and label sequences."
        )
    n_classes = len(np.unique(y) if classes is None else as_classes(classes))
    return BinaryStructure() if n_classes <= 2 else MulticlassStructure()


def wants_indicator(structure):
    """Whether a named structure reads a column as an indicator of one label."""
    traits = traits_of(structure)
    return traits is not None and traits.multi_label


def class_options(estimator, structure):
    """`classes` and `class_weight` for a structure that has classes, {} for others.

    Costs of its own loss are weighted, but not those that a likelihood is trained with.
    """
    classes, class_weight = estimator._options.classes, estimator.class_weight
    options = {"classes": classes, "class_weight": class_weight}
    if structure.has_classes:
        if estimator.has_costs_of_training and not structure.flat:
            options["class_weight"] = None
        return options
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name} cannot be used with {type(structure).__name__}; leave it at "
                "None."
            )
    return {}


def has_exact_steps(structure):
    """Whether the best dual point of one example is known in closed form.

    A subclass may have changed the decoders or the loss.
    """
    return type(structure) in (BinaryStructure, MulticlassStructure, MultilabelStructure)


def has_written_hessian(structure):
    """Whether Newton's method writes out the Hessian of the log-loss of sequences.

    A subclass may have changed the features.
    """
    is_chain = type(structure) is ChainStructure and structure._has_curvature
    return is_chain and structure.n_weights_ <= MOST_MODELED

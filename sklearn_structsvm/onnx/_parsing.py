"""Models that have a form in ONNX, and the inputs and outputs of their graphs."""

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm._utils.borders import check_classes
from sklearn_structsvm._utils.damaged import damage_refused
from sklearn_structsvm._utils.groups import POOL
from sklearn_structsvm.estimators.bcfw import BCFWClassifier
from sklearn_structsvm.estimators.bcfw_cv import BCFWClassifierCV
from sklearn_structsvm.estimators.bmrm import BMRMClassifier
from sklearn_structsvm.estimators.complex_metric.classifier import ComplexMetricClassifier
from sklearn_structsvm.estimators.complex_metric.label_rules import (
    ThresholdRule,
    TopLabelsRule,
)
from sklearn_structsvm.estimators.complex_metric.multilabel import (
    MultilabelMetricClassifier,
)
from sklearn_structsvm.estimators.complex_metric.pairs import IndependentPairs
from sklearn_structsvm.estimators.crf import CRFClassifier
from sklearn_structsvm.estimators.crf_cv import CRFClassifierCV
from sklearn_structsvm.estimators.pragam import PragamClassifier
from sklearn_structsvm.estimators.slack_rescaling import SlackRescaledSSVM
from sklearn_structsvm.estimators.stacked import StackedStructureClassifier
from sklearn_structsvm.estimators.sublbfgs import SubLBFGSClassifier
from sklearn_structsvm.onnx import _skl2onnx
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
)
from sklearn_structsvm.structures.ranking import RankingStructure

LINEAR_MODELS = (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    CRFClassifier,
    CRFClassifierCV,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
SINGLE_LABEL = BinaryStructure, MulticlassStructure
MULTILABEL = MultilabelStructure, RankingStructure

# Names of the inputs besides the features.
EXTRA_INPUTS = GROUPS, UNIFORMS = "sensitive_features", "uniforms"


def parse(scope, model, inputs, custom_parsers=None):
    """The outputs of a classifier's graph; ValueError if it has no form in ONNX."""
    check_is_fitted(model)
    with damage_refused(model):
        check_classes(model.classes_)
        CHECKS.get(type(model), _check_linear)(model)
    if not isinstance(model, LINEAR_MODELS):
        inputs = _parse_inner(scope, model, inputs, custom_parsers)
    elif len(inputs) != 1:
        raise ValueError(
            f"{type(model).__name__} takes one matrix of features; got the inputs "
            f"{[x.raw_name for x in inputs]}."
        )
    if _has_several_labels(model):
        return _skl2onnx._parse_sklearn_simple_model(scope, model, inputs, custom_parsers)
    _check_classes(model)
    if isinstance(model, StackedStructureClassifier):
        operator = scope.declare_local_operator(model_name(type(model)), model)
        operator.inputs = inputs
        kinds = _skl2onnx.Int64TensorType(), inputs[0].type.__class__()
        for name, kind in zip(("label", "probabilities"), kinds, strict=True):
            operator.outputs.append(scope.declare_local_variable(name, kind))
        return operator.outputs
    return _skl2onnx._parse_sklearn_classifier(scope, model, inputs, custom_parsers)


def model_name(kind):
    """The name of a class of estimators in skl2onnx."""
    return f"SklearnStructSVM{kind.__name__}"


def _parse_inner(scope, model, inputs, custom_parsers):
    """Probabilities of the inner classifiers, and the inputs besides the features."""
    features = [x for x in inputs if x.raw_name not in EXTRA_INPUTS]
    found = []
    for classifier in inner_classifiers(model):
        scope.add_options(id(classifier), {"zipmap": False})
        _, probabilities = _skl2onnx._parse_sklearn(
            scope, classifier, features, custom_parsers
        )
        found.append(probabilities)
    return found + [x for x in inputs if x.raw_name in EXTRA_INPUTS]


def inner_classifiers(model):
    """The classifiers whose probabilities the rules of a model use."""
    inner = model.estimator_
    found = [inner]
    if isinstance(inner, IndependentPairs):
        found = [inner.estimator_, inner.group_estimator_]
    return [c.estimator if isinstance(c, FrozenEstimator) else c for c in found]


def _has_several_labels(model):
    if isinstance(model, MultilabelMetricClassifier):
        return True
    return type(getattr(model, "structure_", None)) in MULTILABEL


def _check_linear(model):
    kind = type(model.structure_)
    if kind not in SINGLE_LABEL + MULTILABEL:
        _refuse(model, f"{kind.__name__} decodes, for which ONNX has no operators")


def _check_mixture(model):
    mixture = model.mixture_
    if not mixture.needs_probabilities:
        _refuse(model, "its classifiers decide without class probabilities")
    mixture.check(len(model.classes_))
    finder = model.cell_finder_
    if finder.baseline is not None:
        _refuse(model, "its rules depend on the predictions of a baseline")
    if sees_groups(model) and group_type(finder.groups) is None:
        _refuse(
            model, "its groups are neither strings nor integers, or of several columns"
        )


def _check_label_rule(model):
    if not isinstance(model.label_rule_, (ThresholdRule, TopLabelsRule)):
        _refuse(model, "sets of largest expected F-measure are found by a search")
    if isinstance(getattr(model.estimator_, "classes_", None), list):
        _refuse(
            model,
            "its estimator gives a list of probabilities, an array for each label: "
            "OneVsRestClassifier gives one array",
        )


def _check_stacked(model):
    structure, known = model.final_estimator_.structure_, model.estimator_.classes_
    is_plain = type(structure) is ChainStructure and structure.emission == "given"
    is_plain = is_plain and not structure.edge_features and structure.allowed_ is None
    has_all = np.array_equal(np.sort(known), model.classes_)
    if not (is_plain and has_all and "least_probability_" in vars(model)):
        _refuse(model, "only plain chains over probabilities of all classes have one")


CHECKS = {
    StackedStructureClassifier: _check_stacked,
    ComplexMetricClassifier: _check_mixture,
    MultilabelMetricClassifier: _check_label_rule,
}


def _refuse(model, reason):
    raise ValueError(f"This {type(model).__name__} has no form in ONNX: {reason}.")


def _check_classes(model):
    if onnx_labels(model.classes_) is None:
        _refuse(
            model,
            f"its classes are {model.classes_[:3].tolist()}, and labels are integers or "
            "strings there",
        )


def onnx_labels(classes):
    """Classes as int64 or str, the types of labels in ONNX; None for other classes."""
    if classes.dtype.kind in "iub":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        # skl2onnx converts whole numbers likewise.
        return classes.astype(np.int64) if (classes == np.rint(classes)).all() else None
    is_text = all(isinstance(label, str) for label in classes.tolist())
    return classes.astype(str) if is_text else None


def sees_groups(model):
    """Whether the rules of a mixture depend on the group."""
    finder = model.cell_finder_
    return finder.groups is not None and not finder.group_blind


def input_groups(groups):
    """(name, code) of the groups that rows may be of.

    The name of pooled groups is among them if it is of the type of the others.
    """
    known = groups.known()
    others = [pair for pair in known if not (groups.pooled and pair[0] == POOL)]
    return known if any(isinstance(name, str) for name, _ in others) else others


def group_type(groups):
    """Tensor type of the groups; None if they are neither strings nor integers."""
    kinds = {type(name) for name, _ in input_groups(groups)}
    if kinds == {str}:
        return _skl2onnx.StringTensorType
    return _skl2onnx.Int64TensorType if kinds <= {int, bool} else None


def set_output_types(operator):
    """Set the shapes of both outputs and the type of the labels."""
    model = operator.raw_operator
    n, n_classes = operator.inputs[0].get_first_dimension(), len(model.classes_)
    operator.outputs[1].type.shape = [n, n_classes]
    if _has_several_labels(model):
        operator.outputs[0].type = _skl2onnx.Int64TensorType([n, n_classes])
        return
    labels = onnx_labels(_skl2onnx.get_label_classes(operator.scope_inst, model))
    is_text = labels.dtype.kind == "U"
    kind = _skl2onnx.StringTensorType if is_text else _skl2onnx.Int64TensorType
    operator.outputs[0].type = kind([n])

"""Graphs of linear classifiers, of mixtures of plug-in rules, and of label rules."""

import numpy as np

from sklearn_structsvm.confusion.lmo._costs import reduce_costs
from sklearn_structsvm.confusion.lmo.plugin import by_pair
from sklearn_structsvm.confusion.smoothing import LEAST_BELOW_ONE
from sklearn_structsvm.estimators.complex_metric.classifier import ComplexMetricClassifier
from sklearn_structsvm.estimators.complex_metric.correction import balanced_gain
from sklearn_structsvm.estimators.complex_metric.label_rules import ThresholdRule
from sklearn_structsvm.estimators.complex_metric.multilabel import (
    MultilabelMetricClassifier,
)
from sklearn_structsvm.estimators.complex_metric.pairs import IndependentPairs
from sklearn_structsvm.estimators.probabilistic import ProbabilisticClassifier
from sklearn_structsvm.estimators.stacked import StackedStructureClassifier
from sklearn_structsvm.onnx import _skl2onnx
from sklearn_structsvm.onnx._graph import Graph
from sklearn_structsvm.onnx._parsing import (
    GROUPS,
    LINEAR_MODELS,
    SINGLE_LABEL,
    UNIFORMS,
    group_type,
    input_groups,
    sees_groups,
)
from sklearn_structsvm.structures import BinaryStructure


def _convert_linear(scope, operator, container):
    """Labels, and scores W x + b or probabilities."""
    graph = Graph(scope, operator, container)
    model = graph.model
    structure, w = model.structure_, model._weights
    coef, intercept = structure.split_weights(w)
    intercept = np.zeros(len(coef)) if intercept is None else intercept
    is_proba = isinstance(model, ProbabilisticClassifier)
    if isinstance(structure, BinaryStructure):
        of_first = 0.0 if is_proba else -1.0
        coef = np.vstack([of_first * coef, coef])
        intercept = np.concatenate([of_first * intercept, intercept])
    scores = graph.Add(graph.MatMul(graph.as_real(graph.inputs[0]), coef.T), intercept)
    if type(structure) in SINGLE_LABEL:
        numbers = graph.Softmax(scores, axis=1) if is_proba else scores
        if is_proba and model._decoding == "mbr":
            expected = graph.MatMul(numbers, structure.label_costs_)
            codes = graph.ArgMin(expected, axis=1, keepdims=0)
        else:
            codes = graph.ArgMax(scores, axis=1, keepdims=0)
        graph.finish_with_codes(codes, numbers)
        return
    if is_proba:
        numbers = graph.Sigmoid(scores)
        present = graph.Greater(scores, np.zeros(1))
        if model._decoding == "mbr":
            costs = structure.label_costs_
            missed = graph.Mul(numbers, costs[:, 1])
            wrong = graph.Mul(graph.Sub(np.ones(1), numbers), costs[:, 0])
            present = graph.Greater(missed, wrong)
    else:
        threshold = np.array([getattr(structure, "threshold_", 0.0)])
        present, numbers = graph.Greater(scores, threshold), graph.Sub(scores, threshold)
    graph.finish(graph.as_int(present), numbers)


def _convert_mixture(scope, operator, container):
    """Labels by plug-in rules, and the share of the rules that predict each label."""
    graph = Graph(scope, operator, container)
    model = graph.model
    mixture, k = model.mixture_, len(model.classes_)
    n_rules = len(mixture.weights)
    # Of shape (cells, rules, 1, k) and (cells, rules, groups times k, k).
    cuts = mixture.cuts()
    if cuts is None:
        parts = _affine_costs(by_pair(mixture.mean_losses(), mixture.n_groups))
    else:
        parts = _costs_of_cuts(cuts, graph)
    constant, factors = parts
    if sees_groups(model):
        group = _group_codes(graph, model.cell_finder_.groups)
        constant = graph.Gather(constant, group, axis=0)
        factors = graph.Gather(factors, group, axis=0)
    P = _mixture_probabilities(graph)
    P = graph.reshape(P, -1, 1, 1, mixture.n_groups * k)
    costs = graph.Add(graph.MatMul(P, factors), constant)
    codes = graph.ArgMin(graph.reshape(costs, -1, n_rules, k), axis=2, keepdims=0)
    is_chosen = graph.Equal(graph.reshape(codes, -1, n_rules, 1), np.arange(k))
    shares = graph.MatMul(mixture.weights[np.newaxis], graph.as_real(is_chosen))
    if n_rules > 1:
        codes = graph.GatherElements(codes, _chosen_rules(graph), axis=1)
    graph.finish_with_codes(graph.reshape(codes, -1), graph.reshape(shares, -1, k))


def _costs_of_cuts(cuts, graph):
    """The same as of `_affine_costs`, of thresholds: predicting the other label is free.

    In single precision, a number is above a threshold where it is above the largest
    single one that is not above it.
    """
    at, below, named = np.clip(cuts.at, -1.0, 2.0), cuts.below, cuts.named
    if graph.real == np.float32:
        single = at.astype(np.float32)
        # Which side of the threshold a tie belongs to.
        down = below == (named == 0)
        toward = np.where(down, -np.inf, np.inf).astype(np.float32)
        wrong = np.where(down, single > at, single < at)
        at = np.where(wrong, np.nextafter(single, toward), single)
    sign = np.where(below, -1.0, 1.0)
    constant = np.zeros((*at.shape, 1, 2))
    factors = np.zeros((*at.shape, 2, 2))
    constant[..., 0, named], factors[..., named, named] = sign * at, -sign
    return np.swapaxes(constant, 0, 1), np.swapaxes(factors, 0, 1)


def _affine_costs(losses):
    """(b, D) such that predicting j costs (b + η D)_j, as computed by the kernel."""
    n_rules, n_cells, k, q = losses.shape
    numbers, separable = reduce_costs(losses.reshape(-1, k, q), False)
    constant, factors = np.zeros((len(losses) * n_cells, 1, q)), []
    for own, is_separable, b in zip(numbers, separable, constant, strict=True):
        if is_separable:
            b[0] = own[:q]
            factors.append(np.diag(own[q : 2 * q]))
        else:
            factors.append(own[: k * q].reshape(q, k).T)
    shape = n_rules, n_cells
    return tuple(
        np.swapaxes(np.reshape(part, (*shape, *np.shape(part)[1:])), 0, 1)
        for part in (constant, factors)
    )


def _mixture_probabilities(graph):
    """The (corrected) probabilities on which the rules of a mixture decide."""
    model = graph.model
    mixture, classifier = model.mixture_, model.estimator_
    if isinstance(classifier, IndependentPairs):
        labels = graph.probabilities(0, classifier.classes)
        groups = graph.probabilities(1, classifier.groups)
        labels = graph.reshape(labels, -1, 1, len(classifier.classes))
        groups = graph.reshape(groups, -1, len(classifier.groups), 1)
        n_pairs = len(classifier.classes_)
        return graph.reshape(graph.Mul(groups, labels), -1, n_pairs)
    classes = model.classes_
    if mixture.n_groups > 1:
        classes = np.arange(mixture.n_groups * len(classes))
    P = graph.probabilities(0, classes)
    if mixture.correction is None:
        return P
    a, b = np.split(mixture.correction.calibration, [1])
    at_least = np.array([mixture.correction.floor])
    scores = graph.Mul(graph.Log(graph.Max(P, at_least)), a)
    P = graph.Softmax(graph.Add(scores, b), axis=1)
    part = graph.ArgMax(
        graph.Mul(P, balanced_gain(mixture.correction.shares)), axis=1, keepdims=0
    )
    return graph.Mul(P, graph.Gather(mixture.correction.factors, part, axis=0))


def _group_codes(graph, groups):
    """Code of each row's group; one beyond the last, an invalid index, if unknown."""
    kind = group_type(groups)
    column = graph.input(GROUPS, kind)
    if column is None:
        raise ValueError(
            f"The rules depend on the group: a second input is needed, "
            f"({GROUPS!r}, {kind.__name__}([None, 1]))."
        )
    known = input_groups(groups)
    keys = {"keys_strings": [name for name, _ in known]}
    if kind is _skl2onnx.Int64TensorType:
        keys = {"keys_int64s": [int(name) for name, _ in known]}
    codes = graph.LabelEncoder_2(
        column,
        values_int64s=[code for _, code in known],
        default_int64=len(groups.names),
        **keys,
    )
    return graph.reshape(codes, -1)


def _chosen_rules(graph):
    """The rule of each row, of shape (n, 1)."""
    uniforms = graph.input(UNIFORMS)
    weights = graph.model.mixture_.weights
    if uniforms is None:
        raise ValueError(
            f"This {type(graph.model).__name__} is a mixture of {len(weights)} rules, "
            "one of which is chosen for each row by a hash that ONNX has no operators "
            f"for: an input is needed, ({UNIFORMS!r}, DoubleTensorType([None, 1])), of "
            "numbers in [0, 1)."
        )
    ends = np.cumsum(weights)[:-1].astype(_skl2onnx.guess_numpy_type(uniforms.type))
    ends = _skl2onnx.onnx_ops.OnnxIdentity(ends, op_version=graph.container.target_opset)
    passed = graph.as_int(graph.GreaterOrEqual(uniforms, ends))
    ones = np.ones((len(weights) - 1, 1), dtype=np.int64)
    return graph.MatMul(passed, ones)


def _calibrated(graph, P):
    """Probabilities of labels after the model's sigmoids, if it has any."""
    if graph.model.label_sigmoids_ is None:
        return P
    a, b = graph.model.label_sigmoids_.T
    floor, zero = graph.model.label_floor_, np.array([0.0])
    least = np.array([floor]), np.array([max(floor, LEAST_BELOW_ONE)])
    parts = P, graph.Sub(np.array([1.0]), P)
    logs = [graph.Log(graph.Max(*pair)) for pair in zip(parts, least, strict=True)]
    q = graph.Sigmoid(graph.Add(graph.Mul(graph.Sub(*logs), a), b))
    return graph.Where(graph.Greater(P, zero), q, zero)


def _convert_label_rule(scope, operator, container):
    """Labels above their thresholds, or the labels with the largest gains."""
    graph = Graph(scope, operator, container)
    model, n_labels = graph.model, len(graph.model.classes_)
    P = graph.probabilities()
    if n_labels == 1 and len(model.estimator_.classes_) == 2:
        P = graph.MatMul(P, np.array([[0.0], [1.0]]))
    rule = model.label_rule_
    q = _calibrated(graph, P)
    if isinstance(rule, ThresholdRule):
        present = graph.Greater(q, rule.values)
        graph.finish(graph.as_int(present), P)
        return
    gains = graph.Add(graph.Mul(q, rule.gains[:, 1]), rule.gains[:, 0])
    best = graph.TopK(gains, np.array([rule.k], dtype=np.int64), axis=1)[1]
    is_best = graph.Equal(graph.reshape(best, -1, rule.k, 1), np.arange(n_labels))
    ones = np.ones((1, rule.k), dtype=np.int64)
    present = graph.MatMul(ones, graph.as_int(is_best))
    graph.finish(graph.reshape(present, -1, n_labels), P)


# Steps along a chain, over rows of scores t. The state m has a number for each label, of
# what was before: the sum or maximum over labelings, or the score after the best label.
STEP = "step (real[k] m, real[k] t) => (real[k] next, real[k] row) { x = Add(m, t) "
SUMS = """row = Identity(m) p = Softmax <axis = 0> (x)
    sums = MatMul(p, table) next = Log(sums) }"""
MAXIMA = """row = Identity(m) columns = Transpose <perm = [1, 0]> (table)
    all = Add(columns, x) one = Constant <value_ints = [1]> () best, at = TopK(all, one)
    shape = Constant <value_ints = [-1]> () next = Reshape(best, shape) }"""
CHOICE = "row = Identity(x) y = ArgMax <keepdims = 0> (x) next = Gather(table, y) }"


def _scan(graph, step, first, table, scores, backward=0):
    """A row for each row of scores; the other way, the table is read the other way."""
    real = "double" if graph.real == np.float64 else "float"
    body = _skl2onnx.parser.parse_graph((STEP + step).replace("real", real))
    table = (table.T if backward else table).astype(graph.real)
    body.initializer.append(_skl2onnx.numpy_helper.from_array(table, "table"))
    for node in body.node:  # names that are in no other graph
        node.name = node.output[0]
    names = [graph.scope.get_unique_variable_name(name) for name in ("m", "rows")]
    body = _skl2onnx.compose.add_prefix_graph(body, names[0])
    ways = {f"scan_{put}_directions": [backward] for put in ("input", "output")}
    ways |= {"num_scan_inputs": 1, "output_names": names}
    return graph.Scan(first, scores, body=body, **ways)[1]


def _convert_stacked(scope, operator, container):
    """Labels of the rows of one sequence, and their probabilities or max-marginals."""
    graph = Graph(scope, operator, container)
    model, final = graph.model, graph.model.final_estimator_
    parts, k = final.structure_.weight_parts(final.coef_), len(model.classes_)
    table = parts.get("transition", np.zeros((k, k)))
    names = "bias", "first_bias", "last_bias"
    bias, first, last = (parts.get(name, np.zeros(k)) for name in names)
    P = graph.probabilities(0, model.classes_)
    logs = graph.Log(graph.Max(P, np.array([model.least_probability_])))
    theta = graph.Add(graph.Mul(logs, parts["emission"]), bias)

    def both_ways(step, table):
        after = _scan(graph, step, last, table, theta, 1)
        before = _scan(graph, step, first, table, theta)
        return graph.Add(theta, after), graph.Add(graph.Add(theta, after), before)

    onward, numbers = both_ways(MAXIMA, table)
    gains = _scan(graph, CHOICE, first, table, onward)
    if isinstance(final, ProbabilisticClassifier):
        numbers = graph.Softmax(both_ways(SUMS, np.exp(table))[1], axis=1)
        if final._decoding == "mbr":
            gains = graph.MatMul(numbers, -final.structure_.label_costs_)
    graph.finish_with_codes(graph.ArgMax(gains, axis=1, keepdims=0), numbers)


CONVERTERS = {
    **dict.fromkeys(LINEAR_MODELS, _convert_linear),
    StackedStructureClassifier: _convert_stacked,
    ComplexMetricClassifier: _convert_mixture,
    MultilabelMetricClassifier: _convert_label_rule,
}

"""What scikit-learn asks of all estimators, by the checks that it generates."""

import pytest
from _checks import ODD_LABELS, generated_checks
from _estimators import ACCURATE, SAMPLE_LOSSES
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    check_estimator_repr,
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_param_validation,
    check_parameters_default_constructible,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    check_set_params,
    estimator_checks_generator,
)

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    CRFClassifier,
    CRFClassifierCV,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
)
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    Structure,
)

# Hundreds of fits: a short grid, and no long path to its end.
SHORT = {"Cs": [0.01, 0.1], "cv": 2, "solver_options": {"eps": 0.5}}

# Losses of the whole sample, one of each kind: of a metric, of k rows, of an order.
SAMPLE = ("f1", "break_even", "precision_at_k", "roc_auc")
FLAT = [
    BCFWClassifier(), BCFWClassifier(MulticlassStructure()),
    BCFWClassifier(BinaryStructure()), BCFWClassifierCV(**SHORT), SlackRescaledSSVM(),
    SlackRescaledSSVM(MulticlassStructure(), solver_options={"search": "exact"}),
    SlackRescaledSSVM(BinaryStructure(), solver="sgd"),
    SlackRescaledSSVM(solver="cutting_plane"), SlackRescaledSSVM(solver="one_slack"),
    CRFClassifier(), CRFClassifier(solver="dual"),
    CRFClassifier(MulticlassStructure(), solver_options={"decoding": "mbr"}),
    CRFClassifier(BinaryStructure(), solver="lbfgs"),
    CRFClassifierCV(Cs=[0.01, 0.1], cv=2, tol=1e-12), SubLBFGSClassifier(),
    SubLBFGSClassifier(solver="hybrid"),
    SubLBFGSClassifier(loss="slack_hinge", solver="sublbfgs"),
    SubLBFGSClassifier(solver="subbfgs"),
    SubLBFGSClassifier(loss="squared_hinge", tol=1e-14), SubLBFGSClassifier(penalty="l1"),
    SubLBFGSClassifier(loss="squared_hinge", penalty="l1"),
    SubLBFGSClassifier(loss="logistic", penalty="l1", tol=1e-14),
    SubLBFGSClassifier(loss="logistic", penalty="l1", solver="owlqn*"),
    *(SubLBFGSClassifier(loss=loss) for loss in ("f1", "roc_auc")), BMRMClassifier(),
    BMRMClassifier(solver_options={"line_search": False}),
    BMRMClassifier(solver_options={"subproblem": "line"}, max_iter=100),
    BMRMClassifier(MulticlassStructure()),
    *(BMRMClassifier(**SAMPLE_LOSSES[name]) for name in SAMPLE), PragamClassifier(),
    PragamClassifier(loss="slack_hinge"),
]  # fmt: skip
# With tol=1e-14, two fits agree within the 1e-7 that checks of weights ask for.
ACCURATE_ALREADY = [
    SubLBFGSClassifier(tol=1e-14),
    SubLBFGSClassifier(solver="hybrid", tol=1e-14),
    BMRMClassifier(tol=1e-14),
    *(
        make(**SAMPLE_LOSSES[name], tol=1e-14)
        for make in (BMRMClassifier, SubLBFGSClassifier)
        for name in (SAMPLE_LOSSES if make is BMRMClassifier else SAMPLE)
        # They hand other labels with weights than repeated.
        if not ODD_LABELS
    ),
]
COMPLEX = [
    ComplexMetricClassifier(cv=2),
    ComplexMetricClassifier(metric="h_mean", confusion="labels", cv=None),
    ComplexMetricClassifier(metric="min_max", cv=None),
    ComplexMetricClassifier(metric="min_max", cv=None, randomized=False),
    ComplexMetricClassifier(metric="f1", cv=None),
    ComplexMetricClassifier(solver_options={"lmo": "weighted"}, max_iter=20),
]
EACH = [
    BCFWClassifier(), BCFWClassifierCV(), CRFClassifier(), CRFClassifierCV(),
    ComplexMetricClassifier(), SlackRescaledSSVM(),
]  # fmt: skip
# Of which structures have parameters of their own, or are a user's.
OVER = [
    BCFWClassifier(MultilabelStructure()), BCFWClassifierCV(ChainStructure()),
    CRFClassifier(ChainStructure()), SlackRescaledSSVM(Structure()),
]  # fmt: skip
# That of all classes by themselves are among the generated ones.
OF_PARAMETERS = [
    check_estimator_repr, check_get_params_invariance, check_no_attributes_set_in_init,
    check_parameters_default_constructible, check_set_params,
]  # fmt: skip
MULTILABEL = [
    BCFWClassifier(MultilabelStructure()),
    BCFWClassifierCV(MultilabelStructure(), **SHORT),
    CRFClassifier(MultilabelStructure()),
    CRFClassifierCV(MultilabelStructure(), Cs=[0.01, 0.1], cv=2),
    *(
        SlackRescaledSSVM(MultilabelStructure(), solver=solver)
        for solver in ("bcfw", "sgd", "cutting_plane")
    ),
    *(make(tol=0.01) for make in (SubLBFGSClassifier, BMRMClassifier, PragamClassifier)),
]
REPETITIONS = {
    check.__name__: check
    for check in (
        check_sample_weight_equivalence_on_dense_data,
        check_sample_weight_equivalence_on_sparse_data,
    )
}


def expected_failed_checks(estimator):
    if isinstance(estimator, ComplexMetricClassifier):
        if estimator.metric == "f1":
            reason = "has labels of which none is the positive one: f1 asks for pos_label"
            return {"check_fit2d_1feature": reason}
        reason = "asks for the argmax of predict_proba, which is another classifier"
        is_mixture = estimator.metric == "min_max"
        return {"check_classifiers_train": reason} if is_mixture else {}
    failed, loss = {}, getattr(estimator, "loss", "hinge")
    if getattr(estimator, "k", None) is not None or loss == "break_even":
        reason = "asks for class_weight, which has no meaning where k rows are counted"
        failed["check_class_weight_classifiers"] = reason
    # Some last quadratic programs are solved far beyond `tol`.
    is_accurate = getattr(estimator, "solver", None) == "one_slack" or loss == "f1"
    is_accurate |= isinstance(estimator, BMRMClassifier) and loss == "hinge"
    if estimator.tol > 1e-12 and not is_accurate:
        reason = (
            "asks two fits to agree within 1e-7, where tol=1e-3 promises 1e-3 of the "
            "objective. At the certificate's accuracy the claim is tested in "
            "test_common_structured.py, and below the check itself with tol=1e-14, but "
            "for Pragam and quasi-Newton steps, which do not get so far"
        )
        failed |= dict.fromkeys(REPETITIONS, reason)
    return failed


# Some checks hand over features of a scale where LinearSVC warns as well; they say
# nothing of convergence. Data are random, and what holds does so there as well.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The fit with loss=.* is no better than zero weights")
@generated_checks(FLAT, expected_failed_checks)
def test_flat_estimators_pass_the_generated_checks(estimator, check):
    check(estimator)


# Labels that nothing tells apart, folds of three examples, iterations of no end.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The classifier predicts .* for every training")
@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.filterwarnings("ignore:A fold trains without examples")
# What is counted is nearer to the labels the more examples there are, and weights of any
# scale are as many as their effective number: a weight of 2 is not two examples.
@generated_checks(COMPLEX, expected_failed_checks, left_out=REPETITIONS)
def test_complex_metrics_pass_the_generated_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The fit with loss=.* is no better than zero weights")
@pytest.mark.parametrize("check", REPETITIONS.values(), ids=REPETITIONS)
@pytest.mark.parametrize(
    "estimator",
    [
        e
        for e in FLAT
        # To two classes, scikit-learn 1.6 hands other data with weights than repeated.
        if not isinstance(getattr(e, "structure", None), BinaryStructure)
        # Subgradients would take forever.
        and getattr(e, "solver", None) != "sgd"
        # Its paths are within `eps`, so that C may differ, and the optimum for the data
        # of the check has scores that tie: predictions of equal fits may differ. What
        # it promises is tested in test_choice_of_c.py. Folds of repetitions are others.
        and type(e) in (BCFWClassifier, SlackRescaledSSVM, CRFClassifier)
    ]
    + ACCURATE_ALREADY,
    ids=repr,
)
def test_weights_equal_repetitions_where_tol_is_small(estimator, check):
    accurate = clone(estimator)
    if isinstance(estimator, CRFClassifier):
        # A smooth objective at its optimum: where the gap is 1e-16, weights are as near
        # as 1e-8. Steps go on to the last digit of theirs.
        accurate.set_params(tol=0.0, max_iter=1000)
    elif estimator not in ACCURATE_ALREADY:
        accurate.set_params(**ACCURATE | {"tol": 1e-14, "max_iter": 10**5})
    if isinstance(estimator, SlackRescaledSSVM):
        accurate.set_params(solver_options__search="exact")
        if estimator.solver != "bcfw":
            accurate.set_params(step="auto")
    check(type(estimator).__name__, accurate)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", MULTILABEL, ids=repr)
def test_several_labels_pass_the_checks_that_hand_over_an_indicator(estimator):
    """The others have y of one dimension; see test_common_structured.py."""
    checks = {
        check.func.__name__: check
        for _, check in estimator_checks_generator(estimator)
        if "_multilabel_" in check.func.__name__
        and not check.func.__name__.endswith("predict_proba")
    }
    assert len(checks) == 3
    for check in checks.values():
        check(estimator)


@pytest.mark.parametrize("estimator", EACH + OVER, ids=repr)
def test_parameters_follow_the_conventions(estimator):
    of_parameters = OF_PARAMETERS if estimator in OVER else []
    for check in (*of_parameters, check_param_validation):
        check(type(estimator).__name__, estimator)

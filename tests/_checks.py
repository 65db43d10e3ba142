"""scikit-learn's generated checks: all of them once per class, some for its variants."""

import sys

import pytest
import sklearn
from _options import setting
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

# Checks that another structure, metric or solver of the same class may fail on its own.
# The others concern what the class shares: data, parameters, predictions and names.
OF_A_VARIANT = frozenset(
    [
        "check_class_weight_classifiers",
        "check_classifiers_one_label",
        "check_classifiers_train",
        "check_decision_proba_consistency",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ]
)

# To what has two classes, scikit-learn 1.6 hands the first label and the one above it:
# not 0 and 1, and with weights other ones than with repeated rows.
ODD_LABELS = sklearn.__version__.startswith("1.6.")
OF_LABELS = frozenset(
    [
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimator_sparse_array",
        "check_estimators_empty_data_messages",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_pipeline_consistency",
        "check_readonly_memmap_input",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ]
)

# All threads share the warnings that it records, except on Pythons without the GIL.
ALONE = frozenset(["check_supervised_y_2d"])
ALONE_MARK = pytest.mark.thread_unsafe(reason="warnings are recorded")


def generated_checks(estimators, expected_failed_checks, left_out=()):
    """Parametrize by (estimator, check): all for the first estimator of each class.

    Refitted classifiers are another class than rules of probabilities.
    """
    mark = parametrize_with_checks(
        estimators, expected_failed_checks=expected_failed_checks
    )
    names, generator = mark.args
    first, chosen = {}, []
    # A list, because pytest 9 rejects the generator of scikit-learn 1.6.
    for case in generator:
        estimator, check = getattr(case, "values", case)
        kind = type(estimator), setting(estimator, "lmo")
        whole = first.setdefault(kind, estimator) is estimator
        name, options = check.func.__name__, check.keywords
        if name in left_out:
            continue
        if ODD_LABELS and name in OF_LABELS:
            if not get_tags(estimator).classifier_tags.multi_class:
                continue
        if name in ALONE and not getattr(sys.flags, "context_aware_warnings", False):
            marks = (*getattr(case, "marks", ()), ALONE_MARK)
            case = pytest.param(estimator, check, marks=marks)
        # A check that is known to fail needs to run only once.
        told = name in OF_A_VARIANT and not options
        if whole or (told and name not in expected_failed_checks(estimator)):
            chosen.append(case)
    return pytest.mark.parametrize(names, chosen, **mark.kwargs)

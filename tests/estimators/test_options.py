"""What parameters need of one another: one table, one check, one wording."""

import re

import numpy as np
import pytest
from _options import allowed_of, placed, set_placed
from _seeds import new_rng
from sklearn import config_context
from sklearn.model_selection import GridSearchCV

import sklearn_structsvm
from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ConformalClassifier,
    CRFClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    SlackRescaledSSVM,
    StackedStructureClassifier,
    SubLBFGSClassifier,
    bcfw_path,
    crf_path,
)
from sklearn_structsvm._utils.compat import Interval, StrOptions
from sklearn_structsvm.estimators.options import check_needs
from sklearn_structsvm.metrics import FBeta

# What parameters need of others, by the names of estimators.
NEEDS = {
    name: kind._needs
    for name in sklearn_structsvm.__all__
    if getattr(kind := getattr(sklearn_structsvm, name), "_needs", {})
}

# For parameters whose values are not listed: one that asks for something.
SOMETHING = {
    "label_costs": np.array([[0.0, 1.0], [2.0, 0.0]]),
    "class_weight": "balanced",
    "group_estimator": CRFClassifier(),
    "constraints": [FBeta()],
}


def listed_values(estimator, name):
    """Values that the parameter may have, where there are few."""
    for constraint in allowed_of(type(estimator))[name]:
        yield from sorted(getattr(constraint, "options", ()))
        if constraint == "boolean":
            yield from (True, False)
    yield from {"coef_bounds": [(0.0, 1.0)], "labels_per_row": [1]}.get(name, ())


def other_value(estimator, name):
    """Some value that is not the default, and asks for something."""
    if name in SOMETHING:
        return SOMETHING[name]
    default = estimator._settings()[name]
    for value in listed_values(estimator, name):
        if value is not False and value != default:
            return value
    return 2 * (default or 0.25)


def needs():
    for name, table in NEEDS.items():
        for option, found in table.items():
            for place, need in enumerate(found):
                yield pytest.param(name, option, need, id=f"{name}-{option}-{place}")


@pytest.mark.parametrize(("name", "option", "need"), [*needs()])
def test_what_a_parameter_needs_is_checked_before_any_work(name, option, need):
    cls = getattr(sklearn_structsvm, name)
    values = need.values
    if values is None:
        values = [other_value(cls(), option)]
    others = [v for v in listed_values(cls(), need.other) if v not in need.allowed]
    assert others
    for value in values:
        for other in others:
            model = placed(cls)(**need.given | {option: value, need.other: other})
            # There are no data, which would be the next error.
            with pytest.raises(ValueError, match="^[^ ]*=.* requires [^ ]*="):
                model.fit(None, None)


SLACK, SUB = SlackRescaledSSVM, SubLBFGSClassifier
L1, SQUARED = {"penalty": "l1"}, {"loss": "squared_hinge"}
L1_LOSSES = "loss='hinge', 'squared_hinge' or 'logistic'"
# What is given, and words of the refusal.
TOLD = [
    (SLACK, {"solver": "sgd", "step": "pairwise"},
     "step='pairwise' requires solver='bcfw'; got solver='sgd'."),
    (SLACK, {"solver": "cutting_plane", "warm_start": True},
     "warm_start=True requires solver='bcfw'; got solver='cutting_plane'."),
    (SLACK, {"solver": "sgd", "warm_start": np.True_}, " requires solver='bcfw'; got"),
    (SLACK, {"search": "sarawagi"},
     "search='sarawagi' requires solver='cutting_plane' or 'one_slack'; got solver='bcf"),
    (SLACK, {"search": "sarawagi", "solver": "sgd"}, "'one_slack'; got solver='sgd'"),
    (SLACK, {"sampling": "gap", "solver": "sgd"}, "use 'permuted' or 'uniform'"),
    (SLACK, {"average": True, "solver": "cutting_plane"}, "average=True requires"),
    (CRFClassifier, {"solver": "newton", "sampling": "gap"},
     "sampling='gap' requires solver='auto' or 'dual'; got solver='newton'."),
    (CRFClassifier, {"l1_ratio": 1.0, "solver": "lbfgs"},
     "Or use l1_ratio=0.99: without squares"),
    (CRFClassifier, {"l1_ratio": 1.0, "acceleration": False}, "Or use l1_ratio=0.99"),
    (CRFClassifier, {"l1_ratio": 1, "sampling": "gap"},
     "requires sampling='auto', 'uniform' or"),
    (BCFWClassifier, {"algorithm": "batch", "sampling": "gap"},
     "sampling='gap' requires algorithm='block'; got algorithm='batch'."),
    *((BCFWClassifier, {"algorithm": "batch"} | option, " requires algorithm='block'")
      for option in ({"step": "pairwise"}, {"step": "away"}, {"cache": True})),
    *((BCFWClassifier, {"step": "exact"} | option, "step='exact' requires ")
      for option in ({"cache": True}, {"algorithm": "batch"}, {"average": True},
                     {"coef_bounds": (-1.0, 1.0)})),
    (BCFWClassifier, {"l1_ratio": 0.5, "step": "exact"}, "l1_ratio=0.5 requires step='a"),
    (BCFWClassifier, {"l1_ratio": 0.5, "algorithm": "batch"}, "=0.5 requires algorithm="),
    (BCFWClassifier, {"l1_ratio": 0.5, "average": True}, "=0.5 requires average=False"),
    (BCFWClassifier, {"l1_ratio": 0.5, "coef_bounds": (0.0, None)}, "coef_bounds=None"),
    (BMRMClassifier, {"loss": FBeta(), "k": 3}, "got loss=FBeta()."),
    (BMRMClassifier, {"k": 3}, "k=3 requires loss='precision_at_k' or 'recall_at_k'"),
    (BMRMClassifier, {"loss": "break_even", "class_weight": "balanced"},
     "or a ConfusionMetric; g"),
    (SUB, {"solver": "subbfgs", "buffer": 3},
     "buffer=3 requires solver='auto', 'dual-hybrid', 'hybrid', 'sublbfgs', 'owlqn' or "
     "'owlqn*'; got solver='subbfgs'."),
    (SUB, L1 | {"loss": "logistic", "buffer": 3},
     "buffer=3 requires solver='owlqn' or 'owlqn*' with penalty='l1'; got solver='auto'"),
    (SUB, {"loss": "logistic"}, "requires penalty='l1'"),
    *((SUB, L1 | {"loss": loss}, f"penalty='l1' requires {L1_LOSSES}")
      for loss in ("slack_hinge", "f1")),
    (SUB, L1 | {"loss": "logistic", "label_costs": np.eye(2)}, " requires loss='hinge'"),
    (SUB, L1 | {"line_search": "wolfe"}, "line_search='wolfe' requires penalty='l2'"),
    (SUB, L1 | {"solver": "hybrid"}, "solver='hybrid' requires penalty='l2'"),
    (SUB, L1 | {"solver": "owlqn"}, "Use solver='newton'"),
    (SUB, {"solver": "owlqn"}, "requires penalty='l1'"),
    (SUB, {"solver": "newton"}, "solver='newton' requires loss='squared"),
    (SUB, SQUARED | {"label_costs": np.eye(2)}, " requires loss='hinge'"),
    (SUB, SQUARED | {"solver": "hybrid"}, "Use solver='newton'"),
    (SUB, SQUARED | {"solver": "dual-hybrid"}, "solver='dual-hybrid' requires loss="),
    (SUB, SQUARED | {"k": 3}, "k=3 requires loss="),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "params", "words"), TOLD)
def test_the_words_name_both_parameters_and_their_values(cls, params, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        placed(cls)(**params).fit(np.zeros((4, 1)), [0, 1, 0, 1])


def test_the_buffer_of_owlqn_is_its_own():
    rng = new_rng(0)
    X = rng.standard_normal((60, 12))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
    params = {"penalty": "l1", "solver": "owlqn", "C": 10.0, "tol": 1e-6}
    steps = [
        SubLBFGSClassifier("logistic", solver_options={"buffer": buffer}, **params)
        .fit(X, y)
        .n_iter_
        for buffer in (1, 15)
    ]
    assert steps[0] != steps[1]


def test_defaults_and_false_and_nothing_are_never_refused():
    for name in NEEDS:
        check_needs(getattr(sklearn_structsvm, name)())
    for no in (False, np.False_):
        check_needs(
            SlackRescaledSSVM(
                solver="sgd", solver_options={"acceleration": no}, warm_start=no
            )
        )
        check_needs(
            BCFWClassifier(
                step="exact",
                solver_options={"average": no, "cache": no},
            )
        )
    check_needs(MultilabelMetricClassifier(labels_per_row=2, constraints=[]))
    check_needs(BMRMClassifier(loss=FBeta(), class_weight="balanced"))


def test_subclasses_have_the_needs_too():
    class Mine(CRFClassifier):
        pass

    with pytest.raises(ValueError, match="sampling='gap' requires"):
        Mine(solver="lbfgs", solver_options={"sampling": "gap"}).fit(
            np.zeros((4, 1)), [0, 1, 0, 1]
        )


def test_paths_and_cross_validation_check_as_well():
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="step='corrective' requires cache="):
        bcfw_path(X, y, step="corrective", solver_options={"cache": True})
    with pytest.raises(ValueError, match="step='corrective' requires cache="):
        BCFWClassifierCV(step="corrective", solver_options={"cache": True}).fit(X, y)
    with pytest.raises(ValueError, match="sampling='gap' requires solver="):
        CRFClassifierCV(
            solver_options={"solver": "newton", "sampling": "gap"},
        ).fit(X, y)


def test_a_grid_may_hold_the_searches_of_slack_rescaling_beside_margins():
    rng = new_rng(1)
    X, y = rng.standard_normal((30, 2)), np.arange(30) % 3
    model = SlackRescaledSSVM(solver_options={"search": "exact"}, tol=0.1)
    search = GridSearchCV(model, {"rescaling": ["slack", "margin"]}, cv=2)
    assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    "option",
    [{"loss": "slack_hinge"}, {"label_costs": np.ones((3, 3)) - np.eye(3)},
     {"line_search": False}, {"subproblem": "line"}, {"warm_start": True}],
)  # fmt: skip
@pytest.mark.parametrize("structure", ["auto", "chain", "multiclass"])
def test_what_rows_alone_have_is_refused_for_structures(structure, option):
    X, y = [np.zeros((2, 1)), np.ones((1, 1))], [[0, 1], [1]]
    if structure == "multiclass":
        X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    (name,) = option
    with pytest.raises(ValueError, match=f"(?s)^{name}=.* is for rows whose"):
        placed(BMRMClassifier)(structure=structure, **option).fit(X, y)


def grids_of_numpy():
    """Each estimator, with each parameter that has names for its values."""
    for name in NEEDS:
        cls = getattr(sklearn_structsvm, name)
        for option, constraints in allowed_of(cls).items():
            if any(hasattr(constraint, "options") for constraint in constraints):
                yield pytest.param(cls, option, id=f"{name}-{option}")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("cls", "option"), [*grids_of_numpy()])
def test_a_name_may_be_numpys_as_an_array_of_a_grid_has_it(cls, option):
    rng = new_rng(2)
    X, y = rng.standard_normal((30, 2)), np.arange(30) % 2
    if cls is MultilabelMetricClassifier:
        y = np.column_stack([y, 1 - y])
    short = {"max_iter": 3, "cv": 2, "Cs": 2, "random_state": 0}

    def outcome(value):
        """A short fit, or why there is none. (Warnings are errors here.)"""
        model = placed(cls)(**{option: value})
        names = short.keys() & model.get_params().keys() - {option}
        model.set_params(**{name: short[name] for name in names})
        try:
            return model.fit(X, y).predict(X).tolist()
        except (ValueError, TypeError, UserWarning) as error:
            return str(error).replace("np.str_(", "").replace("')", "'")

    for value in listed_values(cls(), option):
        if isinstance(value, str):
            assert outcome(np.str_(value)) == outcome(value), value


ESTIMATORS = [
    kind
    for kind in (getattr(sklearn_structsvm, name) for name in sklearn_structsvm.__all__)
    if isinstance(kind, type) and hasattr(kind, "_parameter_constraints")
]
NUMBERS = (-1.0, -1, 0, 5, 1.5, np.nan, -np.inf, np.float64(-3.0), 10**30)


def numbers_out_of_range(kind):
    """Parameters that are numbers alone, with some that they must not be."""
    for name, constraints in allowed_of(kind).items():
        if not isinstance(constraints, list):
            continue
        ranges = [one for one in constraints if isinstance(one, Interval)]
        others = {type(one) for one in constraints} - {Interval, StrOptions}
        if ranges and others <= {type(None)}:
            for value in NUMBERS:
                if not any(value in interval for interval in ranges):
                    yield name, value


@pytest.mark.parametrize(
    "kind", [kind for kind in ESTIMATORS if kind is not StackedStructureClassifier]
)
def test_numbers_out_of_range_are_refused_also_without_validation(kind):
    X, y = new_rng(0).standard_normal((20, 2)), np.arange(20) % 2
    Y = np.stack([y, 1 - y], axis=1)
    found = list(numbers_out_of_range(kind))
    names = {name for name, _ in found}
    assert {"tol", "max_iter"} <= names or kind is ConformalClassifier
    for name, value in found:
        model = set_placed(kind(), **{name: value})
        message = f"The '{name}' parameter of {kind.__name__}.* must be .* Got .* instead"
        with config_context(skip_parameter_validation=True):
            with pytest.raises(ValueError, match=message):
                model.fit(X, Y if kind is MultilabelMetricClassifier else y)


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [(crf_path, "l1_ratio", 5), (crf_path, "tol", -1.0), (bcfw_path, "eps", -1.0),
     (bcfw_path, "eps", np.nan), (bcfw_path, "kappa", 2.0),
     (bcfw_path, "min_lambda", -1.0), (bcfw_path, "intercept_scaling", -1.0)],
)  # fmt: skip
def test_so_are_those_of_paths(path, name, value):
    with config_context(skip_parameter_validation=True):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of"):
            placed(path)(np.eye(4), [0, 1, 0, 1], **{name: value})

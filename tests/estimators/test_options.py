"""What parameters need of one another, and options that are given in one dict."""

import inspect
import pickle
import re
from itertools import product

import numpy as np
import pytest
from _options import allowed_of, placed, set_placed
from _seeds import new_rng
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklearn_structsvm
from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
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
    "label_costs": np.array([[0.0, 1.0], [2.0, 0.0]]), "class_weight": "balanced",
    "group_estimator": CRFClassifier(), "constraints": [FBeta()],
}  # fmt: skip


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


@pytest.mark.parametrize(
    ("name", "option"), [(name, option) for name in NEEDS for option in NEEDS[name]]
)
def test_what_a_parameter_needs_is_checked_before_any_work(name, option):
    cls = getattr(sklearn_structsvm, name)
    for need in NEEDS[name][option]:
        values = need.values
        if values is None:
            values = [other_value(cls(), option)]
        others = [v for v in listed_values(cls(), need.other) if v not in need.allowed]
        assert others
        for value, other in product(values, others):
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
    (type("Mine", (CRFClassifier,), {}), {"solver": "lbfgs", "sampling": "gap"},
     "sampling='gap' requires"),
    (CRFClassifierCV, {"solver": "newton", "sampling": "gap"}, "sampling='gap' requires"),
    (BCFWClassifierCV, {"step": "corrective", "cache": True},
     "step='corrective' requires cache="),
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
    model = SubLBFGSClassifier("logistic", penalty="l1", solver="owlqn", C=10.0, tol=1e-6)
    steps = [set_placed(model, buffer=b).fit(X, y).n_iter_ for b in (1, 15)]
    assert steps[0] != steps[1]


def test_defaults_and_false_and_nothing_are_never_refused():
    for name in NEEDS:
        check_needs(getattr(sklearn_structsvm, name)())
    for no in (False, np.False_):
        slack = placed(SlackRescaledSSVM)(solver="sgd", acceleration=no, warm_start=no)
        check_needs(slack)
        check_needs(placed(BCFWClassifier)(step="exact", average=no, cache=no))
    check_needs(MultilabelMetricClassifier(labels_per_row=2, constraints=[]))
    check_needs(BMRMClassifier(loss=FBeta(), class_weight="balanced"))


def test_a_grid_may_hold_the_searches_of_slack_rescaling_beside_margins():
    rng = new_rng(1)
    X, y = rng.standard_normal((30, 2)), np.arange(30) % 3
    model = SlackRescaledSSVM(solver_options={"search": "exact"}, tol=0.1)
    search = GridSearchCV(model, {"rescaling": ["slack", "margin"]}, cv=2)
    assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("structure", ["auto", "chain", "multiclass"])
def test_what_rows_alone_have_is_refused_for_structures(structure):
    X, y = [np.zeros((2, 1)), np.ones((1, 1))], [[0, 1], [1]]
    if structure == "multiclass":
        X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    of_rows = {
        "loss": "slack_hinge", "label_costs": np.ones((3, 3)) - np.eye(3),
        "line_search": False, "subproblem": "line", "warm_start": True,
    }  # fmt: skip
    for name, value in of_rows.items():
        with pytest.raises(ValueError, match=f"(?s)^{name}=.* is for rows whose"):
            placed(BMRMClassifier)(structure=structure, **{name: value}).fit(X, y)


# Each estimator, with each parameter that has names for its values.
NAMED = [
    (getattr(sklearn_structsvm, name), option)
    for name in NEEDS
    for option, constraints in allowed_of(getattr(sklearn_structsvm, name)).items()
    if any(hasattr(constraint, "options") for constraint in constraints)
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("cls", "option"), NAMED)
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

# Other names of what every estimator calls C, tol, max_iter, max_time, n_jobs,
# random_state, estimator, structure, label_costs, classes, metric and fit_intercept.
ELSEWHERE = (
    "alpha lam reg epsilon n_iter epochs time_limit n_threads seed base_estimator model "
    "costs labels objective bias"
).split()
DESCRIBED = re.compile(r"^( *)(\w+) : .+\n((?:\1    \S.*\n)+)", re.MULTILINE)


def test_one_meaning_has_one_name_in_all_estimators():
    name_of = {}
    for kind in ESTIMATORS:
        names = [*inspect.signature(kind).parameters]
        assert "structure" not in names[1:]
        assert not {*names, *allowed_of(kind)} & {*ELSEWHERE}
        doc = inspect.getdoc(kind).partition("Attributes\n---")[0]
        for _, name, words in DESCRIBED.findall(doc):
            first = " ".join(words.split()).partition(". ")[0]
            assert name_of.setdefault(first, name) == name
    assert len({*name_of.values()}) > 40


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


def test_so_are_those_of_paths_which_take_options_but_not_those_of_single_fits():
    rows = np.eye(4), [0, 1, 0, 1]
    for path, name, value in [
        (crf_path, "l1_ratio", 5), (crf_path, "tol", -1.0), (bcfw_path, "eps", -1.0),
        (bcfw_path, "eps", np.nan), (bcfw_path, "kappa", 2.0),
        (bcfw_path, "min_lambda", -1.0), (bcfw_path, "intercept_scaling", -1.0),
    ]:  # fmt: skip
        with config_context(skip_parameter_validation=True):
            with pytest.raises(ValueError, match=f"The '{name}' parameter of"):
                placed(path)(*rows, **{name: value})
    with pytest.raises(ValueError, match="step='corrective' requires cache="):
        placed(bcfw_path)(*rows, step="corrective", cache=True)
    for path in (bcfw_path, crf_path):
        with pytest.raises(ValueError, match=f"'average' is not .* {path.__name__}"):
            path(X, Y, solver_options={"average": True})
        with pytest.raises(ValueError, match=f"the solver_options of {path.__name__}"):
            path(X, Y, solver_options={"max_time": -1})


OF_OPTIONS = [
    kind
    for kind in map(sklearn_structsvm.__dict__.get, sklearn_structsvm.__all__)
    if hasattr(kind, "_option_table")
]
WITH_OPTIONS = [kind for kind in OF_OPTIONS if kind._option_table]
for_each_kind = pytest.mark.parametrize("kind", WITH_OPTIONS)
X, Y = np.arange(12.0).reshape(-1, 1), np.arange(12) % 2


def test_a_constructor_has_at_most_fourteen_parameters():
    for kind in OF_OPTIONS:
        assert len(inspect.signature(kind).parameters) <= 14, kind


@for_each_kind
def test_a_docstring_tells_each_option_with_its_default(kind):
    told = inspect.getdoc(kind).partition("solver_options : dict")[2]
    told = told.partition("\nAttributes\n")[0]
    lines = dict(re.findall(r"^ {4}(\w[\w, ]*) : (.*)", told, re.MULTILINE))
    listed = {name: line for key, line in lines.items() for name in key.split(", ")}
    assert listed.keys() == kind._option_table.keys()
    for name, option in kind._option_table.items():
        default = repr(option.default).replace("'", '"')
        is_told_elsewhere = listed[name] == "optional"
        assert is_told_elsewhere or listed[name].endswith(f"default={default}"), name


@for_each_kind
def test_an_option_in_a_wrong_place_or_with_a_wrong_name_or_value_is_refused(kind):
    words = re.escape("solver_options={'max_time': 5}")
    with pytest.raises(TypeError, match=words):
        kind(max_time=5)
    with pytest.raises(ValueError, match=words):
        kind().set_params(max_time=5)
    words = r"'maxtime' is not among .* Did you mean 'max_time'\? They are: .*max_time"
    with pytest.raises(ValueError, match=words):
        kind(solver_options={"maxtime": 5}).fit(X, Y)
    words = f"The 'max_time' parameter of the solver_options of {kind.__name__}.* must be"
    for value in (-1, "long"):
        with pytest.raises(ValueError, match=words):
            kind(solver_options={"max_time": value}).fit(X, Y)


@for_each_kind
def test_options_are_copied_pickled_shown_and_set_one_by_one(kind):
    model = placed(kind)(max_time=5)
    for other in (clone(model), pickle.loads(pickle.dumps(model))):
        assert other.get_params() == model.get_params()
    assert "solver_options={'max_time': 5}" in repr(model)
    assert "max_time" in model._repr_html_()
    given = model.solver_options
    name = next(iter(kind._option_table.keys() - {"max_time"}), "max_time")
    model.set_params(**{f"solver_options__{name}": None})
    assert model.solver_options == {"max_time": 5, name: None}
    assert given == {"max_time": 5}


def test_a_search_sets_one_option_or_all_of_them():
    model = make_pipeline(
        StandardScaler(), BCFWClassifier(solver_options={"max_time": 100.0})
    )
    for grid in (
        {"bcfwclassifier__solver_options__sampling": ["gap", "permuted"]},
        {"bcfwclassifier__solver_options": [None, {"sampling": "gap"}]},
    ):
        search = GridSearchCV(model, grid, cv=2).fit(X, Y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_cross_validation_gives_its_options_to_its_fits():
    options = {"solver": "lbfgs", "decoding": "mbr", "intercept_scaling": 3.0}
    model = CRFClassifierCV(Cs=[0.1, 1.0], cv=2, solver_options=options).fit(X, Y)
    assert model.solver_ == "lbfgs"
    assert model.structure_.bias_ == 3.0
    options = {"Cs": [0.1, 1.0], "cv": 2, "step": "fw", "cache": True, "eps": 0.5}
    assert placed(BCFWClassifierCV)("multiclass", **options).fit(X, Y).cache_


def test_options_of_a_solver_of_confusions_are_those_of_the_one_chosen():
    words = r"'step' is not among .* ComplexMetricClassifier with solver='column_gen"
    with pytest.raises(ValueError, match=words):
        ComplexMetricClassifier(solver_options={"step": "paper"}).fit(X, Y)

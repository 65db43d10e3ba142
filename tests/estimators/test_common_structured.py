"""What scikit-learn's checks claim, on data that those checks cannot make.

They hand over y of one dimension: no indicator, no sequences, nothing of a user's own.
"""

import joblib
import numpy as np
import pytest
from _estimators import (
    ACCURATE,
    KINDS,
    STRUCTURED,
    as_objects,
    assert_same_fit,
    assert_same_labels,
    assert_same_optimum,
    fitted_attributes,
    for_each_estimator,
    however_near,
    make_problem,
)
from _seeds import new_rng
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm import BCFWClassifier, BCFWClassifierCV, SlackRescaledSSVM


def through(X, change):
    return [change(x) for x in X] if isinstance(X, list) else change(X)


def in_whole_numbers(x):
    return (4 * x).rint() if sparse.issparse(x) else np.rint(4 * x)


def read_only(x):
    x = x.copy()
    for array in (x.data, x.indices, x.indptr) if sparse.issparse(x) else (x,):
        array.setflags(write=False)
    return x


@pytest.mark.parametrize("kind", STRUCTURED)
@pytest.mark.parametrize(
    "estimator", [BCFWClassifier, BCFWClassifierCV, SlackRescaledSSVM]
)
def test_fit_leaves_parameters_and_data_alone_and_predictions_change_nothing(
    kind, estimator
):
    problem = make_problem(kind)
    model = estimator(problem.structure, random_state=0, step="pairwise")
    if estimator is BCFWClassifierCV:
        model.set_params(Cs=[0.1, 1.0], cv=2)
    params, structure = model.get_params(), joblib.hash(problem.structure)
    data = joblib.hash((problem.X, problem.y))
    assert model.fit(problem.X, problem.y) is model
    after = model.get_params()
    assert all(after[name] is params[name] for name in params)
    before = joblib.hash(fitted_attributes(model)), sorted(vars(model))
    model.predict(problem.X)
    model.score(problem.X, problem.y)
    assert before == (joblib.hash(fitted_attributes(model)), sorted(vars(model)))
    assert joblib.hash(problem.structure) == structure
    assert joblib.hash((problem.X, problem.y)) == data


@for_each_estimator
@pytest.mark.parametrize("kind", STRUCTURED)
def test_a_new_fit_forgets_the_data_of_the_last(make_problem, kind):
    problem = make_problem(kind)
    once = problem.fitted()
    for last in ("multiclass", kind):
        model = make_problem(last).fitted().set_params(structure=problem.structure)
        assert_same_fit(model.fit(problem.X, problem.y), once)


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_only_a_fitted_estimator_answers_and_to_as_many_features(make_problem, kind):
    problem = make_problem(kind)
    model = problem.estimator()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    names = ["predict", "score"]
    names += ["decision_function"] if problem.flat else []
    names += ["predict_k_best", "max_marginals"] if "chain" in kind else []
    for name in names:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(model, name)(problem.X, *[problem.y] * (name == "score"))
    check_is_fitted(model.fit(problem.X, problem.y))
    if kind != "custom":
        first = problem.X[0] if isinstance(problem.X, list) else problem.X
        width = first.shape[1]
        assert model.n_features_in_ == width
        with pytest.raises(ValueError, match=f"{width - 1} features.*{width}"):
            model.predict(through(problem.X, lambda x: x[:, :-1]))


FORMS = {
    "float32": lambda x: x.astype(np.float32),
    "integers": lambda x: x.astype(np.int64),
    "read-only": read_only,
    "in the order of Fortran": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
}


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_equal_data_in_any_form_give_the_same_bits(make_problem, kind):
    problem = make_problem(kind)
    X, y = through(problem.X, in_whole_numbers), problem.y
    once = problem.estimator().fit(X, y)
    expected, weights = once.predict(X), np.ones(problem.n)
    forms = dict(list(FORMS.items())[: 3 if kind.endswith("csr") else None])
    if kind == "custom":  # It gets what it is given.
        del forms["integers"], forms["strided"]
    ways = [(through(X, change), y) for change in forms.values()]
    ways += [(as_objects(X), as_objects(y))] if isinstance(X, list) else []
    for features, labels in ways:
        model = problem.estimator().fit(features, labels, weights)
        assert_same_fit(model, once)
        assert model.coef_.dtype == np.float64
        assert_same_labels(model.predict(features), expected)
    assert_same_fit(problem.estimator().fit(X, y, weights.tolist()), once)
    np.testing.assert_array_equal(weights, 1.0)


@however_near
@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_weights_equal_repetitions_at_the_accuracy_of_the_certificates(
    make_problem, kind
):
    problem = make_problem(kind)
    counts = new_rng(0).integers(4, size=problem.n)
    # No class shall be lost.
    counts[:8] += 1
    many = problem.take(np.repeat(np.arange(problem.n), counts))
    for options in ({}, ACCURATE):
        weighted = problem.estimator(**options).fit(problem.X, problem.y, counts)
        repeated = problem.estimator(**options).fit(*many)
        assert max(weighted.dual_gap_, repeated.dual_gap_) <= 1e-3
        weights = weighted._weights, repeated._weights
        assert_same_optimum(weighted, repeated, counts.sum(), weights)

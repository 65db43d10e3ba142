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
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sklearn_structsvm import BCFWClassifier, BCFWClassifierCV, SlackRescaledSSVM


def cast(X, dtype):
    return [x.astype(dtype) for x in X] if isinstance(X, list) else X.astype(dtype)


def through(X, change):
    return [change(x) for x in X] if isinstance(X, list) else change(X)


def buffers(X):
    for x in X if isinstance(X, list) else [X]:
        yield from (x.data, x.indices, x.indptr) if sparse.issparse(x) else (x,)


@pytest.mark.parametrize("kind", STRUCTURED)
@pytest.mark.parametrize(
    "estimator", [BCFWClassifier, BCFWClassifierCV, SlackRescaledSSVM]
)
def test_fit_returns_the_estimator_and_leaves_parameters_and_data_alone(kind, estimator):
    problem = make_problem(kind)
    model = estimator(problem.structure, random_state=0, step="pairwise")
    if estimator is BCFWClassifierCV:
        model.set_params(Cs=[0.1, 1.0], cv=2)
    params, structure = model.get_params(), joblib.hash(problem.structure)
    data = joblib.hash((problem.X, problem.y))
    assert model.fit(problem.X, problem.y) is model
    after = model.get_params()
    assert all(after[name] is params[name] for name in params)
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
def test_only_a_fitted_estimator_answers(make_problem, kind):
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


@for_each_estimator
@pytest.mark.parametrize("kind", STRUCTURED)
def test_predicting_changes_nothing(make_problem, kind):
    problem = make_problem(kind)
    model = problem.fitted()
    before = joblib.hash(fitted_attributes(model)), sorted(vars(model))
    model.predict(problem.X)
    model.score(problem.X, problem.y)
    assert before == (joblib.hash(fitted_attributes(model)), sorted(vars(model)))


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_each_example_is_predicted_by_itself(make_problem, kind):
    problem = make_problem(kind)
    model = problem.fitted()
    together = model.predict(problem.X)
    clear = np.ones(problem.n, dtype=bool)
    if kind == "multiclass":
        # An optimum may leave the two best classes tied, up to rounding.
        scores = np.sort(model.decision_function(problem.X), axis=1)
        clear = scores[:, -1] - scores[:, -2] > 1e-12
    order = new_rng(0).permutation(np.flatnonzero(clear))
    assert_same_labels(model.predict(problem.take(order)[0]), together[order])
    for i in np.flatnonzero(clear):
        assert_same_labels(model.predict(problem.take([i])[0]), together[i : i + 1])


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_float32_features_give_the_fit_of_their_values_in_float64(make_problem, kind):
    problem = make_problem(kind)
    narrow = cast(problem.X, np.float32)
    wide = cast(narrow, np.float64)
    first = problem.estimator().fit(narrow, problem.y)
    assert_same_fit(first, problem.estimator().fit(wide, problem.y))
    assert first.coef_.dtype == np.float64
    assert_same_labels(first.predict(narrow), first.predict(wide))


@for_each_estimator
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "custom"])
def test_integer_features_give_the_fit_of_their_values_in_float64(make_problem, kind):
    problem = make_problem(kind)
    whole = cast(problem.X, np.int64)
    first = problem.estimator().fit(whole, problem.y)
    second = problem.estimator().fit(cast(whole, np.float64), problem.y)
    assert_same_fit(first, second)


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_read_only_features_are_as_good_as_others(make_problem, kind):
    problem = make_problem(kind)
    expected = problem.fitted()
    for array in buffers(problem.X):
        array.setflags(write=False)
    model = problem.fitted()
    assert_same_fit(model, expected)
    assert_same_labels(model.predict(problem.X), expected.predict(problem.X))


@for_each_estimator
@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "chain"])
@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2]]
)
def test_the_layout_in_memory_does_not_matter(make_problem, kind, layout):
    problem = make_problem(kind)
    X = through(problem.X, layout)
    assert_same_fit(problem.estimator().fit(X, problem.y), problem.fitted())


@however_near
@for_each_estimator
@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "chain"])
def test_sparse_features_give_the_fit_of_dense_ones(make_problem, kind):
    problem = make_problem(kind)
    dense = problem.fitted(**ACCURATE)
    csr = problem.estimator(**ACCURATE).fit(
        through(problem.X, sparse.csr_array), problem.y
    )
    assert_same_optimum(csr, dense, problem.n)


@however_near
@for_each_estimator
@pytest.mark.parametrize("kind", ["multilabel-csr", "chain-csr"])
def test_unsorted_and_repeated_indices_of_sparse_rows_are_read_as_their_sums(
    make_problem, kind
):
    problem = make_problem(kind)

    def mess_up(x):
        """Each entry as two halves, in the opposite order."""
        x = x.tocsr()
        rows = [slice(a, b) for a, b in zip(x.indptr[:-1], x.indptr[1:], strict=True)]
        data = np.concatenate([np.tile(x.data[row][::-1] / 2, 2) for row in rows])
        indices = np.concatenate([np.tile(x.indices[row][::-1], 2) for row in rows])
        return sparse.csr_matrix((data, indices, 2 * x.indptr), shape=x.shape)

    messy = through(problem.X, mess_up)
    copy = joblib.hash(messy)
    model = problem.estimator(**ACCURATE).fit(messy, problem.y)
    expected = problem.fitted(**ACCURATE)
    assert_same_optimum(model, expected, problem.n)
    assert joblib.hash(messy) == copy


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_a_list_of_weights_is_as_good_as_an_array_and_stays_as_it_was(make_problem, kind):
    problem = make_problem(kind)
    weights = new_rng(0).uniform(size=problem.n)
    copy = weights.copy()
    first = problem.estimator().fit(problem.X, problem.y, weights)
    second = problem.estimator().fit(problem.X, problem.y, weights.tolist())
    assert_same_fit(first, second)
    np.testing.assert_array_equal(weights, copy)


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_no_weights_are_weights_of_one(make_problem, kind):
    problem = make_problem(kind)
    weighted = problem.estimator().fit(problem.X, problem.y, np.ones(problem.n))
    assert_same_fit(weighted, problem.fitted())


@however_near
@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, ACCURATE], ids=["default", "accurate"])
def test_weights_equal_repetitions_at_the_accuracy_of_the_certificates(
    make_problem, kind, options
):
    problem = make_problem(kind)
    counts = new_rng(0).integers(4, size=problem.n)
    # No class shall be lost.
    counts[:8] += 1
    weighted = problem.estimator(**options).fit(problem.X, problem.y, counts)
    repeated = problem.estimator(**options).fit(
        *problem.take(np.repeat(np.arange(problem.n), counts))
    )
    assert max(weighted.dual_gap_, repeated.dual_gap_) <= 1e-3
    weights = weighted._weights, repeated._weights
    assert_same_optimum(weighted, repeated, counts.sum(), weights)


@however_near
@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_examples_of_weight_zero_leave_no_trace(make_problem, kind):
    problem = make_problem(kind)
    weights = np.arange(problem.n) % 4 > 0
    weighted = problem.estimator(**ACCURATE).fit(problem.X, problem.y, weights)
    classes = getattr(weighted, "classes_", None)
    left = problem.estimator(classes=classes, **ACCURATE)
    left.fit(*problem.take(np.flatnonzero(weights)))
    # Their steps are the same until rounding decides a tie; their optimum is.
    assert_same_optimum(weighted, left, weights.sum())


@for_each_estimator
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "custom"])
def test_the_number_of_features_is_kept_and_held_to(make_problem, kind):
    problem = make_problem(kind)
    model = problem.fitted()
    first = problem.X[0] if isinstance(problem.X, list) else problem.X
    width = first.shape[1]
    assert model.n_features_in_ == width
    narrower = through(problem.X, lambda x: x[:, :-1])
    with pytest.raises(ValueError, match=f"{width - 1} features.*{width}"):
        model.predict(narrower)


@for_each_estimator
@pytest.mark.parametrize("kind", ["chain", "chain-csr", "custom"])
def test_an_object_array_of_items_is_as_good_as_a_list(make_problem, kind):
    problem = make_problem(kind)
    X, y = as_objects(problem.X), as_objects(problem.y)
    model = problem.estimator().fit(X, y)
    assert_same_fit(model, problem.fitted())
    assert_same_labels(model.predict(X), model.predict(problem.X))


@for_each_estimator
@pytest.mark.parametrize("kind", KINDS)
def test_a_clone_has_the_parameters_and_nothing_else(make_problem, kind):
    problem = make_problem(kind)
    model = problem.fitted(C=0.3, max_iter=7777)
    copy = clone(model)
    assert repr(copy) == repr(model)
    assert copy.structure is not model.structure
    assert not fitted_attributes(copy)
    assert_same_fit(copy.fit(problem.X, problem.y), model)

"""What LabelMapDisplay draws, read back from the artists and against enumeration."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pytest
from _estimators import make_problem
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from sklearn_structsvm import BCFWClassifierCV, SlackRescaledSSVM
from sklearn_structsvm.plotting import LabelMapDisplay
from sklearn_structsvm.structures import MulticlassStructure

draw = LabelMapDisplay.from_estimator
KINDS = ("binary", "multiclass", "multilabel", "multilabel-csr", "chain", "chain-csr")


def fitted(kind, **params):
    """A problem, and a model that leaves violations."""
    problem = make_problem(kind, model=SlackRescaledSSVM)
    return problem, problem.fitted(**{"tol": 0.05, "C": 0.3} | params)


def all_points(problem, model, i):
    """(h, g) of all labelings of example i, from the structure's definitions."""
    structure, w = model.structure_, model._weights
    x, y = problem.X[i], problem.y[i]
    if problem.flat:
        x = problem.X[[i]]
    k = len(model.classes_)
    if problem.kind.startswith("multilabel"):
        labelings = [np.array(row) for row in product((0, 1), repeat=k)]
    elif problem.kind.startswith("chain"):
        labelings = [np.array(row) for row in product(range(k), repeat=len(y))]
    else:
        labelings = range(k)
    truth = structure.joint_feature(x, y) @ w
    return np.array(
        [
            (1.0 + structure.joint_feature(x, c) @ w - truth, structure.loss(y, c))
            for c in labelings
        ]
    )


def in_order(points):
    """Sorted by g, then h, of which rounding leaves ten digits."""
    points = np.round(points, 10) + 0.0
    return points[np.lexsort(points.T)]


def exceeded(points):
    """Whether another point has more of both, or of one and as much of the other."""
    h, g = points.T
    no_less = (h >= h[:, None]) & (g >= g[:, None])
    return (no_less & ((h > h[:, None] + 1e-12) | (g > g[:, None] + 1e-12))).any(axis=1)


def drawn(lines):
    return np.array([line.get_xydata() for line in lines])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("i", [0, 5])
def test_each_labeling_is_a_point(kind, i):
    problem, model = fitted(kind)
    display = draw(model, problem.X[i], problem.y[i])
    expected = all_points(problem, model, i)
    np.testing.assert_array_equal(in_order(display.points), in_order(expected))
    np.testing.assert_array_equal(display.scatter_.get_offsets(), display.points)
    assert display.true_.get_xydata().tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", ["angular", "exact"])
def test_the_star_is_where_the_product_is_largest(kind, search):
    problem, model = fitted(kind)
    for i in range(4):
        display = draw(model, problem.X[i], problem.y[i], search=search)
        ((h, g),) = display.found_.get_xydata()
        best = display.points.prod(axis=1).max()
        assert abs(h * g - best) <= 1e-12
        assert np.abs(display.points - (h, g)).sum(axis=1).min() <= 1e-12
        if best > 0:
            np.testing.assert_allclose(display.curve_.get_xydata().prod(axis=1), best)


@pytest.mark.parametrize("search", ["angular", "bisecting", "binary", "sarawagi"])
@pytest.mark.parametrize("kind", ["multilabel", "chain"])
def test_the_line_of_a_query_runs_through_its_answer_and_above_its_angle(kind, search):
    (problem, model), n_drawn = fitted(kind), 0
    for i in range(4):
        display = draw(model, problem.X[i], problem.y[i], search=search)
        trace = display.result.trace
        found = trace["found"]
        asked = zip(*(trace[key][found] for key in ("lam", "alpha", "beta")), strict=True)
        answers = drawn(display.answers_).reshape(-1, 2)
        assert len(display.lines_) == len(answers) == found.sum()
        n_drawn += found.sum()
        h, g = display.points.T
        # What violates is found, with one question or many.
        assert found.any() or (h * g).max() <= 0.0
        for ends, answer, (lam, alpha, beta) in zip(
            drawn(display.lines_), answers, asked, strict=True
        ):
            highest = answer @ (1.0, lam)
            np.testing.assert_allclose(ends @ (1.0, lam), highest, rtol=1e-12)
            # Its sides may belong to it or not.
            slopes = np.divide(g, h, out=np.full(len(h), -1.0), where=h > 0)
            inside = (slopes > beta * (1 + 1e-9)) & (slopes < alpha * (1 - 1e-9))
            inside &= ~exceeded(display.points)
            values = (h + lam * g)[inside]
            assert (values <= highest * (1 + 1e-12)).all()
        slopes = np.concatenate([trace["alpha"], trace["beta"]])
        slopes = np.unique(slopes[(slopes > 0) & np.isfinite(slopes)])
        ends = drawn(display.rays_).reshape(-1, 2, 2)[:, 1]
        np.testing.assert_allclose(ends[:, 1] / ends[:, 0], slopes)
    assert n_drawn > 0


def test_the_view_has_all_that_violates_and_not_much_else():
    problem, model = fitted("chain")
    for i in range(problem.n):
        display = draw(model, problem.X[i], problem.y[i])
        display.figure_.canvas.draw()
        left, right = display.ax_.get_xlim()
        bottom, top = display.ax_.get_ylim()
        h, g = display.points.T
        assert right > h.max() and top > g.max() and left < 0.0 and bottom < 0.0
        assert -left <= right / 2
        # The legend hides none of it, and is not cut off.
        box = display.ax_.get_legend().get_window_extent()
        assert box.y1 < display.ax_.xaxis.label.get_window_extent().y0
        assert box.y0 >= 0 and box.x0 >= 0 and box.x1 <= display.figure_.bbox.x1


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("search", ["angular", "exact", "bisecting", "binary"])
def test_a_search_is_chosen_by_its_name_and_named_in_the_legend(search):
    problem, model = fitted("multilabel")
    model.set_params(search="binary")
    display = draw(model, problem.X[0], problem.y[0], search=search)
    assert display.name == search
    queries = display.result.n_queries
    assert (f"{search}: {queries} queries" in legend(display)) == (queries > 1)
    assert draw(model, problem.X[0], problem.y[0]).name == "binary"
    named = draw(model, problem.X[0], problem.y[0], name="mine")
    assert any(text.startswith("mine: ") for text in legend(named))


def test_max_queries_shows_a_search_on_its_way():
    problem, model = fitted("chain")
    displays = [draw(model, *pair) for pair in zip(problem.X, problem.y, strict=True)]
    i = int(np.argmax([display.result.n_queries for display in displays]))
    whole = displays[i]
    assert whole.result.n_queries > 1
    first = draw(model, problem.X[i], problem.y[i], max_queries=1)
    assert first.result.n_queries == 1 and len(first.lines_) == 1
    np.testing.assert_array_equal(drawn(first.lines_), drawn(whole.lines_[:1]))
    np.testing.assert_array_equal(first.points, whole.points)


def test_of_too_many_labelings_those_that_the_search_met_are_drawn():
    problem, model = fitted("multilabel")
    x, y = problem.X[0], problem.y[0]
    assert len(draw(model, x, y, max_labelings=8).points) == 8
    display = draw(model, x, y, max_labelings=7)
    everything = in_order(all_points(problem, model, 0)).tolist()
    assert len(display.points) < 8
    assert all(point in everything for point in in_order(display.points).tolist())
    met = np.vstack([[1.0, 0.0], drawn(display.answers_).reshape(-1, 2)])
    np.testing.assert_array_equal(display.points, np.unique(met, axis=0))


def test_labelings_of_a_structure_in_python_are_those_met():
    problem, model = fitted("custom")
    display = draw(model, problem.X[0], problem.y[0])
    assert [1.0, 0.0] in display.points.tolist()
    scores = model.coef_.reshape(3, -1) @ problem.X[0]
    h = 1.0 + scores - scores[problem.y[0]]
    assert display.result.value == pytest.approx(
        max(0.0, np.delete(h, problem.y[0]).max()), abs=1e-12
    )
    expected = {(round(a, 10), float(c != problem.y[0])) for c, a in enumerate(h)}
    assert {(round(a, 10), b) for a, b in display.points.tolist()} <= expected


@pytest.mark.parametrize("cv", [False, True])
def test_weights_of_margin_rescaling_can_be_looked_at_too(cv):
    problem = make_problem("chain")
    model = problem.fitted()
    if cv:
        model = BCFWClassifierCV(
            problem.structure, Cs=[0.1], cv=2, step="pairwise", cache=False
        ).fit(problem.X, problem.y)
    display = draw(model, problem.X[0], problem.y[0])
    assert display.name == "angular"
    np.testing.assert_array_equal(
        in_order(display.points), in_order(all_points(problem, model, 0))
    )


@pytest.mark.parametrize("kind", ["multilabel", "multilabel-csr"])
@pytest.mark.parametrize(
    "form",
    [
        lambda x: x,
        lambda x: x.astype(np.float32),
        lambda x: sparse.csr_array(x),
        lambda x: sparse.csc_matrix(x),
        lambda x: x.toarray()[0] if sparse.issparse(x) else x.tolist(),
    ],
)
def test_a_row_may_come_in_any_form(kind, form):
    problem, model = fitted(kind)
    x = problem.X[[0]]
    display = draw(model, form(x), problem.y[0].tolist())
    expected = draw(model, problem.X[0], problem.y[0])
    np.testing.assert_allclose(display.points, expected.points, rtol=1e-6, atol=1e-6)


def test_where_nothing_violates_the_true_labeling_is_starred_and_no_curve_drawn():
    problem = make_problem("multiclass")
    model = SlackRescaledSSVM(MulticlassStructure(np.zeros((3, 3))))
    model.fit(problem.X, problem.y)
    for options in ({}, {"max_labelings": 1}, {"search": "binary"}):
        display = draw(model, problem.X[0], problem.y[0], **options)
        display.figure_.canvas.draw()
        assert display.result.value == 0.0 and display.curve_ is None
        assert display.found_.get_xydata().tolist() == [[1.0, 0.0]]
        assert "nothing violates" in legend(display)


def test_axes_are_used_again_and_points_take_their_style():
    problem, model = fitted("chain")
    _, ax = plt.subplots()
    display = draw(model, problem.X[0], problem.y[0], ax=ax, s=31, color="red")
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert display.scatter_.get_sizes().tolist() == [31]
    assert len(plt.get_fignums()) == 1
    again = display.plot()
    assert again is display and display.ax_ is not ax


REFUSED = {
    "search": (("multilabel",), {"search": "linear"}, "search must be one of.*'linear'"),
    "queries": (("multilabel",), {"max_queries": 0}, "max_queries must be at least 1"),
    "features": (("multilabel", "x"), {}, "x must have 5 features, as in fit; got 4"),
    "NaN": (("multilabel", "nan"), {}, "Input x contains NaN"),
    "labels": (("multilabel", "y"), {}, r"y must have shape \(n_samples, 3\)"),
    "several labels": (("binary", "row"), {}, r"y must have shape \(n,\); got \(1, 2\)"),
    "labels of classes": (("multiclass", "row"), {}, r"y must have shape \(n,\)"),
    "indices": (("multilabel-csr", "indices"), {}, r"x\.indices must be integers in"),
    "unseen": (("multiclass", "label"), {}, "y has the label 9"),
    "positions": (("chain", "y"), {}, r"y\[0\] has \d labels for the \d positions"),
    "unserved": (
        ("custom",),
        {"search": "exact"},
        "'exact' needs.*PythonMulticlass.*'angular', 'bisecting'",
    ),
}


@pytest.mark.parametrize(("case", "params", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_picture_is_refused_before_a_figure_is_made(case, params, message):
    kind, fault = (*case, None)[:2]
    problem, model = fitted(kind)
    x, y = problem.X[0], problem.y[0]
    if fault == "x":
        x = x[:-1]
    elif fault == "nan":
        x = np.full_like(x, np.nan)
    elif fault == "y":
        y = y[:-1]
    elif fault == "row":
        y = [y, y]
    elif fault == "indices":
        x = problem.X[problem.X.getnnz(axis=1).argmax()].copy()
        x.indices[0] = 10**6
    elif fault == "label":
        y = 9
    with pytest.raises(ValueError, match=message):
        draw(model, x, y, **params)
    assert plt.get_fignums() == []


def test_estimators_that_have_no_labelings_are_refused():
    problem = make_problem("multiclass")
    with pytest.raises(NotFittedError):
        draw(problem.estimator(), problem.X[0], problem.y[0])
    other = LogisticRegression().fit(problem.X, problem.y)
    with pytest.raises(TypeError, match="LogisticRegression has no 'structure_'"):
        draw(other, problem.X[0], problem.y[0])

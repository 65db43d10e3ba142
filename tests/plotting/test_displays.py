"""What the displays draw, read back from the artists."""

import inspect
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from _seeds import new_seed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_structsvm import BCFWClassifier, bcfw_path, plotting
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.plotting import ConvergenceDisplay, RegularizationPathDisplay

HISTORY = {
    "n_iter": np.array([0, 10, 20, 23]),
    "n_oracle_calls": np.array([50, 600, 1150, 1350]),
    "seconds": np.array([0.01, 0.2, 0.35, 0.41]),
    "objective": np.array([1.0, 0.6, 0.45, 0.42]),
    "dual_objective": np.array([0.0, 0.3, 0.4, 0.415]),
    "dual_gap": np.array([1.0, 0.3, 0.05, 0.005]),
}
PATH = SimpleNamespace(
    lambdas=np.array([8.0, 2.0, 0.5]),
    coefs=np.array([[0.1, -0.2, 0.0, 0.3], [0.5, -2.0, 0.0, 0.3], [3.0, 1.0, 0, 0.4]]),
    gaps=np.array([0.02, 0.08, 0.09]),
    eps=0.1,
    end=0.0,
)


class Recorded(BaseEstimator):
    def fit(self, X=None, y=None):
        self.history_ = HISTORY
        return self


class CrossValidated(BaseEstimator):
    def __init__(self, scoring=None):
        self.scoring = scoring

    def fit(self, X=None, y=None):
        self.Cs_ = np.array([10.0, 0.1, 1.0])
        self.scores_path_ = np.array([[0.7, 0.9], [0.4, 0.6], [0.9, 0.9]])
        self.C_ = 1.0
        return self


class FittedOtherwise(BaseEstimator):
    def fit(self, X=None, y=None):
        self.coef_ = np.zeros(2)
        return self


DRAWINGS = {
    "history": lambda **kw: ConvergenceDisplay.from_history(HISTORY, **kw),
    "estimator": lambda **kw: ConvergenceDisplay.from_estimator(Recorded().fit(), **kw),
    "scores": lambda **kw: RegularizationPathDisplay.from_estimator(
        CrossValidated().fit(), **kw
    ),
    "path": lambda **kw: RegularizationPathDisplay.from_path(PATH, **kw),
}


@pytest.fixture(params=DRAWINGS)
def draw(request):
    return DRAWINGS[request.param]


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def changed(**entries):
    return HISTORY | {key: np.asarray(value) for key, value in entries.items()}


# Convergence


@pytest.mark.parametrize(
    "x, label",
    [
        ("seconds", "Time (s)"),
        ("n_iter", "Passes over the data"),
        ("n_oracle_calls", "Oracle calls"),
    ],
)
def test_gap_is_drawn_against_the_chosen_x_on_a_log_axis(x, label):
    display = ConvergenceDisplay.from_estimator(Recorded().fit(), x=x)
    (line,) = display.lines_
    assert_array_equal(line.get_xdata(), HISTORY[x])
    assert_array_equal(line.get_ydata(), HISTORY["dual_gap"])
    assert display.ax_.get_xlabel() == label
    assert display.ax_.get_ylabel() == "Duality gap"
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.get_xscale() == "linear"
    assert display.fill_between_ is None and display.not_positive_ is None
    assert legend(display) == ["Recorded"]


def test_objective_draws_primal_and_dual_with_the_certified_band_between():
    display = ConvergenceDisplay.from_history(HISTORY, y="objective", x="n_iter")
    primal, dual = display.lines_
    assert_array_equal(primal.get_ydata(), HISTORY["objective"])
    assert_array_equal(dual.get_ydata(), HISTORY["dual_objective"])
    assert primal.get_color() == dual.get_color()
    assert primal.get_linestyle() != dual.get_linestyle()
    corners = display.fill_between_.get_paths()[0].vertices
    expected = {
        (n, value)
        for key in ("objective", "dual_objective")
        for n, value in zip(HISTORY["n_iter"], HISTORY[key], strict=True)
    }
    assert expected == {tuple(corner) for corner in corners}
    assert legend(display) == ["primal (upper bound)", "dual (lower bound)"]
    styled = display.plot(y="objective", fill_between_kw={"alpha": 0.7})
    assert styled.fill_between_.get_alpha() == 0.7


def test_dual_objective_of_zero_leaves_the_log_axis_without_stretching_it():
    display = ConvergenceDisplay.from_history(HISTORY, y="objective")
    assert display.ax_.get_yscale() == "log"
    bottom, top = display.ax_.get_ylim()
    assert 0.1 < bottom < 0.3 and 1.0 < top < 2.0
    # Drawn toward the bottom: not a hole in the line and the band.
    assert -np.inf < display.ax_.transData.transform([0.0, 0.0])[1] < 0


@pytest.mark.parametrize("y", ["dual_gap", "objective"])
def test_problem_of_zero_objective_is_drawn(y):
    zero = np.zeros(4)
    history = changed(objective=zero, dual_objective=zero, dual_gap=zero)
    display = ConvergenceDisplay.from_history(history, y=y)
    display.figure_.canvas.draw()
    assert display.ax_.get_yscale() == ("log" if y == "dual_gap" else "linear")


def test_gap_lost_to_rounding_is_a_triangle_at_the_resolution_of_the_objective():
    history = changed(objective=[8, 6, 4, 4], dual_gap=[8.0, 1e-3, 0.0, -1e-15])
    display = ConvergenceDisplay.from_history(history, name="fit")
    floor = 8 * np.finfo(float).eps
    assert_array_equal(display.lines_[0].get_ydata(), [8.0, 1e-3, floor, floor])
    assert_array_equal(display.not_positive_.get_xdata(), HISTORY["seconds"][2:])
    assert_array_equal(display.not_positive_.get_ydata(), [floor, floor])
    assert display.not_positive_.get_color() == display.lines_[0].get_color()
    assert legend(display) == ["fit", "fit, gap ≤ 0"]


def test_gap_negative_beyond_rounding_warns_and_names_the_entry():
    history = changed(dual_gap=[1.0, 0.2, -0.01, 0.1])
    with pytest.warns(UserWarning, match=r"\['dual_gap'\]\[2\] is -0.01: negative"):
        display = ConvergenceDisplay.from_history(history)
    assert_array_equal(display.not_positive_.get_xdata(), HISTORY["seconds"][2:3])


def test_history_may_be_of_one_check_and_of_lists_and_lack_unused_keys():
    history = {key: values[:1] for key, values in HISTORY.items()}
    assert ConvergenceDisplay.from_history(history).lines_[0].get_marker() == "."
    history = {key: HISTORY[key].tolist() for key in HISTORY if key != "n_iter"}
    display = ConvergenceDisplay.from_history(history)
    assert_array_equal(display.lines_[0].get_ydata(), HISTORY["dual_gap"])


@pytest.mark.parametrize("y", ["dual_gap", "objective"])
def test_several_fits_share_axes_in_colors_and_names_of_their_own(y):
    first = ConvergenceDisplay.from_estimator(Recorded().fit(), y=y, name="a")
    second = ConvergenceDisplay.from_history(HISTORY, y=y, name="b", ax=first.ax_)
    assert second.ax_ is first.ax_
    assert first.lines_[0].get_color() != second.lines_[0].get_color()
    names = [text.split(",")[0] for text in legend(second)]
    assert names == ["a"] * (len(names) // 2) + ["b"] * (len(names) // 2)


def test_display_is_drawn_again_with_other_choices():
    display = ConvergenceDisplay.from_history(HISTORY, y="objective", name="one")
    assert display.plot(x="n_iter", name="other") is display
    assert display.ax_.get_xlabel() == "Passes over the data"
    assert display.fill_between_ is None
    assert legend(display) == ["other"]


@pytest.mark.parametrize(
    "history, error, message",
    [({"seconds": [1.0]}, ValueError, "has no key 'dual_gap'; its keys are .'seconds'."),
     (changed(dual_gap=[1.0, 0.5]), ValueError, r"'dual_gap'.*\(2,\) and \(4,\)"),
     (changed(seconds=[]), ValueError, r"'seconds'.*not empty"),
     (changed(seconds=np.ones((4, 1))), ValueError, r"'seconds'.*must be 1-D"),
     ([1.0, 0.5], TypeError, r"must be a dict of arrays; got \[1.0, 0.5\]")],
)  # fmt: skip
def test_bad_history_is_refused_before_a_figure_is_made(history, error, message):
    with pytest.raises(error, match=message):
        ConvergenceDisplay.from_history(history)
    assert plt.get_fignums() == []


# Scores against C


def test_scores_are_drawn_as_mean_and_band_in_increasing_c_with_the_chosen_one():
    display = RegularizationPathDisplay.from_estimator(CrossValidated().fit())
    (line,) = display.lines_
    assert_array_equal(line.get_xdata(), [0.1, 1.0, 10.0])
    assert_allclose(line.get_ydata(), [0.5, 0.9, 0.8], rtol=1e-15)
    corners = display.fill_between_.get_paths()[0].vertices
    for C, low, high in [(0.1, 0.4, 0.6), (1.0, 0.9, 0.9), (10.0, 0.7, 0.9)]:
        at_C = corners[corners[:, 0] == C, 1]
        assert_allclose([at_C.min(), at_C.max()], [low, high], rtol=1e-15)
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlabel() == "Regularization parameter C"
    assert_array_equal(display.reference_.get_xdata(), [1.0, 1.0])
    assert legend(display) == ["mean ± std over 2 folds", "chosen C = 1"]


@pytest.mark.parametrize(
    "scoring, score_name, label",
    [
        (None, None, "Score"),
        (len, None, "Score"),
        ("balanced_accuracy", None, "Balanced accuracy"),
        ("balanced_accuracy", "Letters read", "Letters read"),
    ],
)
def test_score_axis_is_labeled_by_the_scoring_unless_named(scoring, score_name, label):
    display = RegularizationPathDisplay.from_estimator(
        CrossValidated(scoring).fit(), score_name=score_name
    )
    assert display.ax_.get_ylabel() == label
    assert display.plot(score_name="F1").ax_.get_ylabel() == "F1"


# Paths against lambda


def test_gaps_are_points_at_the_breakpoints_below_a_line_at_eps():
    display = RegularizationPathDisplay.from_path(PATH)
    (points,) = display.lines_
    assert_array_equal(points.get_xdata(), PATH.lambdas)
    assert_array_equal(points.get_ydata(), PATH.gaps)
    assert points.get_linestyle() == "None"
    assert_array_equal(display.reference_.get_ydata(), [0.1, 0.1])
    assert legend(display) == ["at the breakpoints", r"$\varepsilon$ = 0.1"]
    bottom, top = display.ax_.get_ylim()
    assert bottom == 0 and top > PATH.eps
    path = SimpleNamespace(**vars(PATH) | {"gaps": np.array([0.02, -0.01, 0.05])})
    assert RegularizationPathDisplay.from_path(path).ax_.get_ylim()[0] < -0.01


def test_norm_steps_from_each_breakpoint_down_to_the_next():
    display = RegularizationPathDisplay.from_path(PATH, kind="norm")
    (line,) = display.lines_
    assert_array_equal(line.get_xdata(), PATH.lambdas)
    assert_allclose(line.get_ydata(), [np.linalg.norm(w) for w in PATH.coefs], rtol=1e-14)
    # In data order, which is that of decreasing λ, each value is held.
    assert line.get_drawstyle() == "steps-post"
    assert display.ax_.get_xscale() == "log"
    assert "lambda" in display.ax_.get_xlabel()


def test_largest_coefficients_of_the_path_are_drawn_largest_first():
    display = RegularizationPathDisplay.from_path(PATH, kind="coefs", n_coefs=2)
    assert legend(display) == ["w[0]", "w[1]"]
    for line, k in zip(display.lines_, [0, 1], strict=True):
        assert_array_equal(line.get_ydata(), PATH.coefs[:, k])
        assert line.get_drawstyle() == "steps-post"
    path = SimpleNamespace(**vars(PATH) | {"coefs": np.array([[1, -9, 2], [0, 0, 3]])})
    path.lambdas = PATH.lambdas[:2]
    display = RegularizationPathDisplay.from_path(path, kind="coefs")
    assert legend(display) == ["w[1]", "w[2]", "w[0]"]


def test_legend_of_coefficients_hides_no_curve_and_is_not_clipped():
    display = RegularizationPathDisplay.from_path(PATH, kind="coefs")
    display.figure_.canvas.draw()
    box = display.ax_.get_legend().get_window_extent()
    assert box.x0 >= display.ax_.get_window_extent().x1
    assert box.x1 <= display.figure_.bbox.x1


@pytest.mark.parametrize("kind", ["gap", "norm", "coefs"])
def test_path_of_one_breakpoint_is_visible(kind):
    first = {name: getattr(PATH, name)[:1] for name in ("lambdas", "coefs", "gaps")}
    path = SimpleNamespace(**vars(PATH) | first)
    display = RegularizationPathDisplay.from_path(path, kind=kind)
    display.figure_.canvas.draw()
    assert {line.get_marker() for line in display.lines_} == {"."}


@pytest.mark.parametrize("kind", ["gap", "norm", "coefs"])
def test_the_end_of_a_path_is_marked_where_it_ended_early(kind):
    # Features that tell the labels: from some λ > 0 down one solution serves all.
    _, y = make_chains(20, n_classes=2, random_state=new_seed())
    X = [np.eye(2)[labels] for labels in y]
    whole = bcfw_path(X, y, eps=0.5, min_lambda=0.0, random_state=0)
    assert whole.complete
    assert RegularizationPathDisplay.from_path(whole, kind=kind).end_ is None
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        path = bcfw_path(X, y, eps=1e-6, max_iter=1, random_state=0)
    display = RegularizationPathDisplay.from_path(path, kind=kind)
    assert_array_equal(display.end_.get_xdata(), [path.end, path.end])
    assert rf"ends at $\lambda$ = {path.end:.3g}" in legend(display)
    assert np.concatenate([line.get_xdata() for line in display.lines_]).min() == path.end


def test_scores_are_drawn_of_each_c_that_all_paths_reached():
    model = CrossValidated().fit()
    model.scores_path_[0, 1] = np.nan
    display = RegularizationPathDisplay.from_estimator(model)
    display.figure_.canvas.draw()
    assert_allclose(display.lines_[0].get_ydata(), [0.5, 0.9, np.nan], rtol=1e-15)


def test_a_wrong_number_of_coefficients_is_refused_with_the_value():
    for n_coefs in (0, -1, 2.5, None):
        with pytest.raises(ValueError, match=f"n_coefs must be .* got {n_coefs!r}"):
            RegularizationPathDisplay.from_path(PATH, kind="coefs", n_coefs=n_coefs)


@pytest.mark.parametrize(
    "kind, param_range, values, message",
    [
        ("score", [1.0, 2.0], [[0.5, 0.6]], r"values must be 2-D with 2.*\(1, 2\)"),
        ("score", [1.0, 2.0], [0.5, 0.6], r"values must be 2-D with 2 rows.*\(2,\)"),
        ("gap", [1.0, 2.0], [0.5], r"values must be 1-D with 2 rows.*\(1,\)"),
        ("norm", [], [], "param_range is empty"),
        ("norm", 1.0, [0.5], r"param_range must have shape \(n_params,\); got \(\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(kind, param_range, values, message):
    display = RegularizationPathDisplay(kind=kind, param_range=param_range, values=values)
    with pytest.raises(ValueError, match=message):
        display.plot()
    assert plt.get_fignums() == []


# All of them


def test_axes_a_name_and_short_names_of_styles_are_taken(draw):
    _, ax = plt.subplots()
    display = draw(ax=ax, name="mine", c="red", marker="x", ls=":")
    assert display.ax_ is ax and len(plt.get_fignums()) == 1
    line = display.lines_[0]
    assert (line.get_color(), line.get_marker()) == ("red", "x")
    assert line.get_linestyle() == ":" and legend(display)[0].startswith("mine")
    display = draw()
    assert display.figure_ is display.ax_.figure is not ax.figure
    if display.fill_between_ is not None:
        assert draw(fill_between_kw={"alpha": 0.7}).fill_between_.get_alpha() == 0.7


@pytest.mark.parametrize("display", [ConvergenceDisplay, RegularizationPathDisplay])
def test_estimator_that_is_not_fitted_is_refused(display):
    with pytest.raises(NotFittedError, match="Recorded"):
        display.from_estimator(Recorded())


@pytest.mark.parametrize(
    "draw_wrong, missing",
    [
        (ConvergenceDisplay.from_estimator, "history_"),
        (RegularizationPathDisplay.from_estimator, "BCFWClassifierCV.* no 'Cs_'"),
        (RegularizationPathDisplay.from_path, "bcfw_path.* no 'lambdas'"),
    ],
)
def test_object_of_the_wrong_kind_is_refused_with_what_it_lacks(draw_wrong, missing):
    with pytest.raises(TypeError, match=missing):
        draw_wrong(FittedOtherwise().fit())


class Untouched:
    def __getattr__(self, name):
        raise AssertionError(f"{name} was asked for")


of_methods = pytest.mark.parametrize(
    "method",
    [
        getattr(kind, name)
        for kind in vars(plotting).values()
        if inspect.isclass(kind)
        for name in dir(kind)
        if name.startswith("from_")
    ],
    ids=lambda method: method.__qualname__,
)


def call_untouched(method, **options):
    """With arguments that it must not look at."""
    needed = [
        parameter
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty and "VAR" not in parameter.kind.name
    ]
    by_name = {p.name: Untouched() for p in needed if p.kind is p.KEYWORD_ONLY}
    others = [Untouched() for p in needed if p.kind is not p.KEYWORD_ONLY]
    return method(*others, **by_name, **options)


@of_methods
def test_missing_matplotlib_is_reported_before_any_work(method, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=f"{method.__qualname__} needs matplotlib.*pip"):
        call_untouched(method)


@of_methods
def test_wrong_axes_are_refused_before_any_work(method):
    with pytest.raises(TypeError, match="^ax must be matplotlib Axes; got 'x'"):
        call_untouched(method, ax="x")


def test_a_new_figure_says_which_methods_made_the_passes():
    methods = {"method": ["start", "blocks", "planes", "blocks"], "n_iter": [0, 3, 4, 9]}
    gaps = {"seconds": [0, 1, 2, 3], "objective": [1.0] * 4, "dual_objective": [0.5] * 4}
    history = methods | gaps | {"dual_gap": [0.5, 0.4, 0.3, 0.25]}
    display = ConvergenceDisplay.from_history(history)
    passes, gap = display.ax_.get_title().split("\n")
    assert passes == "Passes: 8 of block steps, 1 of cutting planes."
    why = "A method that is slow gives way to another. "
    assert gap == why + "The gap that is left is 0.25."
    fit = BCFWClassifier("chain", max_iter=50, random_state=0)
    fit.fit(*make_chains(20, random_state=new_seed()))
    title = ConvergenceDisplay.from_estimator(fit).ax_.get_title()
    assert f"{fit.n_iter_} of " in title and f"{fit.dual_gap_:.2g}" in title
    # Axes that are passed may hold several fits.
    _, ax = plt.subplots()
    assert ConvergenceDisplay.from_history(history, ax=ax).ax_.get_title() == ""

"""A model answers while it is fitted again: by the old weights, and then by the new."""

import copy
import inspect
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event

import joblib
import numpy as np
import pytest
from _estimators import EVERY_ESTIMATOR
from _interleaving import PACKAGE, at, at_each, count
from _seeds import cache_by_seed, new_rng
from scipy import sparse
from sklearn.base import clone
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    ConformalClassifier,
    CRFClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    StackedStructureClassifier,
)
from sklearn_structsvm._utils.snapshots import (
    Draft,
    FittedAside,
    is_fitted_attribute,
    snapshot,
)
from sklearn_structsvm.export import export_tagger
from sklearn_structsvm.metrics import GMean, neg_token_log_loss_scorer
from sklearn_structsvm.plotting import (
    ChainWeightsDisplay,
    SegmentsDisplay,
    TaggingDisplay,
    ThresholdDisplay,
    fairness_report,
)
from sklearn_structsvm.preprocessing import SequenceTransformer, WordFeatures
from sklearn_structsvm.structures.lattice import LabelingLattice

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

# Against a test that hangs; no claim depends on it.
TIMEOUT = 300

TAGS = np.array(["B-X", "I-X", "O", "B-Y"])


ROUGH = {"tol": 0.1, "random_state": 0}
ESTIMATORS = {type(one).__name__: one for one in EVERY_ESTIMATOR} | {
    # Over a quicker classifier.
    "ComplexMetricClassifier": ComplexMetricClassifier(GaussianNB(), cv=2),
    "ConformalClassifier": ConformalClassifier(GaussianNB(), random_state=0),
    "MultilabelMetricClassifier": MultilabelMetricClassifier(
        OneVsRestClassifier(GaussianNB()), cv=2),
    "rule-ComplexMetricClassifier": ComplexMetricClassifier(
        GaussianNB(), randomized=False, cv=2),
    "warm-BCFWClassifier": BCFWClassifier("multiclass", warm_start=True, **ROUGH),
    "warm-CRFClassifier": CRFClassifier("multiclass", warm_start=True, **ROUGH),
    "chain-BCFWClassifier": BCFWClassifier("chain", **ROUGH),
    "chain-BCFWClassifierCV": BCFWClassifierCV("chain", Cs=[0.1, 1.0], cv=2, **ROUGH),
    "chain-BMRMClassifier": BMRMClassifier(structure="chain", **ROUGH),
    "chain-CRFClassifier": CRFClassifier("chain", **ROUGH),
    "chain-CRFClassifier-mbr": CRFClassifier(
        "chain", solver_options={"decoding": "mbr"}, **ROUGH),
    "chain-CRFClassifierCV": CRFClassifierCV("chain", Cs=[0.1, 1.0], cv=2, **ROUGH),
    "chain-ConformalClassifier": ConformalClassifier(
        CRFClassifier("chain", **ROUGH), conformity_score="likelihood",
        confidence_level=0.5, random_state=0),
    "chain-PragamClassifier": PragamClassifier(structure="chain", C=0.1, tol=0.1),
    "chain-SlackRescaledSSVM": SlackRescaledSSVM("chain", **ROUGH),
    "chain-StackedStructureClassifier": StackedStructureClassifier(
        GaussianNB(), CRFClassifier("chain", **ROUGH), cv=2),
    "SequenceTransformer": SequenceTransformer(),
    "WordFeatures": WordFeatures(),
}  # fmt: skip
# One of each class at least: what fits replace is the same over other structures.
OF_FITS = [
    name
    for name in ESTIMATORS
    if not name.startswith("chain")
    or name.endswith(("-CRFClassifier", "-ConformalClassifier", "StructureClassifier"))
]
for_each_name = pytest.mark.parametrize("name", OF_FITS)
# Those whose methods have code of their own, and not another one's: of a search, of slack
# rescaling and of what shares the methods of BMRM the fits alone are others.
READERS = [
    name
    for name in ESTIMATORS
    if not name.startswith(("warm", "chain", "Pragam", "Slack", "SubLBFGS"))
    and not name.endswith("CV")
    or name.startswith(("chain-BCFWClassifier", "chain-CRF", "chain-Conformal"))
    and not name.endswith("CV")
]
# Those whose fit does not depend on the fit before.
WITHOUT_MEMORY = [name for name in OF_FITS if not name.startswith("warm")]


def rows(seed, k, scale=1.0, n=60, apart=5.0):
    codes = np.arange(n) % k
    X = new_rng(seed, k).normal(size=(n, 4)) + apart * np.eye(4)[codes]
    return scale * X, codes


def three_sets(name):
    """Data for an old fit, for a new one, and to be asked about.

    What is half of each fit has coefficients of one shape and classes of another, or
    weights of one scale and thresholds of another.
    """
    if name == "SequenceTransformer":
        words = [["a", "b", "c"], ["b", "d"]]
        return [
            ([[{of: word, "bias": True} for word in own] for own in words],)
            for of in ("word", "shape", "word")
        ]
    if name == "WordFeatures":
        return [([list(words)],) for words in (["ab", "cde"], ["XY", "1"], ["ab", "1"])]
    if name.startswith("chain"):
        sets = rows(0, 3, n=40), rows(1, 4, 3.0, n=40), rows(2, 3, n=10)
        names = TAGS, TAGS[::-1], TAGS
        return [
            (np.split(X, len(X) // 5), np.split(own[y], len(X) // 5))
            for own, (X, y) in zip(names, sets, strict=True)
        ]
    if name == "MultilabelMetricClassifier":
        (X, y), (X_new, y_new), (asked, y_asked) = rows(0, 3), rows(1, 3), rows(2, 3, n=6)
        eye = np.eye(3, dtype=int)
        # A sparse y makes predictions sparse.
        new = X_new, sparse.csr_array(eye[2 - y_new])
        return [(X, eye[y]), new, (asked, eye[y_asked])]
    if name.startswith("rule"):
        # Classes that overlap, in other shares and with other names.
        X, y = rows(1, 3, apart=2.0)
        new = X, y == 0
        return [rows(0, 2, apart=2.0), new, rows(2, 2, n=40, apart=2.0)]
    if name.startswith("warm"):
        (first, first_y), (X, y) = rows(0, 4), rows(1, 4)
        # Some examples stay.
        new = np.concatenate([first[:12], X]), np.concatenate([first_y[:12], 3 - y])
        return [(first, first_y), new, rows(2, 4, n=8)]
    X, y = rows(1, 4, 3.0)
    # A few labels are wrong, so that scores differ, too.
    return [rows(0, 2), (X, np.where(np.arange(60) < 8, 0, 3 - y)), rows(2, 2, n=6)]


@cache_by_seed
def fitted(name):
    """A model of the old data, and what it becomes by the new: nobody changes them."""
    old_data, new_data, _ = three_sets(name)
    old = clone(ESTIMATORS[name]).fit(*old_data)
    return old, copy.copy(old).fit(*new_data)


def true_sets(y):
    """Sets of the old classes that hold the true ones alone."""
    classes = np.unique(y)
    sets = [np.equal.outer(labels, classes) for labels in y]
    return sets if np.ndim(y[0]) else np.array(sets)


# What is asked of a model, by the name of the method: (model, X, y) -> answer.
ASK = {
    "decision_function": lambda model, X, y: model.decision_function(X),
    "entropy": lambda model, X, y: model.entropy(X),
    "get_feature_names_out": lambda model, X, y: model.get_feature_names_out(),
    "log_likelihood": lambda model, X, y: model.log_likelihood(X, y),
    "max_marginals": lambda model, X, y: model.max_marginals(X),
    "predict": lambda model, X, y: model.predict(X),
    "predict_batch": lambda model, X, y: model.predict_batch(X),
    "predict_edge_proba": lambda model, X, y: model.predict_edge_proba(X),
    "predict_k_best": lambda model, X, y: model.predict_k_best(X, 2),
    "predict_lattice": lambda model, X, y: model.predict_lattice(X),
    "predict_log_proba": lambda model, X, y: model.predict_log_proba(X),
    "predict_proba": lambda model, X, y: model.predict_proba(X),
    "predict_set": lambda model, X, y: model.predict_set(X),
    "predict_spans": lambda model, X, y: model.predict_spans(X),
    "score": lambda model, X, y: model.score(X, y),
    "set_names": lambda model, X, y: model.set_names(true_sets(y)),
    "set_report": lambda model, X, y: model.set_report(X, y),
    "transform": lambda model, X, y: model.transform(X),
}
# Methods that do not read what is fitted, or that set it.
NOT_ASKED = re.compile(
    r"fit|fit_transform|conformalize|sparsify|densify"
    r"|get_params|get_metadata_routing|set_(params|callbacks|output|\w+_request)"
)


def public_methods(model):
    return [
        name
        for name, _ in inspect.getmembers(type(model))
        if name[0] != "_" and not name.endswith("_") and hasattr(model, name)
        and callable(getattr(model, name)) and not NOT_ASKED.fullmatch(name)
    ]  # fmt: skip


# Others that read several attributes, by the estimators that they are for.
ASK_OF = {
    "BCFWClassifier": {
        "copy": lambda model, X, y: vars(copy.copy(model)) | {"history_": None}
    },
    "ComplexMetricClassifier": {
        "scorer": lambda model, X, y: GMean().scorer()(model, X, y),
        "report": lambda model, X, y: vars(
            fairness_report(model, X, y, sensitive_features=y)
        ),
    },
    "rule-ComplexMetricClassifier": {
        "rule_": lambda model, X, y: str(model.rule_),
        "threshold": lambda model, X, y: shown(ThresholdDisplay, model, X, y),
    },
    "MultilabelMetricClassifier": {"rule_": lambda model, X, y: str(model.rule_)},
    "chain-CRFClassifier": {
        "export": lambda model, X, y: exported(model),
        "scorer": neg_token_log_loss_scorer,
        "weights": lambda model, X, y: shown(ChainWeightsDisplay, model),
        "segments": lambda model, X, y: shown(SegmentsDisplay, model, X[0], y[0]),
        "tagging": lambda model, X, y: shown(TaggingDisplay, model, X[0]),
    },
}


def exported(model):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/tagger.npz"
        export_tagger(model, path)
        return dict(np.load(path))


def shown(display, *arguments):
    undrawn = type("Undrawn", (display,), {"plot": lambda self, *args, **options: self})
    return vars(undrawn.from_estimator(*arguments))


def questions(name):
    """(what, model -> answer) for all that can be asked of a case's model."""
    X, y = [*three_sets(name)[2], None][:2]
    asked = {method: ASK[method] for method in public_methods(fitted(name)[0])}
    for what, ask in (asked | ASK_OF.get(name, {})).items():
        yield what, partial(answer, ask, X=X, y=y)


class Refusal(str):
    """What an error says."""


def answer(ask, model, X, y):
    try:
        return plain(ask(model, X, y))
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        return Refusal(f"{type(error).__name__}: {error}")


def plain(value):
    if sparse.issparse(value):
        return ["sparse", plain(value.toarray())]
    if isinstance(value, LabelingLattice):
        value = value.nodes
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(own) for own in value]
    # NaN is equal to itself here.
    is_known = isinstance(value, (int, float, np.number, str, type(None)))
    return repr(value) if is_known else joblib.hash(value)


def fitted_of(model):
    return {k: v for k, v in vars(model).items() if is_fitted_attribute(k)}


def is_same(found, expected):
    """Whether these are the same attributes: the very objects."""
    return found.keys() == expected.keys() and all(
        found[name] is expected[name] for name in found
    )


def end_fit(model, other):
    """End a fit of the model, which has found what the other has, as `fit` does it."""
    if not isinstance(model, FittedAside):
        vars(model).update(fitted_of(other))  # It is one attribute.
        return
    draft = Draft(model)
    draft.take_fitted()
    vars(draft.estimator).update(fitted_of(other))
    draft.replace()


@pytest.mark.parametrize("name", READERS)
def test_an_answer_is_of_one_fit_at_whatever_line_another_ends(name):
    old, new = fitted(name)
    for what, ask in questions(name):
        answers = [ask(old), ask(new)]
        if isinstance(answers[0], Refusal):
            continue
        assert answers[0] != answers[1], what
        n_lines = count("line", partial(ask, old))
        n_old = 0
        # Of many, the odd or the even ones, as the seed says.
        step = 2 if n_lines > 9 else 1
        for line in range(1 + new_rng(7).integers(step), n_lines + 1, step):
            model = copy.copy(old)
            found = at(line, "line", partial(ask, model), partial(end_fit, model, new))
            assert found in answers, (what, line)
            n_old += found == answers[0]
        assert ask(model) == answers[1], what
        # The fit that ends at the last line is too late. Transformers have but one
        # attribute, which may be read there.
        assert n_old > 0 or name in ("SequenceTransformer", "WordFeatures"), what


def test_every_public_method_is_tried():
    tried = {method for name in ESTIMATORS for method in public_methods(fitted(name)[0])}
    assert tried == set(ASK)


def ways_to_change(name):
    """(what, a model, call) for all that changes what is fitted.

    The call takes a model, and returns it.
    """
    unfitted = clone(ESTIMATORS[name])
    old, new_data = fitted(name)[0], three_sets(name)[1]
    yield "first fit", unfitted, lambda model: model.fit(*new_data)
    yield "another fit", old, lambda model: model.fit(*new_data)
    if hasattr(old, "conformalize"):
        yield "conformalize", old, lambda model: model.conformalize(*three_sets(name)[0])
    if hasattr(old, "sparsify"):
        yield "sparsify", old, lambda model: model.sparsify()
        yield "densify", copy.copy(old).sparsify(), lambda model: model.densify()
    if hasattr(old, "fit_transform"):
        yield "fit_transform", old, lambda model: model.fit_transform(*new_data) and model


@for_each_name
def test_all_attributes_of_a_fit_are_replaced_at_once(name):
    for what, before, change in ways_to_change(name):
        model = copy.copy(before)
        states = [fitted_of(model)]

        def look(n=None, model=model, states=states):
            now = fitted_of(model)
            if not is_same(now, states[-1]):
                states.append(now)

        assert at_each("line", partial(change, model), look, within=PACKAGE) is model
        look()
        assert len(states) == 2, what


def interrupt():
    raise KeyboardInterrupt


@for_each_name
def test_a_fit_that_is_interrupted_anywhere_leaves_the_old_model_or_the_new_one(name):
    for what, before, change in ways_to_change(name):
        hash_before = joblib.hash(vars(before))
        n_calls = count("call", partial(change, copy.copy(before)))
        # The last ones are where the attributes are replaced.
        early = new_rng(0).integers(1, n_calls + 1, size=2).tolist()
        for call in {*early, *range(max(n_calls - 4, 1), n_calls + 1)}:
            model = copy.copy(before)
            with pytest.raises(KeyboardInterrupt):
                at(call, "call", partial(change, model), interrupt)
            if not is_same(fitted_of(model), fitted_of(before)):
                # What was found so far is kept, but not without a certificate.
                assert fitted_of(model).keys() == fitted_of(fitted(name)[1]).keys()
        assert joblib.hash(vars(before)) == hash_before, what


@for_each_name
def test_a_fit_that_fails_leaves_the_old_model(name):
    old, (X, *y) = fitted(name)[0], three_sets(name)[1]
    bad = (X, y[0][:-1]) if y else ([[None]],)
    hash_before = joblib.hash(vars(old))
    model = copy.copy(old)
    for change in (model.fit, getattr(model, "conformalize", None)):
        if change is not None:
            with pytest.raises((TypeError, ValueError)):
                change(*bad)
            assert is_same(fitted_of(model), fitted_of(old))
    assert joblib.hash(vars(old)) == hash_before


class Paused:
    """A method of a model in another thread, which waits at one of its lines.

    `share` of its lines have run then.
    """

    def __init__(self, model, method, data, share):
        n_lines = count("line", lambda: getattr(copy.copy(model), method)(*data))
        self.line = round(share * n_lines)
        self.call = partial(getattr(model, method), *data)
        self.is_there, self.may_go_on = Event(), Event()

    def __enter__(self):
        self.pool = ThreadPoolExecutor(1)
        self.future = self.pool.submit(at, self.line, "line", self.call, self._wait)
        # It does not wait for a call that ends before.
        self.future.add_done_callback(lambda future: self.is_there.set())
        assert self.is_there.wait(TIMEOUT)
        assert not self.future.done()
        return self

    def _wait(self):
        self.is_there.set()
        assert self.may_go_on.wait(TIMEOUT)

    def go_on(self):
        self.may_go_on.set()
        return self.future.result(TIMEOUT)

    def __exit__(self, *exception):
        self.may_go_on.set()
        self.pool.shutdown()


@for_each_name
def test_the_old_model_answers_while_another_thread_fits_and_new_parameters_stay(name):
    old, new = fitted(name)
    model = copy.copy(old)
    has_jobs = "n_jobs" in model.get_params()
    with Paused(model, "fit", three_sets(name)[1], 0.8) as fit:
        for what, ask in questions(name):
            assert ask(model) == ask(old), what
        if has_jobs:
            model.set_params(n_jobs=1)
        assert fit.go_on() is model
    if has_jobs:
        assert model.n_jobs == 1
        model.set_params(n_jobs=old.n_jobs)
    for what, ask in questions(name):
        assert ask(model) == ask(new), what


def test_what_is_set_while_attributes_are_replaced_or_in_a_snapshot_stays_set():
    old, new = fitted("BCFWClassifier")
    n_lines = count("line", partial(end_fit, copy.copy(old), new))
    for line in range(1, n_lines + 1):
        model = copy.copy(old)
        at(line, "line", partial(end_fit, model, new), partial(model.set_params, C=3.0))
        assert model.C == 3.0
        assert is_same(fitted_of(model), fitted_of(new))
    snapshot(model).kept = 1
    assert model.kept == 1
    # Others have no fits that replace all at once.
    other = fitted("SequenceTransformer")[0]
    assert snapshot(other) is other


@pytest.mark.parametrize("name", WITHOUT_MEMORY)
def test_the_last_of_two_fits_at_once_to_end_replaces_all(name):
    (old, new), (first, second, _) = fitted(name), three_sets(name)
    model = clone(ESTIMATORS[name])
    with Paused(model, "fit", second, 0.5) as fit:
        model.fit(*first)
        for what, ask in questions(name):
            assert ask(model) == ask(old), what
        fit.go_on()
    for what, ask in questions(name):
        assert ask(model) == ask(new), what


# The new model is, by the old labels.
@pytest.mark.filterwarnings("ignore:The sets hold every label")
@pytest.mark.parametrize(
    ("name", "method"),
    [("CRFClassifier", "sparsify"), ("CRFClassifier", "densify"),
     ("ConformalClassifier", "conformalize")],
)  # fmt: skip
def test_what_is_changed_while_another_fit_ends_is_changed_of_one_fit(name, method):
    def begun(model):
        model = copy.copy(model)
        return model.sparsify() if method == "densify" else model

    def answers(model):
        return {what: ask(model) for what, ask in questions(name)}

    (old, new), data = fitted(name), rows(3, 2) if method == "conformalize" else ()
    # Which of the two it is depends on who comes first; the last one replaces all.
    whole = [new, *(getattr(begun(own), method)(*data) for own in (old, new))]
    whole = [answers(own) for own in whole]
    n_lines = count("line", partial(getattr(begun(old), method), *data))
    for line in range(1, n_lines + 1, 5 if data else 1):
        model = begun(old)
        refit = partial(end_fit, model, new)
        assert at(line, "line", partial(getattr(model, method), *data), refit) is model
        assert answers(model) in (whole if data else whole[:1])


def test_lazy_predictions_are_of_the_model_that_made_them():
    da = pytest.importorskip("dask.array")
    old, new = fitted("BCFWClassifier")
    X = three_sets("BCFWClassifier")[2][0]
    model = copy.copy(old)
    lazy = model.predict(da.from_array(X, chunks=(2, -1)))
    end_fit(model, new)
    np.testing.assert_array_equal(lazy.compute(), old.predict(X))


class Subclass(BCFWClassifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(2.0 * X, y, sample_weight)
        self.n_fitted_ = len(X)
        return self

    def predict(self, X, **options):
        self.n_predicted = getattr(self, "n_predicted", 0) + len(X)
        return super().predict(2.0 * X, **options)


def test_a_subclass_may_override_and_set_what_it_likes():
    (X, y), new = rows(0, 2), rows(1, 4)
    model = Subclass("multiclass", random_state=0)
    assert model.fit(X, y) is model
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.score(X, y) == 1.0
    assert (model.n_fitted_, model.n_predicted) == (60, 120)
    with Paused(model, "fit", new, 0.5) as fit:
        np.testing.assert_array_equal(model.predict(X), y)
        fit.go_on()
    assert model.score(*new) == 1.0
    # The other thread did not forget what was set meanwhile.
    assert model.n_predicted == 240

"""Files of skops: all that is fitted comes back as it was, by the types that we list."""

import re
import warnings
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from _models import MODELS
from _seeds import cache_by_seed, new_rng
from damage import with_other_bytes
from sklearn.dummy import DummyClassifier

import sklearn_structsvm
from sklearn_structsvm import metrics, preprocessing, structures
from sklearn_structsvm.confusion.constraint import Constraint
from sklearn_structsvm.confusion.metric import ConfusionMetric

io = pytest.importorskip("skops.io")

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Training predicts:UserWarning"),
]
PAGE = Path(__file__).parents[1] / "doc" / "api" / "saved_types.rst"


def table():
    """By their names, the rows of the table in the documentation."""
    text = PAGE.read_text(encoding="utf-8")
    text = text[text.index(".. list-table:: Types to trust") :]
    rows = re.split(r"^   \* - ", text, flags=re.MULTILINE)
    found = {}
    for row in rows[2:]:
        name, types = row.split("\n     - ", 1)
        name = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", name).replace("`", "")
        types = re.findall(r"``([\w.]+)``", types)
        found[name] = {f"sklearn_structsvm.{kind}" for kind in types}
    return found


TABLE = table()


def type_of(kind):
    return f"{kind.__module__}.{kind.__name__}"


def own_types(name):
    """The type that a public class of this name has."""
    homes = sklearn_structsvm, structures, preprocessing, metrics
    kinds = {getattr(home, name, None) for home in homes} - {None}
    return {type_of(kind) for kind in kinds if isinstance(kind, type)}


def types_of(name):
    """What the page says of one of `MODELS`."""
    rows = MODELS[name][0]
    found = set().union(*(own_types(row) | TABLE.get(row, set()) for row in rows))
    assert all(own_types(row) or row in TABLE for row in rows)
    return found


@cache_by_seed
def saved(name):
    """A model with its data, and the file that it is in."""
    fitted = MODELS[name][1]()
    return fitted, io.dumps(fitted.model)


def untrusted(file):
    return set(io.get_untrusted_types(data=file))


def test_the_table_has_no_more_than_that():
    assert set(TABLE) <= set().union(*(names for names, _ in MODELS.values()))


@pytest.mark.parametrize("number", range(20))
def test_a_model_from_a_file_with_other_bytes_predicts_or_is_refused(number):
    """Bytes of an array, or of what says how it is stored."""
    rng = new_rng(number)
    names = [name for name in MODELS if not name.startswith("a path")]
    name = names[rng.integers(len(names))]
    (_, X, _, options), file = saved(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = io.loads(with_other_bytes(rng, file), trusted=sorted(types_of(name)))
        except Exception:
            return  # NumPy and skops say what they like of it.
        with suppress(ValueError, TypeError, MemoryError):
            model.predict(X, **options)


METHODS = "predict", "predict_proba", "decision_function", "entropy"


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_is_what_was_saved_by_the_types_that_the_table_says(name):
    (model, X, _, options), file = saved(name)
    assert untrusted(file) == types_of(name)
    again = io.loads(file, trusted=sorted(types_of(name)))
    if name == "a path":
        assert_same(again.coefs, model.coefs)
        assert_same(again.coef(again.lambdas[-1]), model.coef(model.lambdas[-1]))
        return
    if name == "a path of C":
        for attribute in ("Cs", "coefs", "intercepts", "dual_gaps", "n_nonzeros"):
            assert_same(getattr(again, attribute), getattr(model, attribute))
        return
    assert repr(again) == repr(model)
    methods = [method for method in METHODS if hasattr(model, method)]
    assert "predict" in methods
    for method in methods:
        found, expected = (getattr(own, method)(X, **options) for own in (again, model))
        assert_same(found, expected)


def assert_same(a, b):
    """Equal bit for bit, arrays of arrays as well."""
    if isinstance(a, tuple) or getattr(a, "dtype", "") == "O":
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif hasattr(a, "toarray"):
        np.testing.assert_array_equal(a.toarray(), b.toarray())
    else:
        np.testing.assert_array_equal(a, b)


WARM = re.compile("(BCFWClassifier|SlackRescaledSSVM|CRFClassifier) of")


@pytest.mark.parametrize("name", [*filter(WARM.match, MODELS)])
def test_a_fit_goes_on_after_reading_as_it_would_have(name):
    (model, X, y, _), file = saved(name)
    again = io.loads(file, trusted=sorted(types_of(name)))
    again.fit(X, y)
    assert again.history_["dual_objective"][0] == pytest.approx(
        model.dual_objective_, abs=1e-9
    )
    assert_same(again.coef_, deepcopy(model).fit(X, y).coef_)


# What has no object without arguments, and objects with unusual ones.
OBJECTS = [
    metrics.FBeta(0.5, pos_label=1),
    metrics.LinearLoss({(0, 1): 1.0, (2, 0): 3.0}),
    metrics.LinearLoss([[0, 1, 2], [3, 0, 1], [1, 1, 0]]),
    metrics.MicroF1(default_label=2), metrics.Jaccard("micro"),
    metrics.CohenKappa("linear"), metrics.Recall(at_least=0.6),
    metrics.Recall(at_least={"a": 0.7, "c": 0.2}, per_group=True),
    metrics.Precision(target=0.5, slack=0.1),
    metrics.FalsePositiveRate(at_most=[0.1, 0.2, 0.3]),
    metrics.SelectionRate(target=[0.2, 0.3, 0.5], slack=0.0, group="f"),
    metrics.DemographicParity(bound="ratio"),
    metrics.EqualOpportunity(reference="groups", slack=0.0),
    metrics.Quantification(0.01, target={"a": 0.5, "b": 0.5}),
    metrics.MetricBound(metrics.FBeta(2.0), at_least=0.5),
    metrics.Churn(DummyClassifier(), 0.3),
]  # fmt: skip
KINDS = [
    kind
    for kind in (getattr(metrics, name) for name in metrics.__all__)
    if isinstance(kind, type) and issubclass(kind, ConfusionMetric | Constraint)
]
OBJECTS += [kind() for kind in KINDS if kind not in set(map(type, OBJECTS))]


@pytest.mark.parametrize("thing", OBJECTS, ids=lambda thing: type(thing).__name__)
def test_metrics_and_constraints_come_back(thing):
    file = io.dumps(thing)
    types = untrusted(file)
    assert type_of(type(thing)) in types
    assert types <= set(map(type_of, KINDS))
    again = io.loads(file, trusted=sorted(types))
    assert repr(again) == repr(thing)
    assert type(again) is type(thing)

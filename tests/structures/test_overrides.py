"""What a subclass of a built-in structure defines is called, or refused."""

import numpy as np
import pytest
from _estimators import assert_same_optimum
from _options import placed
from _references import messy_csr
from _seeds import new_rng

from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM
from sklearn_structsvm.structures import (
    BinaryStructure,
    ChainStructure,
    HierarchicalStructure,
    MulticlassStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
    Structure,
    TreeStructure,
)

COMPILED = (
    BinaryStructure, ChainStructure, HierarchicalStructure, MulticlassStructure,
    MultilabelStructure, PairwiseMultilabelStructure, TreeStructure,
)  # fmt: skip


class Alternating(ChainStructure):
    """Chains that never have one label twice in a row, by going through all of them."""

    def labelings(self, x):
        for y in super().labelings(x):
            if (y[1:] != y[:-1]).all():
                yield y

    def _best(self, x, value):
        return max(self.labelings(x), key=value)

    def decode(self, x, w):
        return self._best(x, lambda y: w @ self.joint_feature(x, y))

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return self._best(
            x, lambda y: w @ self.joint_feature(x, y) + lam * self.loss(y_true, y)
        )


def alternating_chains(n=12):
    rng = new_rng()
    y = [(np.arange(T) + rng.integers(2)) % 2 for T in rng.integers(1, 5, size=n)]
    # Features that say nothing: what is learned is what is not restricted.
    return [rng.standard_normal((len(labels), 2)) for labels in y], y


@pytest.mark.parametrize("present", [np.asarray, messy_csr], ids=["dense", "csr"])
def test_a_restricted_decoder_of_a_built_in_structure_is_trained_as_it_is(present):
    X, y = alternating_chains()
    given = [present(x) for x in X]
    model = BCFWClassifier(Alternating(), tol=1e-4, random_state=0).fit(given, y)
    structure, w = model.structure_, model.coef_
    hinges = [
        max(
            structure.loss(t, z)
            + w @ (structure.joint_feature(x, z) - structure.joint_feature(x, t))
            for z in structure.labelings(x)
        )
        for x, t in zip(X, y, strict=True)
    ]
    # C = 1: λ is 1/n.
    objective = w @ w / (2 * len(X)) + np.mean(hinges)
    assert model.objective_ == pytest.approx(objective, abs=1e-9)
    assert -1e-12 < model.dual_gap_ <= 1e-4
    for labels in model.predict(given):
        assert (labels[1:] != labels[:-1]).all()


def test_what_a_class_claims_of_its_decoders_is_not_inherited_by_other_decoders():
    assert ChainStructure.has_constrained_decode
    assert not Alternating.has_constrained_decode
    X, y = alternating_chains()
    model = SlackRescaledSSVM(
        Alternating(), solver_options={"search": "angular"}, random_state=0
    )
    with pytest.raises(ValueError, match="constrained_decode or slack_augmented_decode"):
        model.fit(X, y)

    class Claimed(Alternating):
        has_constrained_decode = True

    class Defined(Alternating):
        def constrained_decode(self, x, y_true, w, lam, alpha, beta, **strict):
            return None

    class Replaced(Defined):
        def loss_augmented_decode(self, x, y_true, w, lam=1.0):
            return y_true

    assert Claimed.has_constrained_decode and Defined.has_constrained_decode
    assert not Replaced.has_constrained_decode
    assert not Replaced.has_slack_augmented_decode
    # Nor is the list of labelings.
    assert Alternating().labelings(np.ones((2, 1))) is not None
    assert Replaced().labelings(np.ones((2, 1))) is None


class Spied:
    """Counts the calls of methods, and leaves their work to the structure."""

    calls = 0

    def loss_augmented_decode(self, *args, **kwargs):
        Spied.calls += 1
        return super().loss_augmented_decode(*args, **kwargs)

    def decode(self, *args, **kwargs):
        Spied.calls += 1
        return super().decode(*args, **kwargs)


def problem(parent):
    rng = new_rng()
    X = rng.standard_normal((8, 3))
    if parent is ChainStructure:
        return parent(), [X[:3], X[3:]], [[0, 1, 1], [1, 0, 0, 1, 1]]
    if parent is TreeStructure:
        return parent(), [(X[:3], [-1, 0, 0]), (X[3:], [1, 2, -1, 2, 2])], [
            [0, 1, 1], [1, 0, 0, 1, 1]
        ]  # fmt: skip
    if parent in (BinaryStructure, MulticlassStructure):
        return parent(), X, np.arange(8) % (2 if parent is BinaryStructure else 3)
    if parent is HierarchicalStructure:
        return parent([(0, 1), (0, 2), (3, 4)]), X, rng.integers(2, size=(8, 3))
    return parent(), X, rng.integers(2, size=(8, 3))


@pytest.mark.thread_unsafe(reason="calls are counted in the class")
@pytest.mark.parametrize("parent", COMPILED)
def test_methods_that_a_mixin_overrides_are_called_and_may_call_those_of_the_structure(
    parent,
):
    structure, X, y = problem(parent)
    spy = type("Spy", (Spied, parent), {})(**structure.get_params())
    options = {"step": "pairwise", "cache": False, "tol": 1e-3, "random_state": 0}
    options["max_iter"] = 10**5
    Spied.calls = 0
    mine = placed(BCFWClassifier)(spy, **options).fit(X, y)
    assert Spied.calls == mine.n_oracle_calls_
    theirs = placed(BCFWClassifier)(structure, **options).fit(X, y)
    assert Spied.calls == mine.n_oracle_calls_
    assert_same_optimum(mine, theirs, len(X))
    mine.coef_ = theirs.coef_
    if hasattr(theirs, "intercept_"):
        mine.intercept_ = theirs.intercept_
    Spied.calls = 0
    predicted = mine.predict(X)
    assert Spied.calls == len(X)
    for found, expected in zip(predicted, theirs.predict(X), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert predicted.shape == theirs.predict(X).shape


class Contrary(MulticlassStructure):
    """Predicts the class of the least score."""

    def decode(self, x, w):
        scores = self.decision_function(np.reshape(x, (1, -1)), w)[0]
        return self.classes_[scores.argmin()]


def test_a_decoder_for_predictions_alone_leaves_training_as_it_is():
    structure, X, y = problem(MulticlassStructure)
    options = {"step": "pairwise", "cache": False, "random_state": 0}
    mine = placed(BCFWClassifier)(Contrary(), **options).fit(X, y)
    theirs = placed(BCFWClassifier)(structure, **options).fit(X, y)
    np.testing.assert_array_equal(mine.coef_, theirs.coef_)
    worst = theirs.decision_function(X).argmin(axis=1)
    np.testing.assert_array_equal(mine.predict(X), worst)


@pytest.mark.parametrize("parent", COMPILED)
@pytest.mark.parametrize(
    ("defined", "missing"),
    [
        (["loss"], "loss_augmented_decode"),
        (["joint_feature"], "loss_augmented_decode and decode"),
        (["joint_feature", "decode"], "loss_augmented_decode"),
        (["joint_feature", "loss_augmented_decode"], "decode"),
    ],
)
def test_a_change_that_compiled_decoders_would_not_see_is_refused(
    parent, defined, missing
):
    methods = dict.fromkeys(defined, lambda self, *args: None)
    message = (
        f"Mine overrides {defined[0]}.* {parent.__name__} does not.* Override {missing} "
    )
    with pytest.raises(TypeError, match=message):
        type("Mine", (parent,), methods)
    with pytest.raises(TypeError, match=message):
        type("Mine", (type("Mixin", (), methods), parent), {})
    # All of it together is a structure of one's own.
    methods |= dict.fromkeys(missing.split(" and "), lambda self, *args: None)
    assert type("Mine", (parent,), methods).make_oracle is Structure.make_oracle


@pytest.mark.parametrize("parent", [ChainStructure, TreeStructure])
def test_potentials_of_ones_own_are_refused_where_training_would_not_see_them(parent):
    with pytest.raises(TypeError, match="Mine overrides potentials"):
        type("Mine", (parent,), {"potentials": lambda self, x, w: None})

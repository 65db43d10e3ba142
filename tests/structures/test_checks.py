"""check_structure: right structures pass, and each broken one of a zoo is caught."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from _wrong_rows import row_of, with_index
from scipy import sparse
from sklearn.base import clone

from sklearn_structsvm.structures import (
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    Structure,
    check_structure,
)
from sklearn_structsvm.structures.constrained import in_angle

COSTS = np.array([1.0, 0.5, 2.0])


class Bits(Structure):
    """Three bits that like to be equal to their neighbors; all are gone through."""

    def __init__(self, costs=COSTS):
        self.costs = costs

    def joint_feature(self, x, y):
        y = np.asarray(y)
        return np.append(y @ x, float((y[1:] == y[:-1]).sum()))

    def loss(self, y_true, y):
        return float(self.costs @ (y != y_true))

    def every(self, x):
        return list(map(np.array, product((0, 1), repeat=3)))

    def margin(self, x, y_true, y, w):
        return w @ (Bits.joint_feature(self, x, y) - Bits.joint_feature(self, x, y_true))

    def decode(self, x, w):
        return max(self.every(x), key=lambda y: w @ self.joint_feature(x, y))

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return max(
            self.every(x),
            key=lambda y: self.margin(x, y_true, y, w) + lam * self.loss(y_true, y),
        )

    def constrained_decode(
        self, x, y_true, w, lam, alpha, beta, strict_alpha=False, strict_beta=True
    ):
        points = [
            (1.0 + self.margin(x, y_true, y, w), self.loss(y_true, y))
            for y in self.every(x)
        ]
        values = [
            h + lam * g
            if in_angle(h, g, alpha, beta, strict_alpha, strict_beta)
            else -np.inf
            for h, g in points
        ]
        return None if max(values) == -np.inf else self.every(x)[np.argmax(values)]

    def slack_augmented_decode(self, x, y_true, w, one=1.0):
        return max(
            self.every(x),
            key=lambda y: self.loss(y_true, y) * (one + self.margin(x, y_true, y, w)),
        )


class Listing(Bits):
    def labelings(self, x):
        return self.every(x)


def data(n=3, seed=0):
    rng = new_rng(seed)
    return list(rng.standard_normal((n, 3, 2))), list(rng.integers(2, size=(n, 3)))


class Taken(Bits):
    """Sparse joint features, and labelings of other kinds and lengths."""

    variable_length = True

    def as_bits(self, y):
        return np.isin(np.arange(3), y).astype(int)

    def every(self, x):
        return [tuple(np.flatnonzero(y).tolist()) for y in super().every(x)]

    def joint_feature(self, x, y):
        return sparse.csr_array(super().joint_feature(x, self.as_bits(y))[np.newaxis])

    def margin(self, x, y_true, y, w):
        return super().margin(x, self.as_bits(y_true), self.as_bits(y), w)

    def decode(self, x, w):
        return max(self.every(x), key=lambda y: self.margin(x, (), y, w))

    def loss(self, y_true, y):
        return super().loss(self.as_bits(y_true), self.as_bits(y))


@pytest.mark.parametrize("structure", [Bits(), Listing(), Taken()])
def test_a_right_structure_passes(structure):
    X, y = data()
    if isinstance(structure, Taken):
        y = [tuple(np.flatnonzero(labels).tolist()) for labels in y]
    assert check_structure(structure, X, y, random_state=new_seed()) is None
    assert not hasattr(structure, "n_weights_")
    fitted = clone(structure).fit(X, y)
    check_structure(fitted, X, y, random_state=new_seed(1), labelings=structure.every)
    if not isinstance(structure, Taken):
        # Labels may be listed in another type.
        check_structure(structure, X, y, labelings=lambda x: product((0, 1), repeat=3))


# ------------------------------------------------------------------- the zoo


def forget_loss(self, x, y_true, w, lam=1.0):
    return self.decode(x, w)


def take_loss_off(self, x, y_true, w, lam=1.0):
    return Bits.loss_augmented_decode(self, x, y_true, w, -lam)


def least(self, x, w):
    return min(self.every(x), key=lambda y: w @ self.joint_feature(x, y))


def least_augmented(self, x, y_true, w, lam=1.0):
    return Bits.loss_augmented_decode(self, x, y_true, -w, -lam)


def bit_by_bit(self, x, w):
    return (x @ w[:2] > 0).astype(int)


def without_the_first(self, x, w):
    return max(self.every(x)[1:], key=lambda y: w @ self.joint_feature(x, y))


def constant_margin(self, x, y_true, w, lam=1.0):
    """As if the loss were added to the score of the truth as well."""
    return max(
        self.every(x),
        key=lambda y: w @ self.joint_feature(x, y) + lam * (y != y_true).any(),
    )


WRONG_DECODERS = {
    "loss forgotten": ({"loss_augmented_decode": forget_loss},
                       "loss_augmented_decode of Broken is not exact.*Is the loss added"),
    "loss of the wrong sign": ({"loss_augmented_decode": take_loss_off},
                               "loss_augmented_decode of Broken is not exact.*lam = "),
    "another loss": ({"loss_augmented_decode": constant_margin},
                     "loss_augmented_decode of Broken is not exact.*lam = "),
    "argmin for argmax": (
        {"decode": least},
        "^decode of Broken is not exact: for example 0, a random w it returns.*None has "
        "less. Is it argmax",
    ),
    "argmin for argmax, with the loss": (
        {"loss_augmented_decode": least_augmented},
        "loss_augmented_decode of Broken is not exact.*lam = 0 it returns.*None has less",
    ),
    "greedy": ({"decode": bit_by_bit}, "^decode of Broken is not exact"),
    "one left out": ({"decode": without_the_first}, "^decode of Broken is not exact"),
}  # fmt: skip


@pytest.mark.parametrize("parent", [Bits, Listing])
@pytest.mark.parametrize(
    ("methods", "message"), WRONG_DECODERS.values(), ids=WRONG_DECODERS
)
def test_a_wrong_decoder_is_caught_with_a_list_and_without(parent, methods, message):
    # As many trials as it takes for each labeling to be the best one in some of them.
    check_broken(methods, ValueError, message, parent, n=8, n_trials=15)


def check_broken(methods, error, message, parent=Listing, n=3, **options):
    broken = type("Broken", (parent,), methods)()
    for seed in range(2):
        X, y = data(n, seed)
        with pytest.raises(error, match=f"(?s){message}"):
            check_structure(broken, X, y, random_state=new_seed(seed), **options)


def constrained_by(change):
    """A constrained_decode that reads some of its arguments otherwise."""

    def constrained_decode(
        self, x, y_true, w, lam, alpha, beta, strict_alpha=False, strict_beta=True
    ):
        asked = {"lam": lam, "alpha": alpha, "beta": beta}
        asked |= {"strict_alpha": strict_alpha, "strict_beta": strict_beta}
        asked |= {k: v(asked) if callable(v) else v for k, v in change.items()}
        return Bits.constrained_decode(self, x, y_true, w, **asked)

    return {"constrained_decode": constrained_decode}


WRONG_ANGLES = {
    "never any": (None, "finds no labeling"),
    "strict_alpha ignored": ({"strict_alpha": False}, "ignores strict_alpha"),
    "strict_beta ignored": ({"strict_beta": True}, "ignores strict_beta"),
    "never strict": (
        {"strict_alpha": False, "strict_beta": False},
        "ignores strict_|g = 0, which is not in the angle",
    ),
    "strictness turned round": (
        {"strict_alpha": lambda asked: not asked["strict_alpha"]},
        "ignores strict_alpha",
    ),
    "alpha ignored": ({"alpha": np.inf}, "strict_alpha|not in the angle"),
    "beta ignored": ({"beta": 0.0}, "strict_beta|not in the angle"),
    "lam ignored": ({"lam": 0.0}, r"h \+ lam · g = .* in the angle has"),
    "rays exchanged": (
        {"alpha": lambda asked: asked["beta"], "beta": lambda asked: asked["alpha"]},
        "strict_|finds no labeling|not in the angle",
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG_ANGLES.values(), ids=WRONG_ANGLES)
@pytest.mark.parametrize("parent", [Bits, Listing])
def test_a_constrained_decode_that_is_not_its_definition_is_caught(
    parent, change, message
):
    message = f"constrained_decode of Broken.*({message})"
    methods = {"constrained_decode": lambda *args, **kwargs: None}
    check_broken(methods if change is None else constrained_by(change),
                 ValueError, message, parent)  # fmt: skip


def test_a_slack_augmented_decode_that_is_not_its_definition_is_caught():
    def largest_loss(self, x, y_true, w, one=1.0):
        return max(self.every(x), key=partial(self.loss, y_true))

    def without_one(self, x, y_true, w, one=1.0):
        return Bits.slack_augmented_decode(self, x, y_true, w, 1.0)

    for method in (largest_loss, without_one):
        check_broken(
            {"slack_augmented_decode": method},
            ValueError,
            "slack_augmented_decode of Broken is not exact: for example .* and one = ",
        )


def joint(change):
    def joint_feature(self, x, y):
        return change(Bits.joint_feature(self, x, y), y)

    return {"joint_feature": joint_feature}


def cut(phi, y):
    result = np.zeros(len(phi), dtype=int)
    result[:] = phi
    return result


WRONG_FEATURES = {
    "integers": (cut, "hold floats, as integers may be truncated.* got dtype int64"),
    "booleans": (lambda phi, y: phi > 0, "hold floats, .* got dtype bool"),
    "complex numbers": (lambda phi, y: phi + 0j, "hold floats, .* got dtype complex128"),
    "numbers of Python": (lambda phi, y: phi.astype(object), "got dtype object"),
    "nothing": (lambda phi, y: None, r"be a vector .* got shape \(\)"),
    "decimals cut off": (lambda phi, y: np.trunc(phi), "decode of Broken is not exact"),
    "another length": (lambda phi, y: np.append(phi, 0.0) if y.all() else phi,
                       r"have shape \([34],\); got shape \([34],\)"),
    "a sparse NaN": (lambda phi, y: row_of(3, [0, 2], [1.0, np.nan if y.all() else 1.0]),
                     "be finite; got nan at 2"),
    "an index out of range": (lambda phi, y: with_index("coo column", 3, 3), "got .*3"),
    "an index twice": (lambda phi, y: row_of(3, [0, 1, 1, 2], [*phi[:2], 0.0, phi[2]]),
                       "have each index once; got the index 1 before 1"),
    "indices out of order": (lambda phi, y: row_of(3, [1, 0, 2], phi[[1, 0, 2]]),
                             "have sorted indices; got the index 1 before 0"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"), WRONG_FEATURES.values(), ids=WRONG_FEATURES
)
def test_a_wrong_joint_feature_is_caught(change, message):
    # The decoders go by the right ones.
    methods = joint(change) | {"decode": lambda self, x, w: Bits().decode(x, w)}
    if "not exact" not in message:
        message = f"^joint_feature of Broken must .*{message} for example \\d"
    with np.errstate(divide="ignore", invalid="ignore"):
        check_broken(methods, ValueError, message)


LOSSES = {
    "not 0 at the truth": (lambda loss: loss + 0.5, "must be 0 where y is y_true; .*0.5"),
    "nothing": (lambda loss: None, "must be a finite .* got None"),
}


@pytest.mark.parametrize(("change", "message"), LOSSES.values(), ids=LOSSES)
def test_a_wrong_loss_is_caught(change, message):
    def loss(self, y_true, y):
        return change(Bits.loss(self, y_true, y))

    check_broken({"loss": loss}, ValueError, f"loss of Broken {message}")


def test_a_loss_that_knows_the_truth_by_its_address_is_caught():
    def loss(self, y_true, y):
        return 0.0 if y is y_true else 1.0 + Bits.loss(self, y_true, y)

    check_broken({"loss": loss}, ValueError, "must be 0 where y is y_true")


def test_arguments_that_are_changed_are_caught():
    def flips(method, argument):
        def changed(self, x, *args, **kwargs):
            target = x if argument == "x" else args[0]
            answer = getattr(Bits, method)(self, np.array(x), *map(np.array, args))
            target[0] = 1 - target[0]
            return answer

        return {method: changed}

    for method, argument in (
        ("joint_feature", "x"),
        ("joint_feature", "y"),
        ("loss_augmented_decode", "y_true"),
        ("decode", "x"),
    ):
        message = f"^{method} of Broken modifies its argument {argument} for example 0"
        check_broken(flips(method, argument), ValueError, message)


def test_errors_of_the_structures_own_methods_say_what_was_asked():
    def decode(self, x, w):
        w[0] = 1.0

    X, y = data()
    with pytest.raises(ValueError, match="read-only") as caught:
        check_structure(type("Broken", (Bits,), {"decode": decode})(), X, y)
    assert caught.value.__notes__ == [
        "check_structure asked decode of Broken about example 0."
    ]


ANSWERS = {
    "too long": (lambda y: np.append(y, 0), r"labeling of shape \(3,\).* shape \(4,\)"),
    "nothing": (lambda y: None, "must be a labeling; got None for example 0"),
    "a set": (set, "must be an array, list, tuple or dict, or hashable"),
    "none of the list": (lambda y: y + 2, "must be among the labelings; got"),
}


@pytest.mark.parametrize(("change", "message"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_is_no_labeling_is_caught(change, message):
    def decode(self, x, w):
        return change(Bits.decode(self, x, w))

    check_broken({"decode": decode}, (ValueError, TypeError), f"decode of.* {message}")


def test_a_labeling_that_is_changed_after_it_was_returned_is_caught():
    same = np.zeros(3, dtype=int)

    def decode(self, x, w):
        same[:] = Bits.decode(self, x, w)
        return same

    message = r"decoder of Broken changes a labeling of example \d that it returned"
    check_broken({"decode": decode}, ValueError, message, Bits, n=8)


def test_an_answer_that_changes_is_caught():
    rng = new_rng()

    def decode(self, x, w):
        # Among those that tie, any one.
        scores = np.array([w @ self.joint_feature(x, y) for y in self.every(x)])
        return self.every(x)[rng.choice(np.flatnonzero(scores == scores.max()))]

    message = r"decode of Broken is not deterministic: for example \d it returns .* then"
    check_broken({"decode": decode}, ValueError, message, n=8)


def test_a_decoder_that_always_finds_the_truth_leaves_nothing_to_compare():
    methods = {
        "decode": lambda self, x, w: np.zeros(3, dtype=int),
        "loss_augmented_decode": lambda self, x, y_true, w, lam=1.0: y_true,
    }
    X, _ = data()
    broken = type("Broken", (Bits,), methods)()
    with pytest.raises(ValueError, match="nothing can be compared.*`labelings`"):
        check_structure(broken, X, [np.zeros(3, dtype=int)] * len(X))
    with pytest.raises(ValueError, match="is not exact"):
        check_structure(
            broken, X, [np.zeros(3, dtype=int)] * len(X), labelings=Bits().every
        )


def test_a_list_without_the_true_labeling_is_caught():
    X, _ = data()
    y = [np.ones(3, dtype=int)] * len(X)
    with pytest.raises(
        ValueError, match="labelings of Bits does not contain the true .* example 0"
    ):
        check_structure(Bits(), X, y, labelings=lambda x: Bits().every(x)[:-1])


def test_parameters_that_are_not_kept_are_caught():
    class Converts(Bits):
        def __init__(self, costs=(1.0, 0.5, 2.0)):
            self.costs = np.array(costs)

    class Forgets(Bits):
        def __init__(self, costs=COSTS):
            pass

    class Spends(Bits):
        def decode(self, x, w):
            self.costs[0] += 1.0
            return super().decode(x, w)

    X, y = data()
    for structure in (Converts(), Forgets()):
        with pytest.raises((TypeError, AttributeError), match="cloned|costs"):
            check_structure(structure, X, y)
    with pytest.raises(ValueError, match="modifies X, y or a parameter|is not exact"):
        check_structure(Spends(COSTS.copy()), X, y)


def test_what_cannot_be_checked_is_refused():
    X, y = data()
    for args, options, words in [
        ((Bits, X, y), {}, "takes a Structure; got type"),
        *(((Bits(), X, none), {}, "^y must be a sequence with one labeling per ex")
          for none in (None, 3, "ab", {0, 1})),
        ((MulticlassStructure(), np.eye(3), [0, 1]), {}, "inconsistent numbers of"),
        ((Bits(), X, y), {"n_trials": "3"}, "n_trials must be an integer; got '3'"),
    ]:  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=words):
            check_structure(*args, **options)


def test_a_fit_that_leaves_no_length_is_caught():
    methods = {"fit": lambda self, X, y: self}
    check_broken(methods, ValueError, "fit of Broken must set n_weights_.* got None")


def test_weights_that_come_back_otherwise_are_caught():
    methods = {"join_weights": lambda self, coef, intercept: coef[::-1]}
    check_broken(methods, ValueError, "join_weights of Broken is not the inverse")


def test_predictions_of_many_that_are_not_those_of_one_are_caught():
    def batch(self, X, w, n_threads=1):
        return [bit_by_bit(self, x, w) for x in X]

    check_broken({"decode_batch": batch}, ValueError, "decode_batch of Broken finds .*")
    methods = {"decode_batch": lambda self, X, w, n_threads=1: []}
    check_broken(methods, ValueError, "decode_batch of Broken returns 0 labelings for 3")


# --------------------------------------------------- oracles that are made in Python


def test_an_oracle_of_another_problem_is_caught():
    X, y = new_rng().standard_normal((6, 3)), np.array([0, 1, 2, 1, 0, 2])

    def with_oracle(make):
        return type("Broken", (MulticlassStructure,), {"make_oracle": make})()

    def cheap(self, X, y):
        return MulticlassStructure().fit(X, y, classes=self.classes_).make_oracle(X, y)

    def shifted(self, X, y):
        return MulticlassStructure.make_oracle(self, X + 1.0, y)

    def other_truths(self, X, y):
        return MulticlassStructure.make_oracle(self, X, np.roll(y, 1))

    def too_few(self, X, y):
        return MulticlassStructure.make_oracle(self, X[1:], y[1:])

    broken = with_oracle(cheap).set_params(label_costs=[[0, 2, 2], [1, 0, 1], [3, 3, 0]])
    with pytest.raises(ValueError, match="of Broken (is not exact|disagrees)"):
        check_structure(broken, X, y)
    with pytest.raises(ValueError, match="of Broken (is not exact|disagrees)"):
        check_structure(with_oracle(shifted), X, y)
    for make, message in (
        (other_truths, "max_oracle of MulticlassOracle of Broken disagrees"),
        (too_few, "make_oracle of Broken must have n_blocks = 6; got 5"),
    ):
        # Right for one example, on which the methods in Python go by it.
        def make_oracle(self, X, y, make=make):
            parent = MulticlassStructure.make_oracle
            return make(self, X, y) if len(y) > 1 else parent(self, X, y)

        with pytest.raises(ValueError, match=message):
            check_structure(with_oracle(make_oracle), X, y)
    with pytest.raises(TypeError, match="must return a BlockOracle; got list"):
        broken = type("Broken", (Bits,), {"make_oracle": lambda self, X, y: []})()
        check_structure(broken, *data())


def test_a_restriction_that_the_list_does_not_know_of_is_named():
    class AtMostOne(MultilabelStructure):
        def decode_batch(self, X, w, n_threads=1):
            scores = self.decision_function(X, w)
            best = scores == scores.max(axis=1, keepdims=True)
            return (best & (scores > 0)).astype(int)

    X, Y = new_rng().standard_normal((6, 3)), np.eye(3, dtype=int)[[0, 1, 2, 0, 1, 2]]
    with pytest.raises(ValueError, match="^decode of AtMostOne is not exact"):
        check_structure(AtMostOne(), X, Y)


def test_a_true_labeling_of_another_type_than_the_listed_is_counted_once():
    """Soft maxima are compared with a mean over all labelings."""
    X, y = [np.zeros((1, 1))], [np.array(["cat"], dtype="<U5")]
    check_structure(ChainStructure().fit(X, y, classes=["cat", "dog", "zebra"]), X, y)

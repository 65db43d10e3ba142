"""check_structure and `complete`: right ones pass, and each broken one is caught."""

from itertools import count, product

import numpy as np
import pytest
from _seeds import new_rng

from sklearn_structsvm.structures import MISSING, Structure, check_structure


class ThreeBits(Structure):
    """Bits that like to be equal to their neighbors. No y tells the middle one."""

    def joint_feature(self, x, y):
        y = np.asarray(y, dtype=float)
        return np.append(y @ x, float((y[1:] == y[:-1]).sum()))

    def loss(self, y_true, y):
        return float(y_true[0] != y[0]) + 2.0 * float(y_true[2] != y[2])

    def labelings(self, x):
        return product((0, 1), repeat=3)

    def best(self, x, w, among, gain=lambda y: 0.0):
        return max(among, key=lambda y: self.joint_feature(x, y) @ w + gain(y))

    def decode(self, x, w):
        return self.best(x, w, self.labelings(x))

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return self.best(x, w, self.labelings(x), lambda y: lam * self.loss(y_true, y))

    def complete(self, x, y, w):
        among = [(y[0], bit, y[-1]) for bit in (0, 1)]
        return among[1] if w is None else self.best(x, w, among)


class Forgets(ThreeBits):
    def complete(self, x, y, w):
        first, *others = super().complete(x, y, w)
        return 1 - first, *others


class IsCareless(ThreeBits):
    def complete(self, x, y, w):
        return super().complete(x, y, w) if w is None else self.decode(x, w)


class TakesTheWorst(ThreeBits):
    def complete(self, x, y, w):
        return super().complete(x, y, None if w is None else -w)


class StaysWithItsGuess(ThreeBits):
    def complete(self, x, y, w):
        return super().complete(x, y, None)


class Alternates(ThreeBits):
    def complete(self, x, y, w):
        self.calls = getattr(self, "calls", None) or count()
        return y[0], next(self.calls) % 2, y[-1]


class Writes(ThreeBits):
    def complete(self, x, y, w):
        found = super().complete(x, y, w)
        if w is not None:
            y[1] = found[1]
        return found


class PricesWhatIsHidden(ThreeBits):
    def loss(self, y_true, y):
        return super().loss(y_true, y) + float(y_true[1] != y[1])


class PricesByWhatIsHidden(ThreeBits):
    def loss(self, y_true, y):
        return super().loss(y_true, y) * (1.0 + y_true[1])


class Raises(ThreeBits):
    def complete(self, x, y, w):
        return super().complete(x, y, None if w is None else w["middle"])


def draw_data(marker=None, n=6, kind=tuple):
    rng = new_rng(0)
    X = list(rng.standard_normal((n, 3, 2)))
    bits = rng.integers(2, size=(n, 2)).tolist()
    if marker is Ellipsis:
        # Pairs of what is known, which no marker tells from all there is.
        return X, list(map(kind, bits))
    return X, [kind([first, marker, last]) for first, last in bits]


@pytest.mark.parametrize("marker", [None, MISSING, {0, 1}, frozenset([0, 1]), ...])
def test_completions_that_are_the_best_pass(marker):
    check_structure(ThreeBits(), *draw_data(marker))


def test_arrays_and_dicts_hold_markers_as_well():
    X, y = draw_data()
    check_structure(ThreeBits(), X, [np.array(own, dtype=object) for own in y])

    class ByName(ThreeBits):
        def complete(self, x, y, w):
            return super().complete(x, (y["first"], y["last"]), w)

    names = "first", "middle", "last"
    check_structure(ByName(), X, [dict(zip(names, own, strict=True)) for own in y])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Forgets, r"complete of Forgets returns .* which does not agree with y"),
        (IsCareless, r"complete of IsCareless returns .* which does not agree with y"),
        (TakesTheWorst, r"complete of TakesTheWorst is not exact: for example \d"),
        (StaysWithItsGuess, r"complete of StaysWithItsGuess is not exact"),
        (Alternates, r"complete of Alternates .*It must be deterministic"),
        (PricesWhatIsHidden, r"which has a loss of 1 beside the completion for w=None"),
        (PricesByWhatIsHidden, r"loss of PricesByWhatIsHidden depends on the hidden"),
    ],
)
def test_broken_completions_are_caught(broken, message):
    with pytest.raises(ValueError, match=message):
        check_structure(broken(), *draw_data())


@pytest.mark.parametrize("broken", [IsCareless, TakesTheWorst])
def test_what_no_marker_tells_is_judged_by_the_loss_and_by_one_another(broken):
    with pytest.raises(ValueError, match=r"has a loss of \d beside|is not exact"):
        check_structure(broken(), *draw_data(...))


def test_what_is_partial_is_not_to_be_changed():
    with pytest.raises(ValueError, match="complete of Writes modifies its argument y"):
        check_structure(Writes(), *draw_data(kind=list))


def test_an_exception_tells_what_was_asked():
    with pytest.raises(IndexError) as caught:
        check_structure(Raises(), *draw_data())
    assert "complete of Raises about example 0" in caught.value.__notes__[0]

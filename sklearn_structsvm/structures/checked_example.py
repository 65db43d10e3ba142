"""One example of a structure under test: its labelings and their values."""

import copy
from itertools import islice

import numpy as np
from scipy import sparse

from sklearn_structsvm._contract.answers import Answer, brief
from sklearn_structsvm._utils.split_matrix import SplitMatrix
from sklearn_structsvm._utils.tolerances import FOREIGN_ROUNDING as RTOL
from sklearn_structsvm.structures._callback import (
    check_outline,
    label_key,
    labeling_key,
)

# If x has more labelings than this, they are not listed.
MAX_LABELINGS = 1000
LAMS = (0.0, 0.25, 1.0, 4.0)
# Types whose values are compared by their repr.
PLAIN = (type(None), bool, int, float, str, bytes)
# The constants of h that slack rescaling may use.
ONES = (1.0, 0.25, 4.0)
# The number of units in the last place by which reordered sums of losses may differ.
ULPS = 16


class CheckedExample:
    """The known labelings of an example, and the answers of its decoders.

    `labelings`: the known labelings, beginning with the true one. `losses`, `norms`:
    their losses, and norms of their joint features. `is_complete`: whether these are
    all labelings from which decoders choose. `listed`: places of the labelings that the
    structure lists, each once. `answers`: (trial, None) -> place of what `decode`
    answered, and (trial, lam) -> that of `loss_augmented_decode`.
    """

    def __init__(self, structure, i, x, truth, method="y"):
        self.structure, self.i, self.x, self.truth = structure, i, x, truth
        self.name = type(structure).__name__
        self.labelings, self.losses, self.norms, self.rows = [], [], [], []
        # What the labelings were when they were returned.
        self.keys = []
        self.places, self.answers = {}, {}
        self.is_complete, self.listed = False, []
        self.n_trials = 0
        self._features, self._points = None, {}
        self.add(truth, method)
        # An equal object need not be identical.
        for loss in (self.losses[0], self._loss(copy.deepcopy(truth))):
            if loss != 0.0:
                raise ValueError(
                    f"loss of {self.name} must be 0 where y is y_true; for example {i}, "
                    f"whose true labeling is {brief(truth)}, it is {loss!r}."
                )

    def list_labelings(self, labelings):
        """Add all labelings, if the structure lists them and there are not too many."""
        found = labelings(self.x)
        if found is not None and not hasattr(found, "__iter__"):
            answer = Answer("labelings", self.structure, self.i)
            raise answer.fault("be iterable, or None", brief(found))
        found = [] if found is None else list(islice(found, MAX_LABELINGS + 1))
        if not found or len(found) > MAX_LABELINGS:
            return
        listed = [self.add(labeling, "labelings") for labeling in found]
        if self._same_as(0, listed) is None:
            raise ValueError(
                f"labelings of {self.name} does not contain the true labeling of example "
                f"{self.i}, {brief(self.truth)}."
            )
        self.is_complete = not self.structure.relaxed
        self.listed = sorted(set(listed))

    def ask(self, method, **arguments):
        """Call a method of the structure, which must not change its arguments."""
        before = picture(arguments)
        try:
            answer = getattr(self.structure, method)(*arguments.values())
        except Exception as error:
            error.add_note(
                f"check_structure asked {method} of {self.name} about example {self.i}."
            )
            raise
        after = picture(arguments)
        for name in arguments:
            if after[name] != before[name]:
                raise ValueError(
                    f"{method} of {self.name} modifies its argument {name} for example "
                    f"{self.i}. It must work on a copy."
                )
        return answer

    def add(self, labeling, method):
        """The place of a labeling returned by `method`, which is checked if it is new."""
        answer = Answer(method, self.structure, self.i)
        key = labeling_key(answer, labeling)
        known = self.places.get(key)
        if known is not None:
            return known
        check_outline(answer, self.structure, labeling, self.truth)
        place = len(self.labelings)
        phi, loss = self._joint_feature(labeling), self._loss(labeling)
        self.labelings.append(labeling)
        self.keys.append(key)
        self.losses.append(loss)
        self.norms.append(float(np.linalg.norm(phi[1])))
        self.rows.append(phi)
        self._features, self._points = None, {}
        if self.is_complete:
            # It may have another type.
            same = self._same_as(place, range(place))
            if same is None:
                raise answer.fault("be among the labelings", brief(labeling))
            place = same
        self.places[key] = place
        return place

    def _same_as(self, place, others):
        """One of `others` that has the loss and the joint feature of `place`, or None."""
        vector = (self.features[[place]] - self.features[[0]]).toarray().ravel()
        return self.find(vector, self.losses[place], others)

    def find(self, vector, loss, places):
        """A place whose joint feature exceeds the true one by `vector`, or None."""
        places = np.asarray(places)
        features, norms = self.features, np.array(self.norms)
        # ||φ - φ(truth) - vector||², without an array of differences.
        with_truth = features @ features[[0]].toarray().ravel()
        with_vector = features @ vector
        squares = norms**2 + norms[0] ** 2 + vector @ vector
        squares -= 2.0 * (with_truth + with_vector - with_vector[0])
        losses = np.array(self.losses)
        same = (squares[places] <= (RTOL * self.size) ** 2) & (
            abs(losses[places] - loss) <= RTOL * losses.max()
        )
        return int(places[same][0]) if same.any() else None

    @property
    def size(self):
        """The tolerance of joint features and of sums of a few of them."""
        return 4.0 * max(self.norms)

    def _joint_feature(self, labeling):
        phi = self.ask("joint_feature", x=self.x, y=labeling)
        answer = self._answer("joint_feature", labeling)
        phi = phi if sparse.issparse(phi) else np.asarray(phi)
        if phi.dtype.kind != "f":
            raise answer.fault(
                "hold floats, as integers may be truncated decimals", f"dtype {phi.dtype}"
            )
        found = answer.vector(phi, self.structure.n_weights_)
        answer.check_sorted(phi)
        return found

    def _loss(self, labeling):
        loss = self.ask("loss", y_true=self.truth, y=labeling)
        return self._answer("loss", labeling).number(loss, 0.0)

    def _answer(self, method, labeling):
        """What a method has returned for a labeling."""
        where = f"{self.i} and the labeling {brief(labeling)}"
        return Answer(method, self.structure, where)

    @property
    def features(self):
        """Joint features of the labelings, a CSR array."""
        if self._features is None:
            indices, values = zip(*self.rows, strict=True)
            starts = np.cumsum([0] + [len(row) for row in indices])
            self._features = sparse.csr_array(
                (np.concatenate(values), np.concatenate(indices), starts),
                shape=(len(indices), self.structure.n_weights_),
            )
        return self._features

    def points(self, w):
        """Scores above that of the true labeling, losses, and tolerance of the scores."""
        key = w.tobytes()
        if key not in self._points:
            scores = self.features @ w
            tol = RTOL * (abs(self.features) @ abs(w)).max()
            self._points[key] = scores - scores[0], np.array(self.losses), tol
        return self._points[key]

    def ask_decoders(self, w):
        """Call both decoders, twice with each question."""
        for lam in (None, *LAMS):
            method, asked = "decode", {"x": self.x, "w": w}
            if lam is not None:
                method = "loss_augmented_decode"
                asked = {"x": self.x, "y_true": self.truth, "w": w, "lam": lam}
            place, again = (self.add(self.ask(method, **asked), method) for _ in range(2))
            if again != place:
                raise ValueError(
                    f"{method} of {self.name} is not deterministic: for example {self.i} "
                    f"it returns {brief(self.labelings[place])}, and for the same "
                    f"arguments then {brief(self.labelings[again])}."
                )
            self.answers[self.n_trials, lam] = place
        self.n_trials += 1

    def check_decoders(self, weights):
        """Compare their answers with all labelings known so far."""
        for (t, lam), place in self.answers.items():
            w = weights[t]
            plain = self.answers[t, 0.0]
            scores, losses, tol = self.points(w)
            values, method, at, hint = scores, "decode", "", ""
            best = plain if self.structure.relaxed else scores.argmax()
            if lam is not None:
                values, tol = scores + lam * losses, tol + RTOL * lam * losses.max()
                best = values.argmax()
                method, at = "loss_augmented_decode", f" and lam = {lam:g}"
            elif self.structure.relaxed and scores[place] > scores[plain] + tol:
                place, best, method, at = (
                    plain, place, "loss_augmented_decode", " and lam = 0",
                )  # fmt: skip
            elif self.structure.relaxed:
                continue
            if values[place] >= values[best] - tol:
                continue
            if lam and place == plain:
                hint = " With lam = 0 it returns the same. Is the loss added?"
            elif values[place] <= values.min() + tol:
                hint = " None has less. Is it argmax that is returned?"
            raise ValueError(
                f"{method} of {self.name} is not exact: for example {self.i}, "
                f"{'a random w' if w.any() else 'w = 0'}{at} it returns "
                f"{brief(self.labelings[place])} of value {values[place]:.6g}, and "
                f"{brief(self.labelings[best])} has {values[best]:.6g}. (Values are "
                "⟨w, joint_feature⟩ + lam · loss, less that of the true labeling.)"
                f"{hint}"
            )

    def check_labelings_kept(self):
        """ValueError if the structure changed a labeling after it had returned it."""
        for labeling, key in zip(self.labelings, self.keys, strict=True):
            if label_key(labeling) != key:
                raise ValueError(
                    f"A decoder of {self.name} changes a labeling of example {self.i} "
                    f"that it returned before, which is now {brief(labeling)}. It must "
                    "return a new one."
                )

    def check_slack_augmented_decode(self, w):
        """Compare its answers with the known labelings."""
        for one in ONES:
            asked = {"x": self.x, "y_true": self.truth, "w": w, "one": one}
            labeling = self.ask("slack_augmented_decode", **asked)
            place = self.add(labeling, "slack_augmented_decode")
            scores, losses, tol = self.points(w)
            products = losses * (one + scores)
            best = products.argmax()
            if products[place] < products[best] - self.product_tol(one, tol, losses):
                raise ValueError(
                    f"slack_augmented_decode of {self.name} is not exact: for example "
                    f"{self.i} and one = {one:g} it returns {brief(labeling)} of value "
                    f"{products[place]:.6g}, and {brief(self.labelings[best])} has "
                    f"{products[best]:.6g}. (Values are loss · (one + score), scores "
                    "⟨w, joint_feature⟩, less that of the true labeling.)"
                )

    def product_tol(self, one, tol, losses):
        """Tolerance of loss · (one + score)."""
        return losses.max() * (RTOL * one + 2.0 * tol)


def check_constrained(example, w, rng, ask, method):
    """Compare a constrained oracle with its definition.

    `ask`: (lam, alpha, beta, strict_alpha, strict_beta) -> score, loss and description
    of the labeling, or None. `method`: description of the operation.
    """
    if not w.any() and not example.structure.relaxed:
        _check_strictness(example, ask, method)
    for _ in range(6):
        scores, losses, _ = example.points(w)
        h = 1.0 + scores
        slopes = losses[h > RTOL] / h[h > RTOL]
        rays = [0.0, 0.3, 2.0, *rng.choice(slopes, size=3)]
        lam, beta, alpha = rng.choice(LAMS), rng.choice(rays), rng.choice([*rays, np.inf])
        strict = [bool(flag) for flag in rng.randint(2, size=2)]
        found = ask(lam, alpha, beta, *strict)
        # The answer may be a new labeling.
        scores, losses, tol = example.points(w)
        roundings = _roundings(RTOL + tol, RTOL * losses.max(), alpha, beta)
        room = _room(1.0 + scores, losses, alpha, beta)
        inside = (room > roundings[:, np.newaxis]).all(axis=0)
        values = np.where(inside, scores + lam * losses, -np.inf)
        best = values.argmax()
        asked = (
            f"{method}, for example {example.i} and lam = {lam:g}, alpha = {alpha:.6g}, "
            f"beta = {beta:.6g}, strict_alpha = {strict[0]}, strict_beta = {strict[1]},"
        )
        if found is None:
            if inside.any():
                raise ValueError(
                    f"{asked} finds no labeling, but {brief(example.labelings[best])} "
                    f"has h = {1.0 + scores[best]:.6g} and g = {losses[best]:.6g}."
                )
            continue
        score, loss, words = found
        room = _room(1.0 + score, loss, alpha, beta)
        is_strict = strict[1] and not example.structure.relaxed
        at = f"{asked} returns {words} with h = {1.0 + score:.6g} and g = {loss:.6g}"
        if (room < -roundings).any() or (is_strict and beta == loss == 0.0):
            raise ValueError(f"{at}, which is not in the angle.")
        if score + lam * loss < values[best] - 2.0 * tol - RTOL * lam * losses.max():
            raise ValueError(
                f"{at}, h + lam · g = {1.0 + score + lam * loss:.6g}, and "
                f"{brief(example.labelings[best])} in the angle has "
                f"{1.0 + values[best]:.6g}."
            )


def _room(h, g, alpha, beta):
    """α h - g and g - β h, which are positive inside the angle."""
    return np.stack([h if alpha == np.inf else alpha * h - g, g - beta * h])


def _roundings(tol_h, tol_g, alpha, beta):
    """The tolerance of these values."""
    above = tol_h if alpha == np.inf else alpha * tol_h + tol_g
    return np.array([above, beta * tol_h + tol_g])


def _check_strictness(example, ask, method):
    """Check at w = 0, where h = 1, that a strict ray excludes the largest loss.

    If the structure sums losses in another order, its ray differs by rounding, so the
    neighboring rays are tried as well.
    """
    g = max(example.losses)
    # Below a power of 2, neighboring numbers are half as far apart as above it.
    ulp = np.spacing(np.nextafter(g, 0.0))
    rays = [g + n * ulp for n in sorted(range(-ULPS, ULPS + 1), key=abs)]

    def loss(*question):
        found = ask(1.0, *question)
        return -1.0 if found is None else found[1]

    def losses_at(name, ray):
        """Without the strictness and with it."""
        if name == "strict_alpha":
            return loss(ray, 0.0, False, True), loss(ray, 0.0, True, True)
        return loss(np.inf, ray, False, False), loss(np.inf, ray, False, True)

    for name in ("strict_alpha", "strict_beta"):
        if g == 0.0:
            break
        asked = []
        for ray in rays:
            asked.append(losses_at(name, ray))
            if asked[-1][0] > asked[-1][1]:
                break
        else:
            # If the largest loss is not found at all, something else is wrong.
            if max(asked)[0] < g * (1.0 - RTOL):
                continue
            raise ValueError(
                f"{method} ignores {name}: for example {example.i} and w = 0, where each "
                f"labeling has h = 1, with {name[7:]} at the largest loss, {g:.6g}, it "
                "does not leave out the labelings of that loss."
            )


def picture(value):
    """The content of a value, to detect later changes."""
    if sparse.issparse(value):
        names = ("data", "indices", "indptr", "row", "col")
        return [picture(getattr(value, name)) for name in names if hasattr(value, name)]
    if isinstance(value, dict):
        return {key: picture(part) for key, part in value.items()}
    if isinstance(value, SplitMatrix):
        value = value.matrices
    if isinstance(value, (list, tuple)):
        return [picture(part) for part in value]
    if isinstance(value, PLAIN):
        return repr(value)
    return label_key(value) if isinstance(value, np.ndarray) else None

"""The oracle that a structure makes, compared with the structure's methods."""

import numpy as np
from scipy.special import logsumexp, softmax

from sklearn_structsvm._contract.answers import brief
from sklearn_structsvm.structures._probe import Probe
from sklearn_structsvm.structures.answers import oracle_of
from sklearn_structsvm.structures.checked_example import (
    LAMS,
    ONES,
    RTOL,
    check_constrained,
)

N_THREADS = 3


def check_oracle(structure, X, y, examples, weights, rng):
    """Compare the result of `make_oracle` with the known labelings.

    `X`, `y` as `make_oracle` takes them. `examples` (list of CheckedExample): one for
    each of X and y. ValueError, TypeError: the message names the operation, the example
    and the values.
    """
    oracle = oracle_of(structure, X, y)
    name = f"{type(oracle).__name__} of {type(structure).__name__}"
    for what in ("max_labels", "n_values"):
        if getattr(oracle, what) < 1:
            raise ValueError(f"{what} of {name} is not set.")
    for block, example in enumerate(examples):
        for w in weights:
            CheckedBlock(oracle, name, block, example, w).check(rng)
    for w in weights:
        if not oracle.thread_safe:
            break
        alone, together = (oracle.decode(w, 1.0, n) for n in (1, N_THREADS))
        if not np.array_equal(alone, together):
            raise ValueError(
                f"{name} claims to be thread_safe, but gives other results with "
                f"{N_THREADS} threads than with one."
            )
    if oracle.has_sums:
        for block, example in enumerate(examples):
            if example.is_complete:
                for w in weights:
                    check_sums(oracle, name, block, example, w)


def check_sums(oracle, name, block, example, w):
    """Compare a log-loss and its gradient with sums over the labelings."""
    scores, _, tol = example.points(w)
    scores = scores[example.listed]
    loss, gradient = oracle.log_loss(np.eye(oracle.n_blocks)[block], w)
    slope, expected = w @ gradient, softmax(scores) @ scores
    for what, found, known in (
        ("log-loss", loss, logsumexp(scores)),
        ("slope of the log-loss along w", slope, expected),
    ):
        if not abs(found - known) <= 2.0 * tol + RTOL:
            raise ValueError(
                f"The {what} by {name} is {found:.6g} for example {example.i}, and the "
                f"sum over its {len(scores)} labelings says {known:.6g}."
            )


class CheckedBlock:
    """The operations of an oracle on one example at weights w."""

    def __init__(self, oracle, name, block, example, w):
        self.oracle, self.name, self.block = oracle, name, block
        self.example, self.w = example, w
        self.probe = Probe(oracle, block, w)
        self.scores, self.losses, self.tol = example.points(w)
        self.loss_tol = RTOL * self.losses.max()
        # The results of max_oracle, by lam.
        self.maxima = {}

    def check(self, rng):
        score, loss = self.probe.evaluate(self.probe.truth())
        self.expect("score of the true labeling", score, 0.0, self.tol)
        self.expect("loss of the true labeling", loss, 0.0, 0.0)
        first, *_, last = (self.check_max_oracle(lam) for lam in LAMS)
        self.check_dual_state(first, last, rng)
        if self.oracle.has_candidates:
            for one in ONES:
                self.check_candidates(one)
        if self.oracle.has_marginals and self.example.is_complete:
            self.check_soft_oracle()
        if self.oracle.has_constrained:
            method = f"constrained_oracle of {self.name}"
            check_constrained(self.example, self.w, rng, self.ask_constrained, method)

    def expect(self, what, found, expected, tol):
        if not abs(found - expected) <= tol:
            raise ValueError(
                f"{what} by {self.name} is {found:.6g} for example {self.example.i}, and "
                f"should be {expected:.6g}."
            )

    def check_max_oracle(self, lam):
        """Check that its value is the largest; returns the labeling."""
        labels, score, loss, bound = self.probe.best(lam)
        value, values = score + lam * loss, self.scores + lam * self.losses
        best = values.argmax()
        if abs(value - values[best]) > 2.0 * self.tol + lam * self.loss_tol:
            known = self.example.labelings[best]
            raise ValueError(
                f"max_oracle of {self.name} disagrees with loss_augmented_decode: for "
                f"example {self.example.i} and lam = {lam:g} it returns {brief(labels)} "
                f"(encoded) of score + lam · loss = {value:.6g}, and {brief(known)} has "
                f"{values[best]:.6g}."
            )
        self.maxima[lam] = value
        if bound < value:
            self.expect("upper_bound", bound, value, 0.0)
        self.check_labeling(labels, score, loss, f"max_oracle at lam = {lam:g}")
        return labels

    def check_labeling(self, labels, score, loss, source):
        """Check that score, loss and joint feature are of one labeling."""
        what = f"of the labels {brief(labels)} from {source}"
        for evaluated in (
            self.probe.evaluate(labels),
            self.probe.evaluate(self.saved_and_restored(labels)),
        ):
            self.expect(f"score {what}", evaluated[0], score, self.tol)
            self.expect(f"loss {what}", evaluated[1], loss, self.loss_tol)
        self.expect(f"loss {what}", self.probe.loss(labels), loss, self.loss_tol)
        vector, norm = self.probe.direction([1.0], [labels])
        self.expect(f"score {what}", score, self.w @ vector, 2.0 * self.tol)
        square = RTOL * self.example.size**2
        self.expect(f"squared norm {what}", norm, vector @ vector, square)
        product = self.probe.product(labels)
        self.expect(f"product with itself {what}", product, norm, square)
        places = range(len(self.losses))
        if self.example.is_complete and self.example.find(vector, loss, places) is None:
            raise ValueError(
                f"{self.name} has a joint feature and a loss {what} that no labeling of "
                f"example {self.example.i} has; the loss is {loss:.6g}."
            )

    def saved_and_restored(self, labels):
        saved = self.oracle.labeling_to_object(self.block, labels)
        return self.oracle.labeling_from_object(self.block, saved)

    def check_dual_state(self, s, v, rng):
        """Check directions of several parts, moves, projections and saved states."""
        probe, before = self.probe, self.oracle.get_blocks()
        other, _ = probe.direction([1.0], [v])
        corner, _ = probe.direction([1.0], [s])
        probe.move(0.5)
        score = 0.5 * self.w @ corner
        self.expect("block_score after a move", probe.block_score(), score, self.tol)
        for scores in probe.scores([s, v, s]):
            for found, feature in zip(scores, (corner, other, corner), strict=True):
                self.expect("score of several", found, self.w @ feature, self.tol)
        # Directions of no labeling, and of three, the second of which has weight zero.
        vector, norm = probe.direction([], [], 2.0)
        gap = np.linalg.norm(vector - corner)
        what = "distance of a direction from the sum of its parts"
        self.expect(what, gap, 0.0, RTOL * self.example.size)
        vector, norm = probe.direction([0.25, 0.0, -2.0], [s, v, v], -1.0)
        gap = np.linalg.norm(vector - (-0.25 * corner - 2.0 * other))
        self.expect(what, gap, 0.0, RTOL * self.example.size)
        square = RTOL * self.example.size**2
        self.expect("squared norm of a direction", norm, vector @ vector, square)
        what = "product of a direction and a labeling"
        for labels, feature in ((s, corner), (v, other)):
            self.expect(what, probe.product(labels), vector @ feature, square)
        old, goal = rng.standard_normal((2, len(self.w)))
        w, limit = old.copy(), np.full(len(old), 0.5)
        probe.project(goal, -limit, limit, w)
        clipped = np.clip(goal, -0.5, 0.5)
        wrong = (w != clipped) & ((vector != 0.0) | (w != old))
        self.expect("number of wrong coordinates of project", wrong.sum(), 0, 0)
        w = old.copy()
        probe.shrink(goal, 0.5, w)
        wrong = (w != goal - clipped) & ((vector != 0.0) | (w != old))
        self.expect("number of wrong coordinates of shrink", wrong.sum(), 0, 0)
        self.oracle.scale_blocks(0.5)
        score *= 0.5
        self.expect("block_score once halved", probe.block_score(), score, self.tol)
        self.oracle.set_blocks(before)
        self.expect("block_score once restored", probe.block_score(), 0.0, self.tol)

    def check_soft_oracle(self):
        """Compare with the probabilities of all labelings, for large and small w."""
        scores, losses = (of[self.example.listed] for of in (self.scores, self.losses))
        values = scores + losses
        for share in (1.0, 0.01):
            temperature = share * (np.ptp(values) or 1.0)
            P = np.exp((values - values.max()) / temperature)
            soft = values.max() + temperature * np.log(P.mean())
            P /= P.sum()
            found = self.probe.soft(temperature)
            expected = soft, P @ scores, P @ losses
            # The rounding of the logarithms does not depend on the scores.
            tol = (self.tol + self.loss_tol) / share + RTOL * temperature
            words = ("soft maximum", "mean score", "mean loss")
            for what, one, other in zip(words, found, expected, strict=True):
                self.expect(f"{what} of soft_oracle", one, other, tol)

    def check_candidates(self, one):
        """Check that one of them has the largest product, and each is a labeling."""
        found = self.probe.candidates(one)
        for labels, score, loss in found:
            self.check_candidate(labels, score, loss)
        products = self.losses * (one + self.scores)
        best = products.argmax()
        largest = max((g * (one + f) for _, f, g in found), default=0.0)
        tol = self.example.product_tol(one, self.tol, self.losses)
        if max(largest, 0.0) < products[best] - tol:
            raise ValueError(
                f"candidates of {self.name} lack the best labeling: for example "
                f"{self.example.i} and one = {one:g} the largest loss · (one + score) "
                f"among them is {largest:.6g}, and "
                f"{brief(self.example.labelings[best])} has {products[best]:.6g}."
            )

    def check_candidate(self, labels, score, loss):
        for lam, maximum in self.maxima.items():
            value = score + lam * loss
            if value > maximum + 2.0 * self.tol + lam * self.loss_tol:
                raise ValueError(
                    f"candidates of {self.name} are not those that max_oracle chooses "
                    f"from: for example {self.example.i} and lam = {lam:g} one of them, "
                    f"{brief(labels)} (encoded), has score + lam · loss {value:.6g}, and "
                    f"max_oracle finds {maximum:.6g}. A class that restricts max_oracle "
                    "must restrict candidates as well, or not claim has_candidates."
                )
        self.check_labeling(labels, score, loss, "candidates")

    def ask_constrained(self, *question):
        """The question as `check_constrained` asks it."""
        found = self.probe.constrained(*question)
        if found is None:
            return None
        labels, score, loss = found
        self.check_labeling(labels, score, loss, "constrained_oracle")
        return score, loss, f"encoded labels {brief(labels)}"

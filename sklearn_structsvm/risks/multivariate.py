"""Hinges of losses of the whole sample: F-measure, precision at k, area under the ROC.

A labeling of all rows at once is one output of a structural hinge (Joachims 2005). Its
loss is no sum over rows, but a function of few counts; among the labelings of the same
counts the most violating one takes negatives from the top of the scores and positives
from the bottom, so that two sorts find the maximum over all 2^n of them.
"""

from numbers import Integral

import numpy as np

from sklearn_structsvm._contract.risk import TIE_RTOL, Risk
from sklearn_structsvm._utils.labels import check_codes
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.risks._tables import best_table

# Weights that were normalized and multiplied by their sum again are whole up to this.
WHOLE = 1e-9

# Rows that stand for so many are refused: each unit takes memory.
MAX_UNITS = 2**28

# A line search ends where the value that it finds is above what it knows to be a lower
# bound by so little, relative to the sums that they are made of; or after so many trials,
# of which each third one halves the bracket where the others did not.
ROUNDING = 4.0 * np.finfo(np.float64).eps
MAX_TRIALS = 200


class SampleHinge(Risk):
    """Base of the losses of the whole sample, for two classes and one score per row.

    A subclass says in `_plane` which labeling violates most.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Encoded: 1 is the positive class, 0 the negative one. Both must have weight.
    sample_weight : array-like of shape (n_samples,) or None
    bias : float
    n_threads : int
        Of the products with X.
    """

    def __init__(self, X, y, sample_weight=None, *, bias=0.0, n_threads=1):
        super().__init__(X, 1, sample_weight, bias=bias, n_threads=n_threads)
        self.bias = bias
        self.truth = check_codes(y, self.n_samples, 2)
        used = self.weights > 0.0
        self.positives = np.flatnonzero(used & (self.truth == 1))
        self.negatives = np.flatnonzero(used & (self.truth == 0))
        for code, rows in ((1, self.positives), (0, self.negatives)):
            if len(rows) == 0:
                raise ValueError(
                    "A multivariate loss needs rows of both classes with positive "
                    f"weight; y has none of class {code}."
                )

    def _plane(self, z, along, rtol, B):
        """Fill the n entries of B, and return the loss of the labeling."""
        raise NotImplementedError

    def plane(self, Z, along=None, rtol=TIE_RTOL, out=None):
        """The plane of a labeling that violates most, as for every `Risk`.

        Scores are tied relative to the largest one, labelings to their sums of scores.
        """
        B = np.empty((self.n_samples, 1)) if out is None else out
        along = None if along is None else np.ravel(along)
        B[:, 0] = 0.0
        return B, float(self._plane(np.ravel(Z), along, rtol, B[:, 0]))

    def value(self, Z):
        B, offset = self.plane(Z)
        return offset + self.dot(B, Z)

    def sample_losses(self, Z):
        """A loss of the whole sample is no sum over rows: this always raises.

        Raises
        ------
        NotImplementedError
        """
        raise NotImplementedError(
            f"{type(self).__name__} is a loss of the whole sample: no row has its own."
        )

    def dual_form(self):
        raise TypeError(
            f"{type(self).__name__} is a maximum over the labelings of the whole sample, "
            "which cannot be listed for each row."
        )

    def line_search(self, Z, along, wp, pp, lam, largest=np.inf, start=1.0):
        """The step that minimizes λ/2 ||w + η d||² + R(w + η d), to rounding.

        On the line R is convex and made of as many pieces as the order of the scores
        changes, up to the number of pairs: they are not listed. Each trial asks for the
        plane at a step. The higher of the lines at both ends of the bracket, with the
        quadratic, bounds the function from below; where a trial is as low as the least
        of that, it is the minimum.

        Parameters
        ----------
        Z, along : ndarray of shape (n_samples, 1)
            Scores of w and of d.
        wp, pp : float
            ⟨w, d⟩ and ⟨d, d⟩.
        lam : float
            λ >= 0.
        largest : float
            No step is longer.
        start : float
            A step to try first.

        Returns
        -------
        float
            η >= 0; `largest` where the function falls up to there.
        """
        if not largest >= 0.0:
            raise ValueError(f"largest must be >= 0; got {largest}.")
        if not 0.0 < start < np.inf:
            raise ValueError(f"start must be positive and finite; got {start}.")
        return _LineSearch(self, Z, along, lam * wp, lam * pp).run(start, largest)


class _LineSearch:
    """φ(η) = slope η + curvature/2 η² + R(Z + η D), R known by its lines."""

    def __init__(self, risk, Z, along, slope, curvature):
        self.risk, self.Z, self.along = risk, Z, along
        self.slope, self.curvature = slope, curvature
        self.scores, self.B = np.empty_like(Z), np.empty_like(Z)

    def look(self, step):
        """(step, height, slope, size): R(η) >= height + slope η, equal at the step.

        At the start it is the steepest one; in a bracket any will do, and takes less.
        """
        along = self.along if step == 0.0 else None
        scores = self.risk.moved(self.Z, self.along, step, out=self.scores)
        B, offset = self.risk.plane(scores, along, out=self.B)
        product = self.risk.dot(B, self.Z)
        # What the sums are made of, whose rounding is in them.
        parts = np.abs(self.Z[:, 0]) + step * np.abs(self.along[:, 0])
        size = abs(offset) + float(np.abs(B[:, 0]) @ parts)
        return step, offset + product, self.risk.dot(B, self.along), size

    def rise(self, line):
        """φ' at the line's step."""
        return self.slope + self.curvature * line[0] + line[2]

    def height(self, line, step):
        """The quadratic with this line."""
        return line[1] + step * (line[2] + self.slope + 0.5 * self.curvature * step)

    def bottom(self, line):
        """Where the quadratic with this line is least."""
        falls = -(self.slope + line[2])
        if self.curvature > 0.0:
            return max(falls / self.curvature, 0.0)
        return np.inf if falls > 0.0 else 0.0

    def run(self, start, largest):
        low = self.look(0.0)
        if self.rise(low) >= 0.0:
            return 0.0
        # Beyond the bottom of a line that falls, R does not fall faster.
        trial, high = min(start, self.bottom(low), largest), None
        while True:
            line = self.look(trial)
            if self.rise(line) >= 0.0:
                high = line
                break
            if trial >= min(self.bottom(low), largest):
                return trial
            low = line
            trial = min(2.0 * trial, self.bottom(low), largest)
            if trial <= low[0]:
                return low[0]
        return self.narrow(low, high)

    def narrow(self, low, high):
        before = np.inf
        for count in range(MAX_TRIALS):
            trial = cross = self.crossing(low, high)
            least = max(self.height(line, cross) for line in (low, high))
            width = high[0] - low[0]
            if count % 3 == 2:
                if width > 0.5 * before:
                    trial = low[0] + 0.5 * width
                before = width
            elif count % 3 == 1:
                # Where R is nearly smooth, the secant of φ' is much nearer than lines.
                fall = -self.rise(low)
                trial = low[0] + width * fall / (fall + self.rise(high))
            line = self.look(trial)
            if self.height(line, trial) <= least + ROUNDING * line[3]:
                break
            if not low[0] < trial < high[0]:
                break
            low, high = (low, line) if self.rise(line) >= 0.0 else (line, high)
        return trial

    def crossing(self, low, high):
        """Where the higher of the two lines, with the quadratic, is least."""
        if not high[2] > low[2]:
            step = self.bottom(low)
        else:
            # Distances from `low`, which are small where the bracket is.
            gap = low[1] - high[1] + (low[2] - high[2]) * low[0]
            cross = low[0] + gap / (high[2] - low[2])
            # Falls along `low` until it rises, or along `high`; else to where they cross.
            step = min(max(self.bottom(high), cross), self.bottom(low))
        return min(max(step, low[0]), high[0])


class _CountedHinge(SampleHinge):
    """A loss of counts: rows stand for whole numbers of rows.

    With other weights the labeling of most violation would be a knapsack problem.
    """

    def __init__(self, X, y, sample_weight=None, *, bias=0.0, n_threads=1):
        super().__init__(X, y, sample_weight, bias=bias, n_threads=n_threads)
        weights = check_weights(sample_weight, self.n_samples)
        units = np.rint(weights)
        bad = np.flatnonzero(np.abs(weights - units) > WHOLE * np.maximum(weights, 1.0))
        if len(bad) and np.ptp(weights) > 0.0:
            raise ValueError(
                "sample_weight must hold integers for a loss of the contingency table, "
                "because a weight is the number of rows that a row stands for; got "
                f"{weights[bad[0]]} for sample {bad[0]}."
            )
        units = np.ones_like(units) if len(bad) else units
        if units.sum() > MAX_UNITS:
            raise ValueError(
                f"sample_weight sums to {units.sum():.3g} rows, but a loss of the "
                f"contingency table supports at most {MAX_UNITS:.3g}. Divide the "
                "weights."
            )
        self.units = units.astype(np.int64)
        self.all_single = bool((units <= 1).all())
        self.n_positive = int(self.units[self.positives].sum())
        self.n_negative = int(self.units[self.negatives].sum())

    def _sorted(self, rows, z, along, rtol, sign):
        """Rows by ascending sign · z, and what their units are and rise by, each."""
        keys = sign * z[rows]
        rises = None if along is None else sign * along[rows]
        # Where scores are tied, those that fall fastest first: a missed positive takes
        # its score away, and a false one, of the other sign, brings it.
        rows = rows[_ascending(keys, rises, rtol)]
        steps = -sign * z[rows]
        slopes = None if along is None else -sign * along[rows]
        if not self.all_single:
            units = self.units[rows]
            steps = np.repeat(steps, units)
            slopes = None if slopes is None else np.repeat(slopes, units)
        return rows, steps, slopes

    def _fill(self, B, rows, count, value):
        """`value` for each of the first `count` units of these rows, 0 for the others."""
        if self.all_single:
            B[rows[:count]] = value
            B[rows[count:]] = 0.0
            return
        units = self.units[rows]
        taken = np.clip(count - (np.cumsum(units) - units), 0, units)
        B[rows] = value * taken


class ConfusionHinge(_CountedHinge):
    """The hinge of a loss ψ of the confusion table that is a ratio, as 1 - F is.

    R(w) = max over labelings y' in {0, 1}ⁿ of ψ(y, y') + σ Σ_i c_i (y'_i - y_i) ⟨w, x_i⟩

    with c_i the class weight. σ is what the costlier first mistake adds to ψ, by its
    derivative where all labels are right, so that this mistake asks for a margin of 1:
    for the error rate σ = 1/n, and R is the mean of max(0, 1 - y ⟨w, x⟩), exactly; for F1
    with P positives σ = 1/(2P). R is nowhere less than ψ of the labels ⟨w, x_i⟩ > 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Encoded as 0 and 1.
    metric : ConfusionMetric
        That was resolved to two classes, whose `ratio` is not None, and concave in the
        number of one kind of mistakes where that of the other is given.
    sample_weight : array-like of shape (n_samples,) or None
        Whole numbers: how many rows a row stands for. Or all the same.
    class_weight : array-like of shape (2,) or None
        Weights of the counts of each class; positive.
    bias : float
    n_threads : int

    Raises
    ------
    ValueError
        Where the metric is no such ratio.

    References
    ----------
    Joachims: A support vector method for multivariate performance measures. ICML 2005,
    Algorithm 2, here without the loop over all tables. Teo, Vishwanathan, Smola, Le:
    Bundle methods for regularized risk minimization. JMLR 11, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.metrics import FBeta
    >>> from sklearn_structsvm.risks import ConfusionHinge
    >>> X, y = np.array([[2.0], [1.0], [-1.0]]), [1, 0, 0]
    >>> risk = ConfusionHinge(X, y, FBeta().resolve([0, 1]))
    >>> risk.value(risk.scores(np.zeros(1)))
    1.0
    >>> B, offset = risk.plane(risk.scores(np.array([2.0])))
    >>> B.ravel().tolist(), round(offset, 3)
    ([0.0, 0.5, 0.0], 0.333)
    """

    def __init__(
        self,
        X,
        y,
        metric,
        sample_weight=None,
        *,
        class_weight=None,
        bias=0.0,
        n_threads=1,
    ):
        super().__init__(X, y, sample_weight, bias=bias, n_threads=n_threads)
        self.metric = metric
        shares = np.ones(2) if class_weight is None else np.array(class_weight, float)
        if shares.shape != (2,) or not ((shares > 0.0) & np.isfinite(shares)).all():
            raise ValueError(
                f"class_weight must hold two positive numbers; got {class_weight!r}."
            )
        totals = shares * [self.n_negative, self.n_positive]
        self.num, self.den = self._count_terms(shares / totals.sum(), totals)
        # ψ = N / D with N = 0 where all is right.
        first = self.num[1:] / self.den[0]
        self.scale = float((first / shares[::-1]).max())
        if not self.scale > 0.0:
            self._refuse("costs no mistake")
        self.false_share, self.missed_share = self.scale * shares
        # f is concave in i for every o, by the sign of its second derivative, which is
        # linear in o.
        self.outer = self._outer_count()
        if self.outer is None:
            self._refuse("is not concave in the number of mistakes of one kind")

    def _count_terms(self, unit, totals):
        """Coefficients of ψ = N / D in 1, missed positives and false ones."""
        ratio = self.metric.ratio(totals / totals.sum())
        if ratio is None:
            self._refuse("is no ratio of linear functions of the confusion matrix")
        sums = []
        for A in ratio:
            A = np.asarray(A, dtype=np.float64)
            at_truth = A[0, 0] * unit[0] * self.n_negative
            at_truth += A[1, 1] * unit[1] * self.n_positive
            missed = (A[1, 0] - A[1, 1]) * unit[1]
            false = (A[0, 1] - A[0, 0]) * unit[0]
            sums.append(np.array([at_truth, missed, false]))
        num, den = sums
        P, N = self.n_positive, self.n_negative
        corners = np.array([[1, 0, 0], [1, P, 0], [1, 0, N], [1, P, N]])
        size = float(np.abs(num) @ corners[3])
        if abs(num[0]) > WHOLE * size or (corners @ num < -WHOLE * size).any():
            self._refuse("is not zero where all labels are right, or negative elsewhere")
        num[0] = 0.0
        if not (corners @ den > WHOLE * np.abs(den).max()).all():
            self._refuse("divides by zero for some labelings")
        return num, den

    def _outer_count(self):
        """1 where ψ is concave in the false positives (place 2), 2 in the missed."""
        for outer, size in ((1, self.n_positive), (2, self.n_negative)):
            inner = 3 - outer
            ends = np.array([0.0, size])
            N = self.num[0] + self.num[outer] * ends
            D = self.den[0] + self.den[outer] * ends
            # f'' has the sign of -d (n D - d N), for the inner slopes n and d.
            n, d = self.num[inner], self.den[inner]
            bend = d * (n * D - d * N)
            if (bend >= -WHOLE * np.abs(d) * (np.abs(n * D) + np.abs(d * N))).all():
                return outer
        return None

    def _refuse(self, why):
        raise ValueError(
            f"{self.metric!r} {why}, so there is no fast max-oracle for training. Use "
            "ComplexMetricClassifier."
        )

    def _plane(self, z, along, rtol, B):
        sides = []
        for rows, sign, share in (
            (self.positives, 1.0, self.missed_share),
            (self.negatives, -1.0, self.false_share),
        ):
            rows, steps, slopes = self._sorted(rows, z, along, rtol, sign)
            steps = share * steps
            slopes = None if slopes is None else share * slopes
            sides.append((rows, steps, _sums(steps), slopes))
        outer, inner = sides if self.outer == 1 else sides[::-1]
        order = [0, self.outer, 3 - self.outer]
        ties = ()
        if along is not None:
            ties = _sums(outer[3]), _sums(inner[3]), rtol
        o, i = best_table(
            outer[2],
            inner[2],
            np.append(inner[1], 0.0),
            self.num[order],
            self.den[order],
            *ties,
        )
        missed, false = (o, i) if self.outer == 1 else (i, o)
        self._fill(B, sides[0][0], missed, -self.missed_share)
        self._fill(B, sides[1][0], false, self.false_share)
        loss = np.array([1.0, missed, false])
        return (self.num @ loss) / (self.den @ loss)


class _BalancedHinge(SampleHinge):
    """Base: a common shift of the scores changes nothing, and an intercept is 0."""

    def above(self, scores):
        """How much of each row's weight a threshold is to leave above it.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        raise NotImplementedError

    def gradient(self, B, out=None):
        out = super().gradient(B, out)
        if self.bias != 0.0:
            # Rounding, of a sum that is zero.
            out[-1] = 0.0
        return out


class TopKHinge(_BalancedHinge, _CountedHinge):
    """The hinge of the mistakes among the k rows of the highest scores.

    A labeling has k positives. Of its false positives F and missed ones M, e less than
    are needed are avoidable, where e = min(|F|, |M|), and ::

        R(w) = s max over labelings of e (1 + mean_F ⟨w, x⟩ - mean_M ⟨w, x⟩)

    with s = 1/k for precision at k, 1/P for recall at k. For k = P, where the two and
    F1 are the same, it is the structural hinge of the precision/recall break-even point
    [1]_. For k < P that would charge the positives for which there is no room among the
    k, and be unbounded below; with the means instead of sums it is nowhere negative,
    nor below the loss of the k rows of the highest scores [2]_. For k > P the same is
    done with the false positives that k rows cannot be without.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Encoded as 0 and 1.
    k : int or None
        At most the number of rows; None for P, that of the positives.
    sample_weight : array-like of shape (n_samples,) or None
        Whole numbers: how many rows a row stands for. Or all the same.
    recall : bool
        Count mistakes as shares of the positives, and not of the k rows.
    bias : float
        A constant feature; its weight is left at 0.
    n_threads : int

    References
    ----------
    .. [1] Joachims, "A support vector method for multivariate performance measures",
       ICML 2005.
    .. [2] Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the
       top", ICML 2015 (there for k <= P).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.risks import TopKHinge
    >>> X, y = np.array([[2.0], [1.0], [-1.0], [-2.0]]), [0, 1, 1, 0]
    >>> risk = TopKHinge(X, y, k=1)
    >>> risk.value(X)  # 1 + 2 - (1 - 1) / 2
    3.0
    """

    def __init__(
        self, X, y, k=None, sample_weight=None, *, recall=False, bias=0.0, n_threads=1
    ):
        super().__init__(X, y, sample_weight, bias=bias, n_threads=n_threads)
        P, N = self.n_positive, self.n_negative
        self.k = P if k is None else k
        if not (isinstance(self.k, Integral) and 1 <= self.k <= P + N):
            raise ValueError(f"k must be one of 1, ..., {P + N}, the rows; got {k!r}.")
        self.share = 1.0 / (P if recall else self.k)
        hits = min(self.k, P)
        # 0, where nothing that can be avoided is wrong, and every number up to the most.
        e = np.arange(min(hits, N - self.k + hits) + 1)
        self.avoidable = e
        self.missed, self.false = P - hits + e, self.k - hits + e

    def _plane(self, z, along, rtol, B):
        missed, missed_steps, missed_slopes = self._sorted(
            self.positives, z, along, rtol, 1.0
        )
        false, false_steps, false_slopes = self._sorted(
            self.negatives, z, along, rtol, -1.0
        )
        e, sums = self.avoidable, self._sums_of_means(missed_steps, false_steps)
        values = e + sums
        best = int(values.argmax())
        if along is not None:
            tied = values >= values[best] - rtol * (e[best] + abs(sums[best]) + 1.0)
            slopes = self._sums_of_means(missed_slopes, false_slopes)
            best = int(np.where(tied, slopes, -np.inf).argmax())
        e, m, b = e[best], self.missed[best], self.false[best]
        self._fill(B, missed, m, -self.share * e / max(m, 1))
        self._fill(B, false, b, self.share * e / max(b, 1))
        return self.share * e

    def above(self, scores):
        rows = np.flatnonzero(self.units)
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        taken = np.zeros(self.n_samples)
        self._fill(taken, rows, self.k, 1.0)
        return taken * self.weights / np.maximum(self.units, 1)

    def _sums_of_means(self, missed, false):
        """e times the means of the missed units and of the false ones."""
        means = _sums(missed)[self.missed] / np.maximum(self.missed, 1)
        means += _sums(false)[self.false] / np.maximum(self.false, 1)
        return self.avoidable * means


class RocAucHinge(_BalancedHinge):
    """The hinge of the area above the ROC curve: of the pairs in the wrong order.

    R(w) = Σ_ij s_i s_j max(0, 1 - ⟨w, x_i - x_j⟩) / Σ_ij s_i s_j

    over positives i and negatives j. That is the maximum over all sets of swapped pairs,
    and a sort finds it in O(n log n). It is nowhere below 1 - AUC of the scores.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Encoded as 0 and 1.
    sample_weight : array-like of shape (n_samples,) or None
        Any: a pair weighs the product.
    bias : float
        A constant feature; its weight is left at 0.
    n_threads : int

    References
    ----------
    Joachims: A support vector method for multivariate performance measures. ICML 2005,
    section 3.4 and Algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.risks import RocAucHinge
    >>> X = np.array([[2.0], [0.0], [1.5]])
    >>> risk = RocAucHinge(X, [1, 0, 0])
    >>> risk.value(X)  # of 2 - 1.5, half as much as 1
    0.25
    """

    def __init__(self, X, y, sample_weight=None, *, bias=0.0, n_threads=1):
        super().__init__(X, y, sample_weight, bias=bias, n_threads=n_threads)
        raw = check_weights(sample_weight, self.n_samples)
        used = np.concatenate([self.positives, self.negatives])
        self.rows = used
        self.is_positive = np.arange(len(used)) < len(self.positives)
        self.raw = raw[used] / raw.max()
        totals = [self.raw[side].sum() for side in (self.is_positive, ~self.is_positive)]
        self.pair_share = 1.0 / (totals[0] * totals[1])

    def above(self, scores):
        return self.weights * (self.truth == 1)

    def _plane(self, z, along, rtol, B):
        margins = z[self.rows] - self.is_positive
        rises = None if along is None else along[self.rows]
        order = _ascending(margins, rises, rtol)
        raw, is_positive = self.raw[order], self.is_positive[order]
        # A pair is violated where its negative comes after its positive.
        positive = np.cumsum(np.where(is_positive, raw, 0.0))
        negative = np.cumsum(np.where(is_positive, 0.0, raw)[::-1])[::-1]
        shares = self.pair_share * raw
        B[self.rows[order]] = np.where(is_positive, -shares * negative, shares * positive)
        return float(shares[is_positive] @ negative[is_positive])


def _ascending(keys, rises, rtol):
    """Sort order of the keys; ties within rtol are broken by their slopes."""
    order = np.argsort(keys)
    if rises is None or len(order) < 2:
        return order
    ordered = keys[order]
    tol = rtol * (1.0 + max(-ordered[0], ordered[-1]))
    starts = np.diff(ordered) > tol
    if starts.all():
        return order
    run = np.concatenate([[0], np.cumsum(starts)])
    tied = np.flatnonzero(~np.append(starts, True) | ~np.append(True, starts))
    some = order[tied]
    order[tied] = some[np.lexsort((rises[some], run[tied]))]
    return order


def _sums(steps):
    """0, and the sums of the first 1, 2, ... steps."""
    return np.concatenate([[0.0], np.cumsum(steps)])

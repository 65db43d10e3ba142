"""Hinges of losses of the whole sample: F-measure, precision at k, area under the ROC.

A labeling of all rows at once is one output of a structural hinge (Joachims 2005). Its
loss is not a sum over rows, but a function of a few counts. Among labelings with the same
counts, the most violating one takes the negatives with the highest scores and the
positives with the lowest. So two sorts find the maximum over all 2^n labelings.
"""

from numbers import Integral

import numpy as np

from sklearn_structsvm._utils.tolerances import SAME
from sklearn_structsvm._utils.weights import check_weights
from sklearn_structsvm.risks._tables import best_table
from sklearn_structsvm.risks.sample_hinge import (
    BalancedHinge,
    CountedHinge,
    ascending,
    partial_sums,
)


class ConfusionHinge(CountedHinge):
    """The hinge of a loss ψ that is a ratio of confusion counts, such as 1 - F.

    R(w) = max over labelings y' in {0, 1}ⁿ of ψ(y, y') + σ Σ_i c_i (y'_i - y_i) ⟨w, x_i⟩

    with c_i the class weight. σ is the increase of ψ from the costlier first mistake, by
    its derivative at the correct labels. So this mistake requires a margin of 1. For the
    error rate, σ = 1/n, and R is exactly the mean of max(0, 1 - y ⟨w, x⟩). For F1 with P
    positives, σ = 1/(2P). R is an upper bound of ψ for the labels ⟨w, x_i⟩ > 0.

    `X`, `bias`, `n_threads` as for `Risk`. `y` (n_samples,): encoded as 0 and 1.
    `metric`: a metric resolved to two classes whose `ratio` is not None, and which is
    concave in the number of one kind of mistake for a given number of the other.
    `sample_weight` (n_samples,) or None: integers (the number of rows that each
    represents), or equal weights. `class_weight` (2,) or None: weights of the counts of
    each class; positive. ValueError if the metric is not such a ratio.

    Joachims: A support vector method for multivariate performance measures. ICML 2005,
    Algorithm 2, here without the loop over all tables. Teo, Vishwanathan, Smola, Le:
    Bundle methods for regularized risk minimization. JMLR 11, 2010.
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
        # ψ = N / D, with N = 0 if all labels are correct.
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
        if abs(num[0]) > SAME * size or (corners @ num < -SAME * size).any():
            self._refuse("is not zero where all labels are right, or negative elsewhere")
        num[0] = 0.0
        if not (corners @ den > SAME * np.abs(den).max()).all():
            self._refuse("divides by zero for some labelings")
        return num, den

    def _outer_count(self):
        """1 if ψ is concave in the false positives (place 2), 2 if in the missed ones."""
        for outer, size in ((1, self.n_positive), (2, self.n_negative)):
            inner = 3 - outer
            ends = np.array([0.0, size])
            N = self.num[0] + self.num[outer] * ends
            D = self.den[0] + self.den[outer] * ends
            # f'' has the sign of -d (n D - d N), for the inner slopes n and d.
            n, d = self.num[inner], self.den[inner]
            bend = d * (n * D - d * N)
            if (bend >= -SAME * np.abs(d) * (np.abs(n * D) + np.abs(d * N))).all():
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
            sides.append((rows, steps, partial_sums(steps), slopes))
        outer, inner = sides if self.outer == 1 else sides[::-1]
        order = [0, self.outer, 3 - self.outer]
        ties = ()
        if along is not None:
            ties = partial_sums(outer[3]), partial_sums(inner[3]), rtol
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


class TopKHinge(BalancedHinge, CountedHinge):
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

    `X`, `n_threads` as for `Risk`. `y` (n_samples,): encoded as 0 and 1. `k`: at most
    the number of rows; None for P, that of the positives. `sample_weight` (n_samples,)
    or None: integers (the number of rows that each represents), or equal weights.
    `recall`: count mistakes as shares of the positives, and not of the k rows. `bias`:
    the value of a constant feature, whose weight remains 0.

    .. [1] Joachims, "A support vector method for multivariate performance measures",
       ICML 2005.
    .. [2] Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the
       top", ICML 2015 (there for k <= P).
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
        # 0, if no avoidable mistake is made, and every number up to the largest.
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
        """e times the means of the missed and of the false units."""
        means = partial_sums(missed)[self.missed] / np.maximum(self.missed, 1)
        means += partial_sums(false)[self.false] / np.maximum(self.false, 1)
        return self.avoidable * means


class RocAucHinge(BalancedHinge):
    """The hinge of the area above the ROC curve, which counts pairs in the wrong order.

    R(w) = Σ_ij s_i s_j max(0, 1 - ⟨w, x_i - x_j⟩) / Σ_ij s_i s_j

    over positives i and negatives j. This is the maximum over all sets of swapped pairs,
    which a sort finds in O(n log n). It is an upper bound of 1 - AUC.

    `X`, `n_threads` as for `Risk`. `y` (n_samples,): encoded as 0 and 1.
    `sample_weight` (n_samples,) or None: any weights. The weight of a pair is the
    product. `bias`: the value of a constant feature, whose weight remains 0.

    Joachims (see `ConfusionHinge`), section 3.4 and Algorithm 3.
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
        order = ascending(margins, rises, rtol)
        raw, is_positive = self.raw[order], self.is_positive[order]
        # A pair is violated if its negative comes after its positive.
        positive = np.cumsum(np.where(is_positive, raw, 0.0))
        negative = np.cumsum(np.where(is_positive, 0.0, raw)[::-1])[::-1]
        shares = self.pair_share * raw
        B[self.rows[order]] = np.where(is_positive, -shares * negative, shares * positive)
        return float(shares[is_positive] @ negative[is_positive])

"""Python access to an oracle's answers about one example, for `check_structure`."""
import numpy as np

from sklearn_structsvm._utils.borders import check_indices, check_shape

from sklearn_structsvm._contract._oracle cimport BlockOracle, Plane, free_plane
from sklearn_structsvm._utils._matrix._features cimport PAGE


cdef class Probe:
    """Example i of an oracle at weights w.

    Labelings are arrays of integers as the oracle encodes them. Joint features are
    differences from that of the true labeling; scores are their inner products with w.

    Parameters
    ----------
    oracle : BlockOracle
    i : int
    w : ndarray of shape (n_weights,)
    """

    cdef BlockOracle oracle
    cdef Py_ssize_t i
    cdef const double[::1] w
    cdef double[::1] work, out

    def __init__(self, BlockOracle oracle, Py_ssize_t i, const double[::1] w):
        check_indices("i", i, oracle.n_blocks)
        check_shape("w", w, oracle.n_weights)
        self.oracle = oracle
        self.i = i
        self.w = w
        self.work = np.zeros(max(oracle.work_size, 1))
        self.out = np.zeros(max(oracle.direction_size, 1))

    cdef int check(self, const int[::1] labels) except -1:
        check_shape("labels", labels, self.oracle.n_labels(self.i))
        return 0

    cdef int begin(self) except -1:
        """Compute potentials for the next call, as many probes share one oracle."""
        self.oracle.potentials(self.i, &self.w[0], &self.work[0])
        return 0

    cdef object blank(self):
        return np.zeros(max(self.oracle.n_labels(self.i), 1), dtype=np.intc)

    cdef object cut(self, labels):
        return labels[:self.oracle.n_labels(self.i)]

    def truth(self):
        """The true labeling."""
        cdef int[::1] labels = self.blank()
        self.oracle.true_labels(self.i, &labels[0])
        return self.cut(np.asarray(labels))

    def best(self, double lam):
        """The answer of the max-oracle: labels, score, loss, and its upper bound."""
        cdef int[::1] labels = self.blank()
        cdef double score = 0.0, loss = 0.0
        self.begin()
        self.oracle.max_oracle(
            self.i, lam, &self.work[0], &labels[0], &score, &loss)
        bound = self.oracle.upper_bound(self.i, &self.work[0], score + lam * loss)
        return self.cut(np.asarray(labels)), score, loss, bound

    def evaluate(self, const int[::1] labels):
        """Score and loss of a labeling."""
        cdef double score = 0.0, loss = 0.0
        self.check(labels)
        self.begin()
        self.oracle.evaluate(self.i, &self.work[0], &labels[0], &score, &loss)
        return score, loss

    def scores(self, labelings):
        """Scores of some labelings by `evaluate_each`, and by `scores_of`."""
        cdef Py_ssize_t n = len(labelings)
        cdef const int[::1] s
        by_potentials, at_weights = np.zeros((2, n))
        cdef double[::1] first = by_potentials, second = at_weights
        for labels in labelings:
            self.check(labels)
        s = np.concatenate([*labelings, np.zeros(1, dtype=np.intc)])
        self.begin()
        self.oracle.evaluate_each(self.i, &self.work[0], n, &s[0], &first[0])
        self.oracle.scores_of(
            self.i, &self.w[0], &self.work[0], n, &s[0], &second[0])
        return by_potentials, at_weights

    def loss(self, const int[::1] labels):
        """The loss alone."""
        self.check(labels)
        return self.oracle.loss(self.i, &labels[0])

    def candidates(self, double one):
        """Labelings, one of which maximizes loss · (one + score): a list of (labels,
        score, loss)."""
        cdef Plane plane = Plane(0, 0, NULL, NULL, 0.0, 0, NULL)
        cdef int[::1] labels
        cdef Py_ssize_t j
        found = []
        try:
            self.begin()
            self.oracle.candidates(self.i, one, &self.work[0], &plane)
            for j in range(plane.count):
                labels = self.blank()
                self.oracle.candidate(
                    self.i, &self.work[0], &plane, j, &labels[0])
                found.append((
                    self.cut(np.asarray(labels)), plane.scores[j], plane.losses[j]))
        finally:
            free_plane(&plane)
        return found

    def soft(self, double temperature):
        """The soft maximum of score + loss, and the means of score and loss there."""
        cdef double value = 0.0, loss = 0.0, score = 0.0
        blocks = self.oracle.get_blocks()
        self.begin()
        self.oracle.soft_oracle(
            self.i, 1.0, temperature, &self.work[0], &value, &loss)
        score = self.block_score()
        self.oracle.set_blocks(blocks)
        return value, score, loss

    def constrained(self, double lam, double alpha, double beta, bint strict_alpha=False,
                    bint strict_beta=True, double one=1.0):
        """The answer of the constrained oracle, (labels, score, loss), or None."""
        cdef int[::1] labels = self.blank()
        cdef double score = 0.0, loss = 0.0
        self.begin()
        if not self.oracle.constrained_oracle(
                self.i, lam, alpha, beta, strict_alpha, strict_beta, one, &self.work[0],
                &labels[0], &score, &loss):
            return None
        return self.cut(np.asarray(labels)), score, loss

    def direction(self, coefs, labelings, double c=0.0):
        """Joint feature of a direction, as a vector, and its squared norm by the oracle.

        `image`, `move`, `project` and `shrink` use this direction until the next one.
        """
        cdef double norm = 0.0
        cdef double[::1] target = np.zeros(self.oracle.n_weights)
        cdef const double[::1] a = np.array(coefs, dtype=np.float64)
        cdef const int[::1] s
        for labels in labelings:
            self.check(labels)
        s = np.concatenate([*labelings, np.zeros(1, dtype=np.intc)])
        self.oracle.direction(
            self.i, c, a.shape[0], &a[0] if a.shape[0] else NULL, &s[0], &self.out[0],
            &norm)
        self.oracle.scatter(self.i, 1.0, &self.out[0], &target[0])
        return np.asarray(target), norm

    def product(self, const int[::1] labels):
        """Inner product of the direction and a labeling, by `image`."""
        cdef double score = 0.0, loss = 0.0
        self.check(labels)
        self.oracle.image(self.i, &self.out[0], &self.work[0])
        self.oracle.evaluate(self.i, &self.work[0], &labels[0], &score, &loss)
        return score

    def move(self, double gamma):
        """Move the block along the direction."""
        self.oracle.move(self.i, gamma, &self.out[0])

    def project(self, const double[::1] v, const double[::1] lower,
                const double[::1] upper, double[::1] w):
        """w = clip(v, lower, upper) where the direction is not zero."""
        check_shape("v", v, self.oracle.n_weights)
        check_shape("lower", lower, self.oracle.n_weights)
        check_shape("upper", upper, self.oracle.n_weights)
        check_shape("w", w, self.oracle.n_weights)
        self.oracle.project(self.i, &self.out[0], &v[0], &lower[0], &upper[0], &w[0])

    def shrink(self, const double[::1] v, double threshold, double[::1] w):
        """w = the soft threshold of v where the direction is not zero."""
        check_shape("v", v, self.oracle.n_weights)
        check_shape("w", w, self.oracle.n_weights)
        self.oracle.shrink(self.i, &self.out[0], &v[0], threshold, &w[0])

    def marked(self):
        """The weights that the direction may touch, according to its pages."""
        cdef Py_ssize_t n_pages = (self.oracle.n_weights + PAGE - 1) // PAGE
        cdef unsigned char[::1] pages = np.zeros(max(n_pages, 1), dtype=np.uint8)
        self.oracle.mark(self.i, &self.out[0], &pages[0])
        return np.repeat(np.asarray(pages), PAGE)[:self.oracle.n_weights] == 1

    def block_score(self):
        """The score of the block's mean."""
        cdef double score = 0.0
        self.begin()
        self.oracle.block_score(self.i, &self.work[0], &score)
        return score

"""Sums over all labelings of chains: log Z, marginals, and distributions as factors."""
import numpy as np

from sklearn_structsvm._utils.borders import as_floats
from sklearn_structsvm._utils.threads import whole_lines

from libc.math cimport INFINITY, isnan, log
from cython.parallel cimport prange, threadid
from libc.string cimport memcpy, memset

from sklearn_structsvm.structures._chain_blocks cimport ChainBlocks, add, dot
from sklearn_structsvm.structures._edge_sums cimport Table, table_fill
from sklearn_structsvm.structures._forest cimport Forest, parent_of, true_edge
from sklearn_structsvm.structures._sum_product cimport sum_product


cdef extern from "_utils/_vector.h" nogil:
    void ask_ahead(Py_ssize_t n, const double* x) noexcept


cdef extern from "structures/_sum_product.h" nogil:
    void vector_sum(
        Py_ssize_t n, const double* x, const double* y, double* out) noexcept
    void vector_mix(
        Py_ssize_t n, double gamma, const double* x, const double* y,
        double* out) noexcept
    double vector_move_to(
        Py_ssize_t n, const double* x, const double* y, const double* m,
        const double* nu, double* z, double* before, double* after) noexcept


cdef void transpose(Py_ssize_t k, const double* x, double* out) noexcept nogil:
    cdef Py_ssize_t a, b
    for a in range(k):
        for b in range(k):
            out[b * k + a] = x[a * k + b]


cdef class ChainSums(ChainBlocks):
    """Chains as forests, with sums over the allowed labelings."""

    cdef double loss_unit(self, Py_ssize_t i) noexcept nogil:
        return 1.0 / self.n_nodes(i) if self.normalize else 1.0

    cdef Py_ssize_t n_pair_scores(self, Py_ssize_t i) noexcept nogil:
        return self.k * self.k if self.has_transition else 0

    cdef Forest forest(self, Py_ssize_t i, const double* work) noexcept nogil:
        """Chain i as a forest, whose edges lead from each position to the next."""
        cdef Forest result
        result.n = self.n_labels(i)
        result.k = self.k
        result.parent = NULL
        result.theta = work
        result.truth = &self.y[self.offsets[i]]
        result.costs = &self.costs[0, 0]
        result.cost_rows = &self.cost_rows[self.offsets[i]]
        result.edge = self.pairs(work) if self.has_transition else NULL
        result.edge_stride = 0
        return result

    cdef void forbid_ends(
            self, Py_ssize_t i, double penalty, double* theta) noexcept nogil:
        """Subtract a penalty from labels that are forbidden at the first or last node."""
        cdef Py_ssize_t k = self.k, T = self.n_nodes(i), c
        if not self.has_forbidden_ends:
            return
        for c in range(k):
            if self.forbidden[k, c] != 0.0:
                theta[c] -= penalty
            if self.forbidden[c, k] != 0.0:
                theta[(T - 1) * k + c] -= penalty

    cdef const double* forbid_pairs(
            self, const double* transition, double penalty, double* out
            ) noexcept nogil:
        """Write to `out` the scores of pairs, minus a penalty for forbidden ones."""
        cdef Py_ssize_t k = self.k, p, c
        cdef const double* forbidden
        cdef double score
        if penalty == INFINITY and self.has_transition:
            vector_sum(k * k, transition, &self.log_allowed[0, 0], out)
            return out
        for p in range(k):
            forbidden = &self.forbidden[p, 0]
            for c in range(k):
                score = transition[p * k + c] if self.has_transition else 0.0
                out[p * k + c] = score - penalty if forbidden[c] != 0.0 else score
        return out

    cdef int soft_oracle(
            self, Py_ssize_t i, double lam, double temperature, double* work,
            double* value, double* loss) except -1 nogil:
        cdef Forest forest = self.forest(i, work)
        cdef Py_ssize_t start = self.offsets[i], k = self.k, v, parent
        cdef Py_ssize_t size = forest.n * k
        cdef double unit = lam * self.loss_unit(i), by = 1.0 / temperature
        cdef double score = 0.0, cost = 0.0, log_z, log_count, mean, soft
        cdef const double* transition = self.pairs(work)
        cdef double* theta = work + self.soft_at
        cdef double* pairs = theta + size
        cdef double* nodes = &self.nodes[start, 0]
        cdef double* edges = self.edges.all_values(i) if self.has_transition else NULL
        cdef int truth
        memset(theta, 0, (size + k * k) * sizeof(double))
        if self.has_forbidden and isnan(self.log_counts[i]):
            self.log_counts[i] = self.sums(i, theta, pairs, work, NULL, NULL)
        add(size, by, forest.theta, theta)
        for v in range(forest.n):
            add(k, by * unit, &self.costs[self.cost_rows[start + v], 0], theta + v * k)
        if self.has_transition:
            add(k * k, by, transition, pairs)
        log_z = self.sums(i, theta, pairs, work, nodes, edges)
        mean = dot(size, forest.theta, nodes)
        if self.has_transition:
            mean += dot(k * k, transition, edges)
        log_count = forest.n * log(<double> k)
        if self.has_forbidden:
            log_count = self.log_counts[i]
        soft = temperature * (log_z - log_count)
        for v in range(forest.n):
            truth = self.y[start + v]
            cost += dot(k, &self.costs[self.cost_rows[start + v], 0], nodes + v * k)
            score += forest.theta[v * k + truth]
            nodes[v * k + truth] -= 1.0
            parent = parent_of(&forest, v)
            if parent < forest.n:
                score += true_edge(&forest, v, parent)
                if self.is_flipped:
                    edges[self.y[start + parent] * k + truth] -= 1.0
                else:
                    edges[truth * k + self.y[start + parent]] -= 1.0
        if temperature == INFINITY:
            soft = mean + unit * cost
        value[0] = soft - score
        loss[0] = cost * self.loss_unit(i)
        return 0

    cdef Py_ssize_t n_factors(self, Py_ssize_t i) noexcept nogil:
        return (self.n_nodes(i) + self.has_transition * self.k) * self.k

    cdef int true_factors(
            self, Py_ssize_t i, double odds, double* factors) except -1 nogil:
        cdef Py_ssize_t t
        memset(factors, 0, self.n_factors(i) * sizeof(double))
        for t in range(self.n_nodes(i)):
            factors[t * self.k + self.y[self.offsets[i] + t]] = odds
        return 0

    cdef int load_factors(
            self, Py_ssize_t i, const double* factors, double* work) except -1 nogil:
        cdef Py_ssize_t k = self.k, size = self.n_nodes(i) * k
        memcpy(work, factors, size * sizeof(double))
        if self.has_transition:
            self.set_pairs(work, factors + size)
        return 0

    cdef int log_sum(
            self, Py_ssize_t i, double* work, double* value) except -1 nogil:
        cdef Forest forest = self.forest(i, work)
        if self.has_forbidden:
            value[0] = self.sums(
                i, work, self.pairs(work), work, NULL, NULL)
        else:
            value[0] = sum_product(&forest, NULL, work + self.sums_at, NULL, NULL)
        # It is -log of a probability: only rounding can make it negative.
        value[0] = max(value[0] - self.true_score(i, work), 0.0)
        return 0

    cdef double true_score(self, Py_ssize_t i, const double* work) noexcept nogil:
        """⟨θ_i, μ(y_i)⟩."""
        cdef Forest forest = self.forest(i, work)
        cdef Py_ssize_t v, p
        cdef double total = 0.0
        for v in range(forest.n):
            total += forest.theta[v * forest.k + forest.truth[v]]
            p = parent_of(&forest, v)
            if p < forest.n:
                total += true_edge(&forest, v, p)
        return total

    cdef double sums(
            self, Py_ssize_t i, const double* theta, const double* transition,
            double* work, double* nodes, double* edges) noexcept nogil:
        """log Z of these potentials, and their marginals; see `sum_product`."""
        cdef Forest forest = self.forest(i, work)
        cdef double* flipped = work + self.sums_at
        cdef double* pairs = flipped + self.k * self.k
        cdef double* room = pairs + self.k * self.k
        cdef double* masked = work + self.masked_at
        cdef const double* allowed_pairs = NULL
        cdef double log_z
        forest.theta = theta
        if self.has_forbidden:
            allowed_pairs = &self.allowed_pairs[0, 0]
            if self.has_forbidden_ends:
                memcpy(masked, theta, forest.n * self.k * sizeof(double))
                self.forbid_ends(i, INFINITY, masked)
                forest.theta = masked
            if not self.has_transition:
                masked += self.max_labels * self.k
                memset(masked, 0, self.k * self.k * sizeof(double))
                forest.edge = masked
        if not self.has_transition:
            return sum_product(&forest, allowed_pairs, room, nodes, NULL)
        forest.edge = transition
        if not self.is_flipped:
            return sum_product(&forest, allowed_pairs, room, nodes, edges)
        transpose(self.k, transition, flipped)
        forest.edge = flipped
        log_z = sum_product(&forest, allowed_pairs, room, nodes, pairs)
        if edges != NULL:
            transpose(self.k, pairs, edges)
        return log_z

    cdef int tilt(
            self, Py_ssize_t i, double gamma, double* work, const double* factors,
            double* tilted, double* out, double* squared_norm, double* slope,
            double* entropy) except -1 nogil:
        cdef Forest forest = self.forest(i, work)
        cdef Py_ssize_t k = self.k, size = forest.n * k, v, p, pair
        cdef const int* y = forest.truth
        cdef const double* transition = self.pairs(work)
        cdef double* edges = out + self.edges_at
        cdef const double* sums
        cdef double before, after
        cdef Table node_table = self.node_table(out), edge_table
        table_fill(&node_table, size)
        ask_ahead(size, &self.nodes[self.offsets[i], 0])
        if self.has_transition:
            sums = self.edges.all_or_none(i)
            if sums == NULL:
                sums = &self.no_edges[0]
            ask_ahead(k * k, sums)
        vector_mix(size, gamma, factors, work, tilted)
        if self.has_transition:
            vector_mix(k * k, gamma, factors + size, transition, tilted + size)
        entropy[0] = self.sums(i, tilted, tilted + size, work, out, edges)
        # ⟨η', mean⟩ is that of the truth and the rest, which may both be large.
        for v in range(forest.n):
            out[v * k + y[v]] -= 1.0
            entropy[0] -= tilted[v * k + y[v]]
        slope[0] = vector_move_to(
            size, factors, work, tilted, &self.nodes[self.offsets[i], 0], out,
            &before, &slope[1])
        entropy[0] -= before
        if self.has_transition:
            edge_table = self.edge_table(out)
            table_fill(&edge_table, k * k)
            for v in range(forest.n):
                p = parent_of(&forest, v)
                if p == forest.n:
                    continue
                pair = y[p] * k + y[v] if self.is_flipped else y[v] * k + y[p]
                edges[pair] -= 1.0
                entropy[0] -= tilted[size + pair]
            slope[0] += vector_move_to(
                k * k, factors + size, transition, tilted + size, sums, edges,
                &before, &after)
            entropy[0] -= before
            slope[1] += after
        entropy[0] = max(entropy[0], 0.0)
        return self.complete(i, out, squared_norm)

    def keep_grams(self):
        """Keep Gram matrices of long chains as well, for steps on marginals.

        They take no more memory than the marginals and log factors of a chain.
        """
        sizes = np.diff(self.offsets)
        squares = sizes**2
        dual = 2 * self.k * (sizes + self.has_transition * self.k)
        places = np.asarray(self.gram_at)
        is_new = (places < 0) & (squares <= dual) & (squares > 0)
        if not is_new.any() or np.isinf(self.features.n_entries(self.offsets)).any():
            return
        ends = len(self.grams) + np.cumsum(np.where(is_new, squares, 0))
        new = np.where(is_new, ends - squares, -1).astype(np.intp)
        grams = np.concatenate([self.grams, np.zeros(squares[is_new].sum())])
        self.features.add_grams(self.offsets, new, grams)
        self.grams, self.gram_at = grams, np.where(is_new, new, places)

    def marginals(self, w, int n_threads=1):
        """Probabilities of the labels of all nodes of all blocks, given the weights.

        Parameters
        ----------
        w : array-like of shape (n_weights,)
        n_threads : int

        Returns
        -------
        nodes : ndarray of shape (Σ_i n_labels(i), k)
        entropies : ndarray of shape (n_blocks,)
            Of the distributions over the labelings.
        log_sums : ndarray of shape (n_blocks,)
            log Z_i - ⟨θ_i, μ(y_i)⟩, which is -log of the probability of y_i.
        """
        cdef Py_ssize_t i, j, n = self.n_blocks, k = self.k, size
        cdef const double[::1] weights = as_floats(
            "w", w, self.n_weights, finite=self.n_scores == 0)
        nodes, entropies, log_sums = (
            np.zeros((self.offsets[n], k)), np.zeros(n), np.zeros(n))
        cdef double[:, ::1] probabilities = nodes
        cdef double[::1] entropy = entropies, log_sum = log_sums
        cdef int t
        n_threads = max(1, min(n_threads, n)) if self.thread_safe else 1
        cdef double[:, ::1] work = np.zeros((n_threads, whole_lines(self.work_size)))
        cdef Py_ssize_t most = max([self.n_pair_scores(i) for i in range(n)] + [1])
        cdef double[:, ::1] pairs = np.zeros((n_threads, whole_lines(most)))
        cdef const double* transition
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
            t = threadid()
            self.finite_potentials(i, &weights[0], &work[t, 0])
            transition = self.pairs(&work[t, 0])
            size = self.n_nodes(i) * k
            j = self.offsets[i]
            log_sum[i] = self.sums(
                i, &work[t, 0], transition, &work[t, 0], &probabilities[j, 0],
                &pairs[t, 0])
            entropy[i] = log_sum[i] - dot(size, &work[t, 0], &probabilities[j, 0])
            entropy[i] = entropy[i] - dot(
                self.n_pair_scores(i), transition, &pairs[t, 0])
            entropy[i] = max(entropy[i], 0.0)
            log_sum[i] = max(log_sum[i] - self.true_score(i, &work[t, 0]), 0.0)
        return nodes, entropies, log_sums

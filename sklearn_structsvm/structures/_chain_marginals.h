/* Sums over all labelings of a chain without impossible labels or pairs; see
 * `_sum_product`. With the scores of labels within MAX_SPREAD of each other over the whole
 * chain, and those of pairs as well, no row needs a maximum of its own.
 *
 * Row t of `forward` is in proportion to m_t and sums to 1, and row t of `backward` is
 * e_t b_t / s_t, with e_t the exponentials of the scores, s_t the sum that `forward` is
 * divided by and
 *
 *     b_t(c) = Σ_q exp(edge[c, q]) backward[t + 1, q],     b = 1 at the last node.
 *
 * So forward[t] b_t are the probabilities of the labels of node t, and forward[t, c]
 * exp(edge[c, q]) backward[t + 1, q] those of the pairs. All entries of b are within
 * exp(±MAX_SPREAD), because they differ by rows of exp(edge) and have the mean 1, and so
 * are those of e_t / s_t: products of both are normal numbers.
 *
 * Rows are padded with zeros to whole packs of four numbers. Sums over rows of a matrix
 * are made for up to six packs at once, which stay in registers. (Packs of eight do not,
 * where registers hold four.) */
#ifndef SKLEARN_STRUCTSVM_CHAIN_MARGINALS_H
#define SKLEARN_STRUCTSVM_CHAIN_MARGINALS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "structures/_sum_product.h"

#define LANES 4
#define LINE_OF_DOUBLES 8
#define MOST_PACKS 6

static inline ptrdiff_t padded_width(ptrdiff_t k)
{
    return (k + LANES - 1) / LANES * LANES;
}

/* What `chain_sums` computes, in the caller's memory. `exps` and `pair_exps` are
 * exponentials of scores as they lie, with a pack of zeros after them; `factor` has those
 * of pairs in padded rows. */
typedef struct {
    ptrdiff_t width;
    double *forward, *backward, *factor, *transposed, *exps, *pair_exps, *row, *divisors;
} chain_sums_t;

/* Doubles that `chain_sums` needs. */
static inline ptrdiff_t chain_room(ptrdiff_t n, ptrdiff_t k)
{
    const ptrdiff_t width = padded_width(k);
    return LINE_OF_DOUBLES + 2 * n * width + 2 * k * width + (n * k + LANES) + (k * k + LANES)
           + width + n;
}

static inline void chain_lay_out(ptrdiff_t n, ptrdiff_t k, double *room,
                                 chain_sums_t *sums)
{
    const ptrdiff_t width = padded_width(k);
    const uintptr_t line = LINE_OF_DOUBLES * sizeof(double);
    sums->width = width;
    sums->forward = (double *) (((uintptr_t) room + line - 1) / line * line);
    sums->backward = sums->forward + n * width;
    sums->factor = sums->backward + n * width;
    sums->transposed = sums->factor + k * width;
    sums->row = sums->transposed + k * width;
    sums->exps = sums->row + width;
    sums->pair_exps = sums->exps + n * k + LANES;
    sums->divisors = sums->pair_exps + k * k + LANES;
}

#ifdef GNU_C

/* An aligned pack, and one at any double. */
typedef double pack_t __attribute__((vector_size(32), may_alias));
typedef double loose_pack_t __attribute__((vector_size(32), aligned(8), may_alias));
#define PACK(address) (*(pack_t *) (address))
#define LOOSE_PACK(address) (*(const loose_pack_t *) (address))

static ALWAYS_INLINE double sum_of_pack(pack_t x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}

/* How many of the packs that are left to process at once. Seven and eight are four and the
 * rest: a lone pack would wait for its sums. */
static ALWAYS_INLINE ptrdiff_t packs_at_once(ptrdiff_t left)
{
    if (left <= MOST_PACKS)
        return left;
    return left <= MOST_PACKS + 2 ? 4 : MOST_PACKS;
}

/* process(n_packs), where that is a constant */
#define FOR_PACKS(n_packs, process)  \
    switch (n_packs) {               \
    case 1: process(1); break;       \
    case 2: process(2); break;       \
    case 3: process(3); break;       \
    case 4: process(4); break;       \
    case 5: process(5); break;       \
    default: process(MOST_PACKS);    \
    }

/* `n_packs` packs of x' matrix: Σ_p x[p] matrix[p * width + c]. Even and odd rows have
 * separate sums, so that an addition need not wait for the one before. */
static ALWAYS_INLINE void times_packs(ptrdiff_t k, const double *x, const double *matrix,
                                      ptrdiff_t width, ptrdiff_t n_packs, double *out)
{
    pack_t even[MOST_PACKS], odd[MOST_PACKS];
    ptrdiff_t p = 0;
    for (ptrdiff_t v = 0; v < n_packs; v++)
        even[v] = odd[v] = (pack_t){0.0};
    for (; p + 1 < k; p += 2, matrix += 2 * width)
        for (ptrdiff_t v = 0; v < n_packs; v++) {
            even[v] += x[p] * PACK(matrix + LANES * v);
            odd[v] += x[p + 1] * PACK(matrix + width + LANES * v);
        }
    for (ptrdiff_t v = 0; v < n_packs; v++) {
        if (p < k)
            even[v] += x[p] * PACK(matrix + LANES * v);
        PACK(out + LANES * v) = even[v] + odd[v];
    }
}

/* out = x' matrix, for k rows of `width` numbers */
static ALWAYS_INLINE void times_matrix(ptrdiff_t k, const double *x,
                                       const double *matrix, ptrdiff_t width,
                                       double *out)
{
    for (ptrdiff_t c = 0; c < width;) {
        const ptrdiff_t left = packs_at_once((width - c) / LANES);
#define TIMES(m) times_packs(k, x, matrix + c, width, m, out + c)
        FOR_PACKS(left, TIMES)
#undef TIMES
        c += left * LANES;
    }
}

/* forward[t] for t = 0 to n - 1, and their divisors; returns the sum of the logarithms of
 * the latter. Entries of a row after the k-th are those of the next row: `tail` is 0
 * there and 1 before. */
static ALWAYS_INLINE double chain_forward(ptrdiff_t n, ptrdiff_t k, const double *exps,
                                          const double *factor, const pack_t *tail,
                                          double *forward, double *divisors)
{
    const ptrdiff_t width = padded_width(k), last = width - LANES;
    double total = 0.0, product = 1.0;
    for (ptrdiff_t t = 0; t < n; t++, exps += k, forward += width) {
        pack_t sum = {0.0};
        if (t > 0)
            times_matrix(k, forward - width, factor, width, forward);
        else
            for (ptrdiff_t c = 0; c < width; c += LANES)
                PACK(forward + c) = (pack_t){0.0} + 1.0;
        for (ptrdiff_t c = 0; c < last; c += LANES)
            sum += PACK(forward + c) *= LOOSE_PACK(exps + c);
        sum += PACK(forward + last) *= LOOSE_PACK(exps + last) * *tail;
        divisors[t] = sum_of_pack(sum);
        const double scale = 1.0 / divisors[t];
        for (ptrdiff_t c = 0; c < width; c += LANES)
            PACK(forward + c) *= scale;
        /* Divisors are between exp(-2 MAX_SPREAD) / k and k. */
        product *= divisors[t];
        if (product < 1e-30 || product > 1e30) {
            total += log(product);
            product = 1.0;
        }
    }
    return total + log(product);
}

/* backward[t] for t = n - 1 to 1, and the probabilities of the labels of all nodes. */
static ALWAYS_INLINE void chain_backward(ptrdiff_t n, ptrdiff_t k, const double *exps,
                                         const double *transposed, const pack_t *tail,
                                         const double *forward, const double *divisors,
                                         double *backward, double *row, double *nodes)
{
    const ptrdiff_t width = padded_width(k), last = width - LANES;
    for (ptrdiff_t c = 0; c < width; c += LANES)
        PACK(row + c) = (pack_t){0.0} + 1.0;
    for (ptrdiff_t t = n - 1; t >= 0; t--) {
        const double *here = forward + t * width;
        double *out = nodes + t * k, *next = backward + t * width;
        double scale = 1.0;
        if (t % 16 == 0 || t == n - 1) {
            /* Rounding errors of `row` add up from node to node; these do not. */
            pack_t sum = {0.0};
            for (ptrdiff_t c = 0; c < width; c += LANES)
                sum += PACK(here + c) * PACK(row + c);
            scale = 1.0 / sum_of_pack(sum);
        }
        for (ptrdiff_t c = 0; c < last; c += LANES)
            *(loose_pack_t *) (out + c) = scale * PACK(here + c) * PACK(row + c);
        const pack_t rest = scale * PACK(here + last) * PACK(row + last);
        for (ptrdiff_t c = last; c < k; c++)
            out[c] = rest[c - last];
        if (t == 0)
            return;
        scale /= divisors[t];
        for (ptrdiff_t c = 0; c < width; c += LANES)
            PACK(next + c) = PACK(row + c) * (scale * LOOSE_PACK(exps + t * k + c));
        PACK(next + last) *= *tail;
        times_matrix(k, next, transposed, width, row);
    }
}

/* The factors of pairs and their transpose, from their exponentials as they lie. */
static ALWAYS_INLINE void chain_matrices(ptrdiff_t k, const pack_t *tail,
                                         const chain_sums_t *sums)
{
    const ptrdiff_t width = sums->width, last = width - LANES;
    for (ptrdiff_t p = 0; p < k; p++) {
        double *row = sums->factor + p * width;
        for (ptrdiff_t c = 0; c < width; c += LANES)
            PACK(row + c) = LOOSE_PACK(sums->pair_exps + p * k + c);
        PACK(row + last) *= *tail;
        PACK(sums->transposed + p * width + last) = (pack_t){0.0};
    }
    for (ptrdiff_t c = 0; c < k; c++) {
        const double *column = sums->pair_exps + c;
        double *row = sums->transposed + c * width;
        ptrdiff_t p = 0;
        for (; p + LANES <= k; p += LANES, column += LANES * k)
            PACK(row + p) = (pack_t){column[0], column[k], column[2 * k], column[3 * k]};
        for (; p < k; p++, column += k)
            row[p] = column[0];
    }
}

/* log Z of a chain and, unless `nodes` is NULL, the probabilities of the labels of its
 * nodes. NaN if scores of nodes or of pairs are not within `most` of each other. */
FOR_EACH_WIDTH
static double chain_log_sum(ptrdiff_t n, ptrdiff_t k, const double *theta,
                            const double *edge, double most, const chain_sums_t *sums,
                            double *nodes)
{
    double lowest, highest, least, widest, total;
    pack_t tail;
    vector_range(n * k, theta, &lowest, &highest);
    vector_range(k * k, edge, &least, &widest);
    if (!(highest - lowest <= most && widest - least <= most))
        return NAN;
    for (ptrdiff_t l = 0; l < LANES; l++)
        tail[l] = sums->width - LANES + l < k ? 1.0 : 0.0;
    vector_exp(n * k, theta, highest, sums->exps);
    vector_exp(k * k, edge, widest, sums->pair_exps);
    memset(sums->exps + n * k, 0, LANES * sizeof(double));
    memset(sums->pair_exps + k * k, 0, LANES * sizeof(double));
    chain_matrices(k, &tail, sums);
    total = chain_forward(n, k, sums->exps, sums->factor, &tail, sums->forward,
                          sums->divisors);
    if (nodes != NULL)
        chain_backward(n, k, sums->exps, sums->transposed, &tail, sums->forward,
                       sums->divisors, sums->backward, sums->row, nodes);
    return total + n * highest + (n - 1) * widest;
}

/* Row p of the expected pairs, `n_packs` packs of it. */
static ALWAYS_INLINE void pair_packs(ptrdiff_t n, ptrdiff_t width, const double *before,
                                     const double *after, const double *factor,
                                     ptrdiff_t n_packs, double *out)
{
    pack_t even[MOST_PACKS], odd[MOST_PACKS];
    ptrdiff_t t = 0;
    for (ptrdiff_t v = 0; v < n_packs; v++)
        even[v] = odd[v] = (pack_t){0.0};
    for (; t + 1 < n; t += 2, before += 2 * width, after += 2 * width)
        for (ptrdiff_t v = 0; v < n_packs; v++) {
            even[v] += before[0] * PACK(after + LANES * v);
            odd[v] += before[width] * PACK(after + width + LANES * v);
        }
    for (ptrdiff_t v = 0; v < n_packs; v++) {
        if (t < n)
            even[v] += before[0] * PACK(after + LANES * v);
        PACK(out + LANES * v) = (even[v] + odd[v]) * PACK(factor + LANES * v);
    }
}

/* The expected number of each pair of labels, after `chain_log_sum`. */
FOR_EACH_WIDTH
static void chain_pairs(ptrdiff_t n, ptrdiff_t k, const chain_sums_t *sums, double *edges)
{
    const ptrdiff_t width = sums->width;
    const double *after = sums->backward + width;
    for (ptrdiff_t p = 0; p < k; p++) {
        const double *before = sums->forward + p, *factor = sums->factor + p * width;
        for (ptrdiff_t c = 0; c < width;) {
            const ptrdiff_t left = packs_at_once((width - c) / LANES);
#define PAIRS(m) pair_packs(n - 1, width, before, after + c, factor + c, m, sums->row + c)
            FOR_PACKS(left, PAIRS)
#undef PAIRS
            c += left * LANES;
        }
        memcpy(edges + p * k, sums->row, k * sizeof(double));
    }
}

#else

/* Without packs, `sum_product` computes all sums. */
#define chain_log_sum(n, k, theta, edge, most, sums, nodes) NAN
#define chain_pairs(n, k, sums, edges)

#endif

#endif

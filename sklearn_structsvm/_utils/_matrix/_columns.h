/* Products of one CSR row x with weights W of k columns: x' W, and W += coef x delta'.
 * Columns are processed by packs of four, up to eight packs at once, so that a row of
 * weights is read once; the last pack may repeat some columns. The results are those of
 * loops over single columns, bit for bit. */
#ifndef SKLEARN_STRUCTSVM_COLUMNS_H
#define SKLEARN_STRUCTSVM_COLUMNS_H

#include "_utils/_vector.h"

#ifdef GNU_C

#define LANES 4
#define MOST_PACKS 8

typedef double pack_t __attribute__((vector_size(32), aligned(8), may_alias));
#define PACK(address) (*(pack_t *) (address))

/* process(n_packs), where that is a constant */
#define FOR_PACKS(n_packs, process) \
    switch (n_packs) {              \
    case 1: process(1); break;      \
    case 2: process(2); break;      \
    case 3: process(3); break;      \
    case 4: process(4); break;      \
    case 5: process(5); break;      \
    case 6: process(6); break;      \
    case 7: process(7); break;      \
    default: process(MOST_PACKS);   \
    }

static ALWAYS_INLINE void ask_for_columns(const double *row, ptrdiff_t width)
{
    for (ptrdiff_t c = 0; c < width; c += 8)
        PREFETCH(row + c);
    PREFETCH(row + width - 1);
}

/* `n_packs` packs of x' W, the last one at column `last`. */
static ALWAYS_INLINE void gather_packs(ptrdiff_t count, ptrdiff_t available,
                                       const double *values, const int *indices,
                                       const double *weights, ptrdiff_t k,
                                       ptrdiff_t last, ptrdiff_t n_packs, double *out)
{
    pack_t sums[MOST_PACKS];
    for (ptrdiff_t v = 0; v < n_packs; v++)
        sums[v] = (pack_t){0.0};
    for (ptrdiff_t j = 0; j < count; j++) {
        const double x = values[j];
        const double *row = weights + indices[j] * k;
        if (j + ROWS_AHEAD < available)
            ask_for_columns(weights + indices[j + ROWS_AHEAD] * k, last + LANES);
        for (ptrdiff_t v = 0; v < n_packs; v++)
            sums[v] += x * PACK(row + (v + 1 < n_packs ? LANES * v : last));
    }
    for (ptrdiff_t v = 0; v < n_packs; v++)
        PACK(out + (v + 1 < n_packs ? LANES * v : last)) = sums[v];
}

/* out = x' W for k >= 4; `available` as for `vector_gather`. */
FOR_EACH_WIDTH
static void gather_columns(ptrdiff_t count, ptrdiff_t available, const double *values,
                           const int *indices, const double *weights, ptrdiff_t k,
                           double *out)
{
    for (ptrdiff_t c = 0; c < k; c += MOST_PACKS * LANES) {
        const ptrdiff_t left = k - c < MOST_PACKS * LANES ? k - c : MOST_PACKS * LANES;
        /* Fewer columns than a pack: the last ones once more. */
        const ptrdiff_t first = left < LANES ? k - LANES : c;
        const ptrdiff_t width = left < LANES ? LANES : left;
        const ptrdiff_t n_packs = (width + LANES - 1) / LANES;
#define GATHER(m)                                                                    \
    gather_packs(count, available, values, indices, weights + first, k,              \
                 width - LANES, m, out + first)
        FOR_PACKS(n_packs, GATHER)
#undef GATHER
    }
}

/* W += coef x delta' for `n_packs` packs, the last one at column `last`. */
static ALWAYS_INLINE void scatter_packs(ptrdiff_t count, double coef,
                                        const double *values, const int *indices,
                                        const double *delta, ptrdiff_t k,
                                        ptrdiff_t last, ptrdiff_t n_packs,
                                        double *weights)
{
    pack_t steps[MOST_PACKS];
    for (ptrdiff_t v = 0; v < n_packs; v++)
        steps[v] = PACK(delta + (v + 1 < n_packs ? LANES * v : last));
    for (ptrdiff_t j = 0; j < count; j++) {
        const double a = coef * values[j];
        double *row = weights + indices[j] * k;
        /* Columns that are processed twice are read before they are written. */
        const pack_t end = PACK(row + last) + a * steps[n_packs - 1];
        for (ptrdiff_t v = 0; v + 1 < n_packs; v++)
            PACK(row + LANES * v) += a * steps[v];
        PACK(row + last) = end;
    }
}

/* Row indices[j] of W += coef values[j] delta. */
FOR_EACH_WIDTH
static void scatter_columns(ptrdiff_t count, double coef, const double *values,
                            const int *indices, const double *delta, ptrdiff_t k,
                            double *weights)
{
    ptrdiff_t c = 0;
    while (k - c >= LANES) {
        const ptrdiff_t left = k - c < MOST_PACKS * LANES ? k - c : MOST_PACKS * LANES;
        const ptrdiff_t n_packs = (left + LANES - 1) / LANES;
#define SCATTER(m)                                                                \
    scatter_packs(count, coef, values, indices, delta + c, k, left - LANES, m,    \
                  weights + c)
        FOR_PACKS(n_packs, SCATTER)
#undef SCATTER
        c += left;
    }
    for (ptrdiff_t j = 0; c < k && j < count; j++) {
        const double a = coef * values[j];
        for (ptrdiff_t l = c; l < k; l++)
            weights[indices[j] * k + l] += a * delta[l];
    }
}

#undef LANES
#undef MOST_PACKS

#else

#define gather_columns vector_gather

static void scatter_columns(ptrdiff_t count, double coef, const double *values,
                            const int *indices, const double *delta, ptrdiff_t k,
                            double *weights)
{
    for (ptrdiff_t j = 0; j < count; j++)
        vector_axpy(k, coef * values[j], delta, weights + indices[j] * k);
}

#endif

#endif

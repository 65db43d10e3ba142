/* Inner loops for which there is no BLAS routine. They are compiled for several vector
 * widths if the compiler and the C library can choose between them when the program
 * starts; otherwise they are plain loops. */
#ifndef SKLEARN_STRUCTSVM_VECTOR_H
#define SKLEARN_STRUCTSVM_VECTOR_H

#include "_utils/_compiler.h"

/* Prefetch numbers that will be needed after something else. */
static inline void ask_ahead(ptrdiff_t n, const double *x)
{
    for (ptrdiff_t j = 0; j < n; j += 8)
        PREFETCH(x + j);
}

/* This many running maxima fit in the first-level cache with room to spare. */
#define MAX_PLUS_WIDTH 64

/* current[c] += max_p previous[p] + transition[p * k + c] */
FOR_EACH_WIDTH
static void vector_add_max_plus(ptrdiff_t k, const double *previous,
                                const double *transition, double *current)
{
    double best[MAX_PLUS_WIDTH];
    for (ptrdiff_t start = 0; start < k; start += MAX_PLUS_WIDTH) {
        ptrdiff_t width = k - start < MAX_PLUS_WIDTH ? k - start : MAX_PLUS_WIDTH;
        for (ptrdiff_t c = 0; c < width; c++)
            best[c] = previous[0] + transition[start + c];
        for (ptrdiff_t p = 1; p < k; p++) {
            const double score = previous[p];
            const double *row = transition + p * k + start;
            for (ptrdiff_t c = 0; c < width; c++) {
                const double value = score + row[c];
                best[c] = value > best[c] ? value : best[c];
            }
        }
        for (ptrdiff_t c = 0; c < width; c++)
            current[start + c] += best[c];
    }
}

/* For each row x and each p: out[p] = max_q x[q] + gains[k - 1 - q + p], for 2 k - 1
 * gains, k <= MAX_PLUS_WIDTH. */
FOR_EACH_WIDTH
static void vector_max_plus_rows(ptrdiff_t n, ptrdiff_t k, const double *x,
                                 const double *gains, double *out)
{
    double best[MAX_PLUS_WIDTH];
    for (ptrdiff_t row = 0; row < n; row++, x += k, out += k) {
        for (ptrdiff_t p = 0; p < k; p++)
            best[p] = x[0] + gains[k - 1 + p];
        for (ptrdiff_t q = 1; q < k; q++) {
            const double score = x[q];
            const double *gain = gains + k - 1 - q;
            for (ptrdiff_t p = 0; p < k; p++) {
                const double value = score + gain[p];
                best[p] = value > best[p] ? value : best[p];
            }
        }
        for (ptrdiff_t p = 0; p < k; p++)
            out[p] = best[p];
    }
}

/* out[p * k + c] = max(out[p * k + c], max_q x[q * k + c] + gains[n - 1 - q + p]), for n
 * rows of k <= MAX_PLUS_WIDTH columns. */
FOR_EACH_WIDTH
static void vector_raise_by_columns(ptrdiff_t n, ptrdiff_t k, const double *x,
                                    const double *gains, double *out)
{
    double best[MAX_PLUS_WIDTH];
    for (ptrdiff_t p = 0; p < n; p++, out += k) {
        for (ptrdiff_t c = 0; c < k; c++)
            best[c] = out[c];
        for (ptrdiff_t q = 0; q < n; q++) {
            const double gain = gains[n - 1 - q + p];
            const double *row = x + q * k;
            for (ptrdiff_t c = 0; c < k; c++) {
                const double value = row[c] + gain;
                best[c] = value > best[c] ? value : best[c];
            }
        }
        for (ptrdiff_t c = 0; c < k; c++)
            out[c] = best[c];
    }
}

/* Rows of weights may be anywhere in memory: they are prefetched this many rows ahead, a
 * cache line of eight doubles at a time. */
#define ROWS_AHEAD 8

/* This many sums at once stay in registers while the loop runs over the rows. */
#define GATHER_BLOCK 16

/* out[c] = Σ_{j < count} values[j] * weights[indices[j] * k + c] for c < width. If this
 * is inlined where `width` is a constant, the sums stay in registers. */
static ALWAYS_INLINE void gather_block(ptrdiff_t count, ptrdiff_t available,
                                       const double *values, const int *indices,
                                       const double *weights, ptrdiff_t k,
                                       ptrdiff_t width, double *out)
{
    double sums[GATHER_BLOCK] = {0.0};
    for (ptrdiff_t j = 0; j < count; j++) {
        const double x = values[j];
        const double *row = weights + indices[j] * k;
        if (j + ROWS_AHEAD < available) {
            const double *next = weights + indices[j + ROWS_AHEAD] * k;
            for (ptrdiff_t c = 0; c < width + 7; c += 8)
                PREFETCH(next + (c < width ? c : width - 1));
        }
        for (ptrdiff_t c = 0; c < width; c++)
            sums[c] += x * row[c];
    }
    for (ptrdiff_t c = 0; c < width; c++)
        out[c] = sums[c];
}

/* out[c] = Σ_{j < count} values[j] * weights[indices[j] * k + c]; `available` entries of
 * `indices` may be read, those after `count` to prefetch for the next calls. Blocks of
 * equal width cover the columns; the last block may repeat some columns. */
FOR_EACH_WIDTH
static void vector_gather(ptrdiff_t count, ptrdiff_t available, const double *values,
                          const int *indices, const double *weights, ptrdiff_t k,
                          double *out)
{
    const ptrdiff_t half = GATHER_BLOCK / 2;
    if (k < half) {
        gather_block(count, available, values, indices, weights, k, k, out);
    } else if (k < GATHER_BLOCK) {
        gather_block(count, available, values, indices, weights, k, half, out);
        gather_block(count, available, values, indices, weights + k - half, k, half,
                     out + k - half);
    } else {
        for (ptrdiff_t c = 0; c < k; c += GATHER_BLOCK) {
            const ptrdiff_t start = c + GATHER_BLOCK <= k ? c : k - GATHER_BLOCK;
            gather_block(count, available, values, indices, weights + start, k,
                         GATHER_BLOCK, out + start);
        }
    }
}

/* y[c] += a * x[c], for short rows, for which a BLAS call would cost more */
FOR_EACH_WIDTH
static void vector_axpy(ptrdiff_t k, double a, const double *x, double *y)
{
    for (ptrdiff_t c = 0; c < k; c++)
        y[c] += a * x[c];
}

#endif

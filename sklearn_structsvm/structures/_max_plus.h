/* One step of the Viterbi algorithm over many labels. Like the loops of `_vector.h`, it
 * is compiled for several widths of vector unit. */
#ifndef SKLEARN_STRUCTSVM_MAX_PLUS_H
#define SKLEARN_STRUCTSVM_MAX_PLUS_H

#include <stddef.h>

#include "_utils/_vector.h"

/* With more columns than this, reading a few columns at a time would jump through memory.
 * Instead, several whole rows are read at once, and the maxima of a tile of columns stay
 * in the first-level cache. */
#define FEW_COLUMNS 64
#define TILE 2048
#define ROWS_AT_ONCE 4

/* best[c] = max_p previous[p] + pairs[p * k + c] for c < width */
FOR_EACH_WIDTH
static void max_plus_tile(ptrdiff_t k, const double *previous, const double *pairs,
                          ptrdiff_t width, double *best)
{
    ptrdiff_t p = 1;
    for (ptrdiff_t c = 0; c < width; c++)
        best[c] = previous[0] + pairs[c];
    for (; p + ROWS_AT_ONCE <= k; p += ROWS_AT_ONCE) {
        const double *x = previous + p;
        const double *row = pairs + p * k, *two = row + k, *three = two + k;
        const double *four = three + k;
        for (ptrdiff_t c = 0; c < width; c++) {
            const double a = x[0] + row[c], b = x[1] + two[c];
            const double d = x[2] + three[c], e = x[3] + four[c];
            const double ab = a > b ? a : b, de = d > e ? d : e;
            const double most = ab > de ? ab : de;
            best[c] = most > best[c] ? most : best[c];
        }
    }
    for (; p < k; p++)
        for (ptrdiff_t c = 0; c < width; c++) {
            const double value = previous[p] + pairs[p * k + c];
            best[c] = value > best[c] ? value : best[c];
        }
}

/* current[c] += max_p previous[p] + pairs[p * k + c] for c < k */
static inline void add_max_plus(ptrdiff_t k, const double *previous, const double *pairs,
                                double *current)
{
    double best[TILE];
    if (k <= FEW_COLUMNS) {
        vector_add_max_plus(k, previous, pairs, current);
        return;
    }
    for (ptrdiff_t start = 0; start < k; start += TILE) {
        const ptrdiff_t width = k - start < TILE ? k - start : TILE;
        max_plus_tile(k, previous, pairs + start, width, best);
        vector_axpy(width, 1.0, best, current + start);
    }
}

#endif

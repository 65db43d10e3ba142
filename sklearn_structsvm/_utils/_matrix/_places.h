/* Products of a sparse row with a few columns of weights, or of changes to weights. There
 * is a function for each number of columns up to four: the sums and addresses then stay
 * in registers, and each entry of the row is read once. */
#ifndef SKLEARN_STRUCTSVM_PLACES_H
#define SKLEARN_STRUCTSVM_PLACES_H

#include <stddef.h>

#include "_utils/_vector.h"

#define COLUMNS_AT_ONCE 4

/* `add_column_scores` for `width` places; `width` is known at compile time. */
static ALWAYS_INLINE void add_some_scores(ptrdiff_t count, const double *values,
                                          const int *indices, const double *weights,
                                          ptrdiff_t k, ptrdiff_t width, const int *places,
                                          double *out)
{
    const double *columns[COLUMNS_AT_ONCE];
    double sums[COLUMNS_AT_ONCE] = {0.0};
    for (ptrdiff_t s = 0; s < width; s++)
        columns[s] = weights + places[s];
    for (ptrdiff_t j = 0; j < count; j++) {
        const double x = values[j];
        const ptrdiff_t row = indices[j] * k;
        for (ptrdiff_t s = 0; s < width; s++)
            sums[s] += x * columns[s][row];
    }
    for (ptrdiff_t s = 0; s < width; s++)
        out[places[s]] += sums[s];
}

/* out[q] += Σ_j values[j] * weights[indices[j] * k + q - first] for the n places q. */
FOR_EACH_WIDTH
static void add_column_scores(ptrdiff_t count, const double *values, const int *indices,
                              const double *weights, ptrdiff_t k, ptrdiff_t n,
                              const int *places, ptrdiff_t first, double *out)
{
    weights -= first;
    for (; n >= 4; n -= 4, places += 4)
        add_some_scores(count, values, indices, weights, k, 4, places, out);
    if (n == 3)
        add_some_scores(count, values, indices, weights, k, 3, places, out);
    else if (n == 2)
        add_some_scores(count, values, indices, weights, k, 2, places, out);
    else if (n == 1)
        add_some_scores(count, values, indices, weights, k, 1, places, out);
}

/* `add_to_columns` for `width` places; `width` is known at compile time. */
static ALWAYS_INLINE void add_some_columns(ptrdiff_t count, double coef,
                                           const double *values, const int *indices,
                                           ptrdiff_t k, ptrdiff_t width,
                                           const int *places, const double *delta,
                                           double *target)
{
    double *columns[COLUMNS_AT_ONCE];
    double steps[COLUMNS_AT_ONCE];
    for (ptrdiff_t s = 0; s < width; s++) {
        columns[s] = target + places[s];
        steps[s] = delta[places[s]];
    }
    for (ptrdiff_t j = 0; j < count; j++) {
        const double x = coef * values[j];
        const ptrdiff_t row = indices[j] * k;
        for (ptrdiff_t s = 0; s < width; s++)
            columns[s][row] += x * steps[s];
    }
}

/* target[indices[j] * k + q - first] += coef * values[j] * delta[q] for all j and the n
 * places q. */
FOR_EACH_WIDTH
static void add_to_columns(ptrdiff_t count, double coef, const double *values,
                           const int *indices, ptrdiff_t n, const int *places,
                           ptrdiff_t first, const double *delta, ptrdiff_t k,
                           double *target)
{
    target -= first;
    for (; n >= 4; n -= 4, places += 4)
        add_some_columns(count, coef, values, indices, k, 4, places, delta, target);
    if (n == 3)
        add_some_columns(count, coef, values, indices, k, 3, places, delta, target);
    else if (n == 2)
        add_some_columns(count, coef, values, indices, k, 2, places, delta, target);
    else if (n == 1)
        add_some_columns(count, coef, values, indices, k, 1, places, delta, target);
}

#endif

/* The loops over the classes of one example, compiled like those of _vector.h. */
#ifndef SKLEARN_STRUCTSVM_FLAT_BLOCKS_H
#define SKLEARN_STRUCTSVM_FLAT_BLOCKS_H

#include "_utils/_vector.h"

/* Sums and maxima may be computed in any order. */
/* values = cost + theta and raised = values + beta nu; `best` and `highest` are their
 * maxima. */
FOR_EACH_WIDTH
static void class_values(ptrdiff_t k, double beta, const double *cost,
                         const double *theta, const double *nu, double *values,
                         double *raised, double *best, double *highest)
{
    double most = cost[0] + theta[0], most_raised = most + beta * nu[0];
    LOOP(omp simd reduction(max : most, most_raised))
    for (ptrdiff_t c = 0; c < k; c++) {
        const double value = cost[c] + theta[c];
        const double up = value + beta * nu[c];
        values[c] = value;
        raised[c] = up;
        most = value > most ? value : most;
        most_raised = up > most_raised ? up : most_raised;
    }
    *best = most;
    *highest = most_raised;
}

/* Returns max_c cost[c] + theta[c]; `behind` is the sum, weighted by nu, of how far each
 * cost[c] + theta[c] is below it. */
FOR_EACH_WIDTH
static double class_hinge(ptrdiff_t k, const double *cost, const double *theta,
                          const double *nu, double *behind)
{
    double most = cost[0] + theta[0], sum = 0.0;
    LOOP(omp simd reduction(max : most))
    for (ptrdiff_t c = 0; c < k; c++)
        most = cost[c] + theta[c] > most ? cost[c] + theta[c] : most;
    LOOP(omp simd reduction(+ : sum))
    for (ptrdiff_t c = 0; c < k; c++)
        sum += nu[c] * (most - cost[c] - theta[c]);
    *behind = sum;
    return most;
}

#endif

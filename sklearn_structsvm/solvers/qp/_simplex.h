/* Projection onto the simplex, compiled for several widths of vector unit: its loops are
 * sums over the entries, which may be reordered where OpenMP's directive allows it.
 * Results differ between widths only by rounding. */
#ifndef SKLEARN_STRUCTSVM_SIMPLEX_H
#define SKLEARN_STRUCTSVM_SIMPLEX_H

#include "_utils/_vector.h"

/* Replace x by the nearest point of {x >= 0, sum of x = 1}; n > 0. */
FOR_EACH_WIDTH
static void simplex_project(ptrdiff_t n, double *x)
{
    double top = x[0], sum = 0.0, theta;
    LOOP(omp simd reduction(max : top))
    for (ptrdiff_t j = 0; j < n; j++)
        top = x[j] > top ? x[j] : top;
    /* With zero for the largest entry, theta is in [-1, 0) however large they are. */
    LOOP(omp simd reduction(+ : sum))
    for (ptrdiff_t j = 0; j < n; j++) {
        x[j] -= top;
        sum += x[j];
    }
    /* Start from below: theta as if only the largest entry counted, or all of them. */
    theta = (sum - 1.0) / (double) n;
    theta = theta > -1.0 ? theta : -1.0;
    for (;;) {
        double excess = -1.0, count = 0.0;
        LOOP(omp simd reduction(+ : excess, count))
        for (ptrdiff_t j = 0; j < n; j++) {
            const double above = x[j] - theta;
            excess += above > 0.0 ? above : 0.0;
            count += above > 0.0 ? 1.0 : 0.0;
        }
        excess /= count;
        if (!(theta + excess > theta))
            break;
        theta += excess;
    }
    sum = 0.0;
    LOOP(omp simd reduction(+ : sum))
    for (ptrdiff_t j = 0; j < n; j++) {
        const double above = x[j] - theta;
        x[j] = above > 0.0 ? above : 0.0;
        sum += x[j];
    }
    for (ptrdiff_t j = 0; j < n; j++)
        x[j] /= sum;
}

#endif

/* Passes over the scores of two classes, one score per example, as vector code: sums run
 * in LANES lanes, and then over the lanes in order. */
#ifndef SKLEARN_STRUCTSVM_SCAN_BINARY_H
#define SKLEARN_STRUCTSVM_SCAN_BINARY_H

#include <math.h>
#include "risks/_scan.h"

/* The largest number of examples in a block. */
#define MAX_BLOCK 256

/* Left and right derivative of max(0, value) if the value has this slope. */
#define HINGE_SLOPES(value, slope, left, right)                                       \
    do {                                                                              \
        const double least_ = slope < 0.0 ? slope : 0.0;                              \
        const double most_ = slope > 0.0 ? slope : 0.0;                               \
        left = value > 0.0 ? slope : (value == 0.0 ? least_ : 0.0);                   \
        right = value > 0.0 ? slope : (value == 0.0 ? most_ : 0.0);                   \
    } while (0)

/* Derivatives of max(0, cost - y (z + eta a)), `costs` and `signs` by example. */
FOR_EACH_WIDTH
static void binary_slopes(ptrdiff_t count, const ptrdiff_t *rows, const double *Z,
                          const double *A, const double *signs, const double *costs,
                          const double *etas, const struct slopes *out)
{
    double *left = out->left[0], *right = out->right[0];
    double *left2 = out->left[1], *right2 = out->right[1];
    const double first = etas[0], second = etas[1];
    for (ptrdiff_t j = 0; j < count; j++) {
        const ptrdiff_t i = rows[j];
        const double slope = -signs[i] * A[i], start = costs[i] - signs[i] * Z[i];
        const double value = start + first * slope, value2 = start + second * slope;
        HINGE_SLOPES(value, slope, left[j], right[j]);
        HINGE_SLOPES(value2, slope, left2[j], right2[j]);
    }
}

/* Same as above for consecutive examples from `begin` on: nothing is gathered. */
FOR_EACH_WIDTH
static void binary_slopes_range(ptrdiff_t begin, ptrdiff_t count, const double *Z,
                                const double *A, const double *signs,
                                const double *costs, const double *etas,
                                const struct slopes *out)
{
    double *left = out->left[0], *right = out->right[0];
    double *left2 = out->left[1], *right2 = out->right[1];
    const double first = etas[0], second = etas[1];
    for (ptrdiff_t j = 0; j < count; j++) {
        const ptrdiff_t i = begin + j;
        const double slope = -signs[i] * A[i], start = costs[i] - signs[i] * Z[i];
        const double value = start + first * slope, value2 = start + second * slope;
        HINGE_SLOPES(value, slope, left[j], right[j]);
        HINGE_SLOPES(value2, slope, left2[j], right2[j]);
    }
}

/* max(0, cost - y z) */
FOR_EACH_WIDTH
static void binary_losses(ptrdiff_t count, const double *Z, const double *signs,
                          const double *costs, double *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const double value = costs[i] - signs[i] * Z[i];
        out[i] = value > 0.0 ? value : 0.0;
    }
}

static ALWAYS_INLINE double sum_of(ptrdiff_t count, const double *terms)
{
    double sums[LANES] = {0.0}, total = 0.0;
    ptrdiff_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        SIMD
        for (int l = 0; l < LANES; l++)
            sums[l] += terms[j + l];
    }
    for (int l = 0; l < LANES; l++)
        total += sums[l];
    for (; j < count; j++)
        total += terms[j];
    return total;
}

/* B = -p y if the loss is positive, or (given A) if it is zero and rises along A, and 0
 * otherwise; returns the sum of p cost over these. At most MAX_BLOCK examples. */
FOR_EACH_WIDTH
static double binary_worst(ptrdiff_t count, const double *Z, const double *A,
                           const double *signs, const double *costs, const double *p,
                           double rtol, double *B)
{
    double terms[MAX_BLOCK];
    if (A == NULL)
        for (ptrdiff_t i = 0; i < count; i++) {
            const double wrong = costs[i] - signs[i] * Z[i] > 0.0 ? p[i] : 0.0;
            B[i] = -wrong * signs[i];
            terms[i] = wrong * costs[i];
        }
    else
        for (ptrdiff_t i = 0; i < count; i++) {
            const double value = costs[i] - signs[i] * Z[i];
            const double tie = rtol * (costs[i] + fabs(Z[i]));
            const double rising = signs[i] * A[i] < 0.0 ? p[i] : 0.0;
            const double clear = value > 0.0 ? p[i] : 0.0;
            const double wrong = fabs(value) <= tie ? rising : clear;
            B[i] = -wrong * signs[i];
            terms[i] = wrong * costs[i];
        }
    return sum_of(count, terms);
}

/* Over examples begin, begin + 1, ..., at most MAX_BLOCK of them: the sums of p times
 * the loss's right derivative at `lower` and left derivative at `upper`, of their
 * magnitudes, and of those that are equal at both. The other examples are written to
 * `rows`; returns their number. */
FOR_EACH_WIDTH
static ptrdiff_t binary_ends(ptrdiff_t begin, ptrdiff_t count, const double *Z,
                             const double *A, const double *signs, const double *costs,
                             const double *p, double lower, double upper, double *sums,
                             ptrdiff_t *rows)
{
    double at_lower[MAX_BLOCK], at_upper[MAX_BLOCK], size[MAX_BLOCK], same[MAX_BLOCK];
    ptrdiff_t n_open = 0;
    for (ptrdiff_t j = 0; j < count; j++) {
        const ptrdiff_t i = begin + j;
        const double slope = -signs[i] * A[i], start = costs[i] - signs[i] * Z[i];
        const double value = start + lower * slope, value2 = start + upper * slope;
        const double weighed = p[i] * slope;
        const double rising = weighed > 0.0 ? weighed : 0.0;
        const double falling = weighed < 0.0 ? weighed : 0.0;
        const double first = value > 0.0 ? weighed : (value == 0.0 ? rising : 0.0);
        const double second = value2 > 0.0 ? weighed : (value2 == 0.0 ? falling : 0.0);
        at_lower[j] = first;
        at_upper[j] = second;
        same[j] = first == second ? first : 0.0;
    }
    sums[0] = sum_of(count, at_lower);
    sums[1] = sum_of(count, at_upper);
    sums[4] = sum_of(count, same);
    for (ptrdiff_t j = 0; j < count; j++)
        size[j] = fabs(at_lower[j]);
    sums[2] = sum_of(count, size);
    for (ptrdiff_t j = 0; j < count; j++)
        size[j] = fabs(at_upper[j]);
    sums[3] = sum_of(count, size);
    for (ptrdiff_t j = 0; j < count; j++) {
        rows[n_open] = begin + j;
        n_open += at_lower[j] != at_upper[j];
    }
    return n_open;
}

#endif

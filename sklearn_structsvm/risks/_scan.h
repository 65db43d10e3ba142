/* One pass over the scores of many examples, LANES of them side by side, compiled for
 * several widths of vector unit where `_vector.h` can choose between them. Rows of
 * scores are contiguous by example (n x k), so a step of the inner loops reads the same
 * label of LANES rows; from there on, all is vector arithmetic without reductions. */
#ifndef SKLEARN_STRUCTSVM_SCAN_H
#define SKLEARN_STRUCTSVM_SCAN_H

#include <math.h>
#include "_vector.h"

#define LANES 8

/* Keep in (top, low, high) the largest value and the least and largest slope of those
 * values that equal it. A macro, so that the loops around it stay plain to compilers. */
#define KEEP_LARGEST(value, slope, top, low, high)                                    \
    do {                                                                              \
        const double least_ = slope < low ? slope : low;                              \
        const double most_ = slope > high ? slope : high;                             \
        low = value > top ? slope : (value == top ? least_ : low);                    \
        high = value > top ? slope : (value == top ? most_ : high);                   \
        top = value > top ? value : top;                                              \
    } while (0)

/* Derivatives to the left and right of two steps: what a scan writes, n of each. */
struct slopes {
    double *left[2], *right[2];
};

/* Derivatives of max_c (cost_c + z_c - z_t + eta (a_c - a_t)) at two steps or, rescaled,
 * of max_c cost_c (1 + z_c - z_t + eta (a_c - a_t)). */
FOR_EACH_WIDTH
static void multiclass_slopes(ptrdiff_t count, const ptrdiff_t *rows, ptrdiff_t k,
                              const double *Z, const double *A, const int *truth,
                              const double *costs, int rescaled, const double *etas,
                              const struct slopes *out)
{
    const double first = etas[0], second = etas[1];
    for (ptrdiff_t j = 0; j < count; j += LANES) {
        const double *z[LANES], *a[LANES], *cost[LANES];
        double z0[LANES], a0[LANES];
        double top[LANES], low[LANES], high[LANES];
        double top2[LANES], low2[LANES], high2[LANES];
        const int filled = count - j < LANES ? (int)(count - j) : LANES;
        for (int l = 0; l < LANES; l++) {
            const ptrdiff_t i = rows[j + (l < filled ? l : 0)], t = truth[i];
            z[l] = Z + i * k;
            a[l] = A + i * k;
            cost[l] = costs + t * k;
            z0[l] = z[l][t];
            a0[l] = a[l][t];
            top[l] = top2[l] = -INFINITY;
            low[l] = high[l] = low2[l] = high2[l] = 0.0;
        }
        for (ptrdiff_t c = 0; c < k; c++) {
            double value[LANES], slope[LANES], value2[LANES];
            if (rescaled)
                for (int l = 0; l < LANES; l++) {
                    const double rise = a[l][c] - a0[l];
                    const double start = 1.0 + (z[l][c] - z0[l]);
                    value[l] = cost[l][c] * (start + first * rise);
                    value2[l] = cost[l][c] * (start + second * rise);
                    slope[l] = cost[l][c] * rise;
                }
            else
                for (int l = 0; l < LANES; l++) {
                    const double start = cost[l][c] + z[l][c];
                    slope[l] = a[l][c];
                    value[l] = start + first * slope[l];
                    value2[l] = start + second * slope[l];
                }
            for (int l = 0; l < LANES; l++)
                KEEP_LARGEST(value[l], slope[l], top[l], low[l], high[l]);
            for (int l = 0; l < LANES; l++)
                KEEP_LARGEST(value2[l], slope[l], top2[l], low2[l], high2[l]);
        }
        for (int l = 0; l < filled; l++) {
            const double base = rescaled ? 0.0 : a0[l];
            out->left[0][j + l] = low[l] - base;
            out->right[0][j + l] = high[l] - base;
            out->left[1][j + l] = low2[l] - base;
            out->right[1][j + l] = high2[l] - base;
        }
    }
}

/* Losses of the examples first, first + 1, ... and, unless `labels` is NULL, the label of
 * each that is worst; with A, of the labels within rtol of the worst the one that rises
 * most along A. */
FOR_EACH_WIDTH
static void multiclass_worst(ptrdiff_t first, ptrdiff_t count, ptrdiff_t k,
                             const double *Z, const double *A, const int *truth,
                             const double *costs, int rescaled, double rtol,
                             double *losses, int *labels)
{
    for (ptrdiff_t j = 0; j < count; j += LANES) {
        const double *z[LANES], *a[LANES], *cost[LANES];
        double z0[LANES], a0[LANES], top[LANES], scale[LANES], steepest[LANES];
        double label[LANES];
        const int filled = count - j < LANES ? (int)(count - j) : LANES;
        for (int l = 0; l < LANES; l++) {
            const ptrdiff_t i = first + j + (l < filled ? l : 0), t = truth[i];
            z[l] = Z + i * k;
            a[l] = A == NULL ? z[l] : A + i * k;
            cost[l] = costs + t * k;
            z0[l] = z[l][t];
            a0[l] = a[l][t];
            top[l] = steepest[l] = -INFINITY;
            scale[l] = 1.0;
            label[l] = 0.0;
        }
        for (ptrdiff_t c = 0; c < k; c++) {
            double value[LANES], size[LANES];
            for (int l = 0; l < LANES; l++) {
                const double rise = z[l][c] - z0[l];
                value[l] = rescaled ? cost[l][c] * (1.0 + rise) : cost[l][c] + rise;
                size[l] = fabs(z[l][c]) + cost[l][c];
                size[l] = rescaled ? cost[l][c] * (1.0 + size[l]) : size[l];
            }
            for (int l = 0; l < LANES; l++) {
                label[l] = value[l] > top[l] ? (double)c : label[l];
                top[l] = value[l] > top[l] ? value[l] : top[l];
                scale[l] = size[l] > scale[l] ? size[l] : scale[l];
            }
        }
        if (A != NULL)
            for (ptrdiff_t c = 0; c < k; c++) {
                double value[LANES], slope[LANES];
                for (int l = 0; l < LANES; l++) {
                    const double rise = z[l][c] - z0[l];
                    value[l] = rescaled ? cost[l][c] * (1.0 + rise) : cost[l][c] + rise;
                    slope[l] = a[l][c] - a0[l];
                    slope[l] = rescaled ? cost[l][c] * slope[l] : slope[l];
                }
                for (int l = 0; l < LANES; l++) {
                    const double tied = value[l] >= top[l] - rtol * scale[l]
                                            ? slope[l] : -INFINITY;
                    label[l] = tied > steepest[l] ? (double)c : label[l];
                    steepest[l] = tied > steepest[l] ? tied : steepest[l];
                }
            }
        for (int l = 0; l < filled; l++) {
            losses[j + l] = top[l];
            if (labels != NULL)
                labels[j + l] = (int)label[l];
        }
    }
}

/* Left and right derivative of max(0, value) where the value has this slope. */
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

/* The same where the examples are those from `begin` on: nothing is gathered. */
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

/* Derivatives of max(0, margin + max of absent labels - min of present labels). */
FOR_EACH_WIDTH
static void separable_slopes(ptrdiff_t count, const ptrdiff_t *rows, ptrdiff_t k,
                             const double *Z, const double *A, const signed char *present,
                             double margin, const double *etas, const struct slopes *out)
{
    for (int e = 0; e < 2; e++)
        for (ptrdiff_t j = 0; j < count; j += LANES) {
            const double *z[LANES], *a[LANES];
            const signed char *in[LANES];
            double top[LANES], low[LANES], high[LANES];
            double top_in[LANES], low_in[LANES], high_in[LANES];
            const int filled = count - j < LANES ? (int)(count - j) : LANES;
            for (int l = 0; l < LANES; l++) {
                const ptrdiff_t i = rows[j + (l < filled ? l : 0)];
                z[l] = Z + i * k;
                a[l] = A + i * k;
                in[l] = present + i * k;
                top[l] = top_in[l] = -INFINITY;
                low[l] = high[l] = low_in[l] = high_in[l] = 0.0;
            }
            for (ptrdiff_t c = 0; c < k; c++) {
                double value[LANES], slope[LANES], fall[LANES], value_in[LANES];
                for (int l = 0; l < LANES; l++) {
                    const double score = z[l][c] + etas[e] * a[l][c];
                    slope[l] = a[l][c];
                    fall[l] = -slope[l];
                    value[l] = in[l][c] ? -INFINITY : score;
                    value_in[l] = in[l][c] ? -score : -INFINITY;
                }
                for (int l = 0; l < LANES; l++)
                    KEEP_LARGEST(value[l], slope[l], top[l], low[l], high[l]);
                for (int l = 0; l < LANES; l++)
                    KEEP_LARGEST(value_in[l], fall[l], top_in[l], low_in[l], high_in[l]);
            }
            for (int l = 0; l < filled; l++) {
                const double value = margin + (top[l] + top_in[l]);
                const double least = low[l] + low_in[l], most = high[l] + high_in[l];
                out->left[e][j + l] =
                    value > 0.0 || (value == 0.0 && least < 0.0) ? least : 0.0;
                out->right[e][j + l] =
                    value > 0.0 || (value == 0.0 && most > 0.0) ? most : 0.0;
            }
        }
}

#endif

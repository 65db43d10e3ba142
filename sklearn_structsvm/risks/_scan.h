/* One pass over the scores of many examples, LANES of them side by side, compiled for
 * several widths of vector unit if `_vector.h` can choose between them. Rows of
 * scores are contiguous by example (n x k), so a step of the inner loops reads the same
 * label of LANES rows; from there on, all is vector arithmetic without reductions. */
#ifndef SKLEARN_STRUCTSVM_SCAN_H
#define SKLEARN_STRUCTSVM_SCAN_H

#include <math.h>
#include "_utils/_vector.h"

#define LANES 8

/* The loops over lanes only appear to have branches. */
#define SIMD LOOP(omp simd)

/* Rows are read a column at a time, a pattern that the processor does not recognize by
 * itself. */
static ALWAYS_INLINE void ask_for_row(ptrdiff_t k, const double *row)
{
    for (ptrdiff_t c = 0; c < k; c += 8)
        PREFETCH(row + c);
}

/* Keep in (top, low, high) the largest value, and the smallest and largest slope among
 * the values equal to it. A macro, so that the loops around it stay simple for
 * compilers. */
#define KEEP_LARGEST(value, slope, top, low, high)                                    \
    do {                                                                              \
        const double least_ = slope < low ? slope : low;                              \
        const double most_ = slope > high ? slope : high;                             \
        low = value > top ? slope : (value == top ? least_ : low);                    \
        high = value > top ? slope : (value == top ? most_ : high);                   \
        top = value > top ? value : top;                                              \
    } while (0)

/* Left and right derivatives at two steps, as a scan writes them: n of each. */
struct slopes {
    double *left[2], *right[2];
};

/* The cost of a label c for an example whose truth is t: the same for all, as listed, or
 * as listed and rescaling the slack. Inner loops are compiled for each. */
enum costs { UNIFORM, LISTED, RESCALED };

/* LANES rows of scores, of a direction's scores and of costs; the true label of each row,
 * and its two scores. */
struct tile {
    const double *z[LANES], *a[LANES], *cost[LANES];
    double z0[LANES], a0[LANES], truth[LANES];
};

static ALWAYS_INLINE void add_row(struct tile *tile, int l, ptrdiff_t i, ptrdiff_t next, ptrdiff_t k,
                    const double *Z, const double *A, const int *truth,
                    const double *costs)
{
    const ptrdiff_t t = truth[i];
    ask_for_row(k, Z + next * k);
    ask_for_row(k, A + next * k);
    tile->z[l] = Z + i * k;
    tile->a[l] = A + i * k;
    tile->cost[l] = costs + t * k;
    tile->z0[l] = Z[i * k + t];
    tile->a0[l] = A[i * k + t];
    tile->truth[l] = (double)t;
}

/* Cost of label c, its score minus the truth's, and the same difference for the
 * direction. */
static ALWAYS_INLINE void read_column(const struct tile *tile, ptrdiff_t c, const enum costs kind,
                        double margin, double *cost, double *rise, double *slope)
{
    for (int l = 0; l < LANES; l++) {
        rise[l] = tile->z[l][c] - tile->z0[l];
        slope[l] = tile->a[l][c] - tile->a0[l];
    }
    if (kind == UNIFORM) {
        SIMD
        for (int l = 0; l < LANES; l++)
            cost[l] = tile->truth[l] == (double)c ? 0.0 : margin;
    } else
        for (int l = 0; l < LANES; l++)
            cost[l] = tile->cost[l][c];
}

static ALWAYS_INLINE void slopes_of(ptrdiff_t count, const ptrdiff_t *rows, ptrdiff_t k,
                      const double *Z, const double *A, const int *truth,
                      const double *costs, const enum costs kind, double margin,
                      const double *etas, const struct slopes *out)
{
    const double first = etas[0], second = etas[1];
    for (ptrdiff_t j = 0; j < count; j += LANES) {
        struct tile tile;
        double top[LANES], low[LANES], high[LANES];
        double top2[LANES], low2[LANES], high2[LANES];
        const int filled = count - j < LANES ? (int)(count - j) : LANES;
        for (int l = 0; l < LANES; l++) {
            const ptrdiff_t at = j + (l < filled ? l : 0);
            add_row(&tile, l, rows[at], rows[at + LANES < count ? at + LANES : at], k, Z,
                    A, truth, costs);
            top[l] = top2[l] = -INFINITY;
            low[l] = high[l] = low2[l] = high2[l] = 0.0;
        }
        for (ptrdiff_t c = 0; c < k; c++) {
            double cost[LANES], rise[LANES], slope[LANES], value[LANES], value2[LANES];
            read_column(&tile, c, kind, margin, cost, rise, slope);
            SIMD
            for (int l = 0; l < LANES; l++) {
                if (kind == RESCALED) {
                    const double start = cost[l] * (1.0 + rise[l]);
                    slope[l] *= cost[l];
                    value[l] = start + first * slope[l];
                    value2[l] = start + second * slope[l];
                } else {
                    value[l] = (cost[l] + rise[l]) + first * slope[l];
                    value2[l] = (cost[l] + rise[l]) + second * slope[l];
                }
                KEEP_LARGEST(value[l], slope[l], top[l], low[l], high[l]);
                KEEP_LARGEST(value2[l], slope[l], top2[l], low2[l], high2[l]);
            }
        }
        for (int l = 0; l < filled; l++) {
            out->left[0][j + l] = low[l];
            out->right[0][j + l] = high[l];
            out->left[1][j + l] = low2[l];
            out->right[1][j + l] = high2[l];
        }
    }
}

/* Derivatives along their lines, at two steps, of multiclass losses
 * max_c (cost_c + z_c - z_t) or, rescaled, max_c cost_c (1 + z_c - z_t). */
FOR_EACH_WIDTH
static void multiclass_slopes(ptrdiff_t count, const ptrdiff_t *rows, ptrdiff_t k,
                              const double *Z, const double *A, const int *truth,
                              const double *costs, int kind, double margin,
                              const double *etas, const struct slopes *out)
{
    if (kind == UNIFORM)
        slopes_of(count, rows, k, Z, A, truth, costs, UNIFORM, margin, etas, out);
    else if (kind == LISTED)
        slopes_of(count, rows, k, Z, A, truth, costs, LISTED, margin, etas, out);
    else
        slopes_of(count, rows, k, Z, A, truth, costs, RESCALED, margin, etas, out);
}

static ALWAYS_INLINE void worst_of(ptrdiff_t first, ptrdiff_t count, ptrdiff_t k, const double *Z,
                     const double *A, const int *truth, const double *costs,
                     const enum costs kind, double margin, const int steepest,
                     double rtol, double *losses, int *labels)
{
    for (ptrdiff_t j = 0; j < count; j += LANES) {
        struct tile tile;
        double top[LANES], scale[LANES], most[LANES], label[LANES];
        const int filled = count - j < LANES ? (int)(count - j) : LANES;
        for (int l = 0; l < LANES; l++) {
            const ptrdiff_t i = first + j + (l < filled ? l : 0);
            add_row(&tile, l, i, i + LANES < first + count ? i + LANES : i, k, Z, A,
                    truth, costs);
            top[l] = most[l] = -INFINITY;
            scale[l] = 0.0;
            label[l] = 0.0;
        }
        for (ptrdiff_t c = 0; c < k; c++) {
            double cost[LANES], rise[LANES], slope[LANES];
            read_column(&tile, c, kind, margin, cost, rise, slope);
            SIMD
            for (int l = 0; l < LANES; l++) {
                const double value =
                    kind == RESCALED ? cost[l] * (1.0 + rise[l]) : cost[l] + rise[l];
                label[l] = value > top[l] ? (double)c : label[l];
                top[l] = value > top[l] ? value : top[l];
                if (steepest) {
                    const double score = fabs(rise[l] + tile.z0[l]);
                    const double size =
                        kind == RESCALED ? cost[l] * (1.0 + score) : cost[l] + score;
                    scale[l] = size > scale[l] ? size : scale[l];
                }
            }
        }
        for (ptrdiff_t c = 0; steepest && c < k; c++) {
            double cost[LANES], rise[LANES], slope[LANES];
            read_column(&tile, c, kind, margin, cost, rise, slope);
            SIMD
            for (int l = 0; l < LANES; l++) {
                const double value =
                    kind == RESCALED ? cost[l] * (1.0 + rise[l]) : cost[l] + rise[l];
                const double fall =
                    kind == RESCALED ? cost[l] * slope[l] : slope[l];
                const double tied =
                    value >= top[l] - rtol * scale[l] ? fall : -INFINITY;
                label[l] = tied > most[l] ? (double)c : label[l];
                most[l] = tied > most[l] ? tied : most[l];
            }
        }
        for (int l = 0; l < filled; l++) {
            losses[j + l] = top[l];
            labels[j + l] = (int)label[l];
        }
    }
}

/* Losses of the examples first, first + 1, ... and the worst label of each; with A, the
 * label that rises most along A among those within rtol of the worst. */
FOR_EACH_WIDTH
static void multiclass_worst(ptrdiff_t first, ptrdiff_t count, ptrdiff_t k,
                             const double *Z, const double *A, const int *truth,
                             const double *costs, int kind, double margin, double rtol,
                             double *losses, int *labels)
{
    if (A == NULL && kind == UNIFORM)
        worst_of(first, count, k, Z, Z, truth, costs, UNIFORM, margin, 0, 0.0, losses,
                 labels);
    else if (A == NULL && kind == LISTED)
        worst_of(first, count, k, Z, Z, truth, costs, LISTED, margin, 0, 0.0, losses,
                 labels);
    else if (A == NULL)
        worst_of(first, count, k, Z, Z, truth, costs, RESCALED, margin, 0, 0.0, losses,
                 labels);
    else if (kind == UNIFORM)
        worst_of(first, count, k, Z, A, truth, costs, UNIFORM, margin, 1, rtol, losses,
                 labels);
    else if (kind == LISTED)
        worst_of(first, count, k, Z, A, truth, costs, LISTED, margin, 1, rtol, losses,
                 labels);
    else
        worst_of(first, count, k, Z, A, truth, costs, RESCALED, margin, 1, rtol, losses,
                 labels);
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
                SIMD
                for (int l = 0; l < LANES; l++)
                    KEEP_LARGEST(value[l], slope[l], top[l], low[l], high[l]);
                SIMD
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

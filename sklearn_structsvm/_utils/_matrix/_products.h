/* X W and Xᵀ B for tall X and few columns. General matrix products are slow at these:
 * they first pack X, which is as large as everything else together. The functions here
 * read the rows of X in place, once. */
#ifndef SKLEARN_STRUCTSVM_PRODUCTS_H
#define SKLEARN_STRUCTSVM_PRODUCTS_H

#include <string.h>
#include "_utils/_vector.h"

/* The columns of W are packed in panels of three groups of four, one after the other: 16
 * vector registers hold the sums of a panel for PANEL_ROWS rows. */
#define GROUP 4
#define PANEL 12
#define PANEL_ROWS 4

#ifdef GNU_C
typedef double group __attribute__((vector_size(GROUP * sizeof(double))));
#define TIMES_ADD(sum, x, w) sum += (x) * (w)
#else
typedef struct { double at[GROUP]; } group;
#define TIMES_ADD(sum, x, w)                  \
    do {                                      \
        for (int l_ = 0; l_ < GROUP; l_++)    \
            (sum).at[l_] += (x) * (w).at[l_]; \
    } while (0)
#endif

#define STORE(to, first, second, third)                    \
    do {                                                   \
        memcpy((to), &first, sizeof(group));               \
        memcpy((to) + GROUP, &second, sizeof(group));      \
        memcpy((to) + 2 * GROUP, &third, sizeof(group));   \
    } while (0)

/* Rows shorter than this are prefetched: the processor does not recognize the pattern of
 * four rows at a time by itself if they are shorter than a page. */
#define LONG_ROW 512

static ALWAYS_INLINE void ask_for_rows(ptrdiff_t f, ptrdiff_t left, const double *x)
{
    if (f >= LONG_ROW)
        return;
    const ptrdiff_t end = left < 2 * PANEL_ROWS ? left : 2 * PANEL_ROWS;
    for (ptrdiff_t j = PANEL_ROWS * f; j < end * f; j += 8)
        PREFETCH(x + j);
}

/* Number of columns of the next panel if `left` columns remain. A panel of one group
 * never follows others: its few sums would wait for one another. */
static inline ptrdiff_t panel_width(ptrdiff_t left)
{
    if (left <= PANEL)
        return left;
    return left <= PANEL + GROUP ? 2 * GROUP : PANEL;
}

/* out = X W, with `out` of shape (count, k) and X of shape (count, f); `panels` holds W
 * as `pack_panels` writes it. */
FOR_EACH_FMA
static void dense_scores(ptrdiff_t count, ptrdiff_t f, ptrdiff_t k, const double *X,
                         const double *panels, double *out)
{
    for (ptrdiff_t i = 0; i < count; i += PANEL_ROWS) {
        const ptrdiff_t last = count - 1;
        const double *x0 = X + i * f, *x1 = X + (i + 1 < last ? i + 1 : last) * f;
        const double *x2 = X + (i + 2 < last ? i + 2 : last) * f;
        const double *x3 = X + (i + 3 < last ? i + 3 : last) * f;
        const ptrdiff_t filled = count - i < PANEL_ROWS ? count - i : PANEL_ROWS;
        const double *w = panels;
        ask_for_rows(f, count - i, X + i * f);
        for (ptrdiff_t c = 0, width; c < k; c += width) {
            double sums[PANEL_ROWS][PANEL];
            group s00, s01, s02, s10, s11, s12, s20, s21, s22, s30, s31, s32;
            width = panel_width(k - c);
            memset(sums, 0, sizeof sums);
            memcpy(&s00, sums[0], sizeof s00);
            s01 = s02 = s10 = s11 = s12 = s00;
            s20 = s21 = s22 = s30 = s31 = s32 = s00;
            if (width > 2 * GROUP)
                for (ptrdiff_t j = 0; j < f; j++, w += 3 * GROUP) {
                    group w0, w1, w2;
                    memcpy(&w0, w, sizeof w0);
                    memcpy(&w1, w + GROUP, sizeof w1);
                    memcpy(&w2, w + 2 * GROUP, sizeof w2);
                    TIMES_ADD(s00, x0[j], w0);
                    TIMES_ADD(s01, x0[j], w1);
                    TIMES_ADD(s02, x0[j], w2);
                    TIMES_ADD(s10, x1[j], w0);
                    TIMES_ADD(s11, x1[j], w1);
                    TIMES_ADD(s12, x1[j], w2);
                    TIMES_ADD(s20, x2[j], w0);
                    TIMES_ADD(s21, x2[j], w1);
                    TIMES_ADD(s22, x2[j], w2);
                    TIMES_ADD(s30, x3[j], w0);
                    TIMES_ADD(s31, x3[j], w1);
                    TIMES_ADD(s32, x3[j], w2);
                }
            else if (width > GROUP)
                for (ptrdiff_t j = 0; j < f; j++, w += 2 * GROUP) {
                    group w0, w1;
                    memcpy(&w0, w, sizeof w0);
                    memcpy(&w1, w + GROUP, sizeof w1);
                    TIMES_ADD(s00, x0[j], w0);
                    TIMES_ADD(s01, x0[j], w1);
                    TIMES_ADD(s10, x1[j], w0);
                    TIMES_ADD(s11, x1[j], w1);
                    TIMES_ADD(s20, x2[j], w0);
                    TIMES_ADD(s21, x2[j], w1);
                    TIMES_ADD(s30, x3[j], w0);
                    TIMES_ADD(s31, x3[j], w1);
                }
            else
                for (ptrdiff_t j = 0; j < f; j++, w += GROUP) {
                    group w0;
                    memcpy(&w0, w, sizeof w0);
                    TIMES_ADD(s00, x0[j], w0);
                    TIMES_ADD(s10, x1[j], w0);
                    TIMES_ADD(s20, x2[j], w0);
                    TIMES_ADD(s30, x3[j], w0);
                }
            /* A full panel is written to `out` straight from the registers. */
            if (width == PANEL && filled == PANEL_ROWS) {
                double *to = out + i * k + c;
                STORE(to, s00, s01, s02);
                STORE(to + k, s10, s11, s12);
                STORE(to + 2 * k, s20, s21, s22);
                STORE(to + 3 * k, s30, s31, s32);
                continue;
            }
            STORE(sums[0], s00, s01, s02);
            STORE(sums[1], s10, s11, s12);
            STORE(sums[2], s20, s21, s22);
            STORE(sums[3], s30, s31, s32);
            for (ptrdiff_t r = 0; r < filled; r++)
                for (ptrdiff_t l = 0; l < width; l++)
                    out[(i + r) * k + c + l] = sums[r][l];
        }
    }
}

/* Number of doubles in the panels of W. Each panel has f rows of one to three groups, the
 * last of which is padded with zeros. */
static ptrdiff_t panels_size(ptrdiff_t f, ptrdiff_t k)
{
    return f * ((k + GROUP - 1) / GROUP * GROUP);
}

static void pack_panels(ptrdiff_t f, ptrdiff_t k, const double *W, double *panels)
{
    for (ptrdiff_t c = 0, width; c < k; c += width) {
        width = panel_width(k - c);
        const ptrdiff_t padded = (width + GROUP - 1) / GROUP * GROUP;
        for (ptrdiff_t j = 0; j < f; j++, panels += padded)
            for (ptrdiff_t l = 0; l < padded; l++)
                panels[l] = l < width ? W[j * k + c + l] : 0.0;
    }
}

/* out = X w for one column. */
FOR_EACH_FMA
static void dense_score(ptrdiff_t count, ptrdiff_t f, const double *X, const double *w,
                        double *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const double *x = X + i * f;
        double sums[4 * GROUP], total = 0.0;
        ptrdiff_t j = 0;
        memset(sums, 0, sizeof sums);
        for (; j + 4 * GROUP <= f; j += 4 * GROUP)
            for (int l = 0; l < 4 * GROUP; l++)
                sums[l] += x[j + l] * w[j + l];
        for (; j < f; j++)
            total += x[j] * w[j];
        for (int l = 0; l < 4 * GROUP; l++)
            total += sums[l];
        out[i] = total;
    }
}

static ALWAYS_INLINE void add_row(ptrdiff_t f, double b, const double *RESTRICT x,
                           double *RESTRICT sum)
{
    for (ptrdiff_t j = 0; j < f; j++)
        sum[j] += b * x[j];
}

static ALWAYS_INLINE void add_rows(ptrdiff_t f, const double *b, ptrdiff_t k,
                            const double *RESTRICT x, double *RESTRICT sum)
{
    const double b0 = b[0], b1 = b[k], b2 = b[2 * k], b3 = b[3 * k];
    for (ptrdiff_t j = 0; j < f; j++)
        sum[j] += (b0 * x[j] + b1 * x[f + j]) + (b2 * x[2 * f + j] + b3 * x[3 * f + j]);
}

/* sums += Bᵀ X, with `sums` of shape (k, f): a row for each column of B. With hinge
 * losses, rows of B are mostly zeros, and zeros cost nothing; if there are few zeros,
 * several rows of X are processed together. */
FOR_EACH_FMA
static void dense_gradient(ptrdiff_t count, ptrdiff_t f, ptrdiff_t k, const double *X,
                           const double *B, double *sums)
{
    ptrdiff_t i = 0;
    for (; i + PANEL_ROWS <= count; i += PANEL_ROWS) {
        const double *b = B + i * k, *x = X + i * f;
        ptrdiff_t zeros = 0;
        ask_for_rows(f, count - i, x);
        for (ptrdiff_t c = 0; c < PANEL_ROWS * k; c++)
            zeros += b[c] == 0.0;
        if (zeros == PANEL_ROWS * k)
            continue;
        if (2 * zeros < PANEL_ROWS * k)
            for (ptrdiff_t c = 0; c < k; c++)
                add_rows(f, b + c, k, x, sums + c * f);
        else
            for (ptrdiff_t c = 0; c < PANEL_ROWS * k; c++)
                if (b[c] != 0.0)
                    add_row(f, b[c], x + c / k * f, sums + c % k * f);
    }
    for (; i < count; i++)
        for (ptrdiff_t c = 0; c < k; c++)
            if (B[i * k + c] != 0.0)
                add_row(f, B[i * k + c], X + i * f, sums + c * f);
}

#endif

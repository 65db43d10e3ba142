/* Operations on rows of numbers for the messages of a forest. Like the loops of
 * `_vector.h`, they are compiled for several widths of vector unit. */
#ifndef SKLEARN_STRUCTSVM_SUM_PRODUCT_H
#define SKLEARN_STRUCTSVM_SUM_PRODUCT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_utils/_vector.h"

/* exp(x) to about a unit in the last place, without a branch or a call. With
 * x = n ln 2 + r and |r| <= ln(2) / 2, a Taylor polynomial gives exp(r), and the bits of
 * the exponent give 2^n. The result is 0 below -708, and exp(709) above 709. */
static ALWAYS_INLINE double exp_of(double x)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: the sum's low bits are n */
    const double up = x < -708.0 ? -708.0 : x;
    const double value = up > 709.0 ? 709.0 : up;
    const double shifted = value * 1.4426950408889634 + shift;
    const double n = shifted - shift;
    const double r = (value - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    double sum = 1.0 / 6227020800.0;
    sum = sum * r + 1.0 / 479001600.0;
    sum = sum * r + 1.0 / 39916800.0;
    sum = sum * r + 1.0 / 3628800.0;
    sum = sum * r + 1.0 / 362880.0;
    sum = sum * r + 1.0 / 40320.0;
    sum = sum * r + 1.0 / 5040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 0.5;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    uint64_t bits;
    double power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&power, &bits, sizeof power);
    return x < -708.0 ? 0.0 : sum * power;
}

/* out[c] = exp(x[c] - shift) */
FOR_EACH_WIDTH
static void vector_exp(ptrdiff_t k, const double *x, double shift, double *out)
{
    for (ptrdiff_t c = 0; c < k; c++)
        out[c] = exp_of(x[c] - shift);
}

/* The lowest and the highest entry of x, from eight partial minima and maxima. */
FOR_EACH_WIDTH
static void vector_range(ptrdiff_t k, const double *x, double *lowest, double *highest)
{
    double low[8], high[8];
    ptrdiff_t c = 0;
    for (ptrdiff_t j = 0; j < 8; j++)
        low[j] = high[j] = x[0];
    for (; c + 8 <= k; c += 8)
        for (ptrdiff_t j = 0; j < 8; j++) {
            low[j] = x[c + j] < low[j] ? x[c + j] : low[j];
            high[j] = x[c + j] > high[j] ? x[c + j] : high[j];
        }
    for (; c < k; c++) {
        low[0] = x[c] < low[0] ? x[c] : low[0];
        high[0] = x[c] > high[0] ? x[c] : high[0];
    }
    *lowest = low[0];
    *highest = high[0];
    for (ptrdiff_t j = 1; j < 8; j++) {
        *lowest = low[j] < *lowest ? low[j] : *lowest;
        *highest = high[j] > *highest ? high[j] : *highest;
    }
}

/* out = x + y */
FOR_EACH_WIDTH
static void vector_sum(ptrdiff_t n, const double *x, const double *y, double *out)
{
    for (ptrdiff_t j = 0; j < n; j++)
        out[j] = x[j] + y[j];
}

/* out *= x */
FOR_EACH_WIDTH
static void vector_multiply(ptrdiff_t n, const double *x, double *out)
{
    for (ptrdiff_t j = 0; j < n; j++)
        out[j] *= x[j];
}

/* out = x + gamma (y - x) */
FOR_EACH_WIDTH
static void vector_mix(ptrdiff_t n, double gamma, const double *x, const double *y,
                       double *out)
{
    for (ptrdiff_t j = 0; j < n; j++)
        out[j] = x[j] + gamma * (y[j] - x[j]);
}

#ifdef GNU_C
typedef double four_t __attribute__((vector_size(32), aligned(8), may_alias));
#define FOUR(address) (*(const four_t *) (address))
#endif

/* z -= nu; returns <y - x, z> of the new z, and sets the products of m with the old and
 * with the new z. */
FOR_EACH_WIDTH
static double vector_move_to(ptrdiff_t n, const double *x, const double *y,
                             const double *m, const double *nu, double *z,
                             double *before, double *after)
{
    double slope = 0.0, old = 0.0, new = 0.0;
    ptrdiff_t j = 0;
#ifdef GNU_C
    four_t slopes[2] = {{0.0}, {0.0}}, olds[2] = {{0.0}, {0.0}};
    four_t news[2] = {{0.0}, {0.0}};
    for (; j + 8 <= n; j += 8)
        for (ptrdiff_t l = 0; l < 2; l++) {
            const ptrdiff_t at = j + 4 * l;
            const four_t given = FOUR(z + at), moved = given - FOUR(nu + at);
            olds[l] += FOUR(m + at) * given;
            news[l] += FOUR(m + at) * moved;
            slopes[l] += (FOUR(y + at) - FOUR(x + at)) * moved;
            *(four_t *) (z + at) = moved;
        }
    for (ptrdiff_t l = 0; l < 4; l++) {
        slope += slopes[0][l] + slopes[1][l];
        old += olds[0][l] + olds[1][l];
        new += news[0][l] + news[1][l];
    }
#endif
    for (; j < n; j++) {
        const double moved = z[j] - nu[j];
        old += m[j] * z[j];
        new += m[j] * moved;
        slope += (y[j] - x[j]) * moved;
        z[j] = moved;
    }
    *before = old;
    *after = new;
    return slope;
}

/* A sum that compilers can vectorize, because eight partial sums fix the order. */
static ALWAYS_INLINE double eightfold_sum(ptrdiff_t k, const double *x)
{
    double partial[8] = {0.0}, total = 0.0;
    ptrdiff_t c = 0;
    for (; c + 8 <= k; c += 8)
        for (ptrdiff_t j = 0; j < 8; j++)
            partial[j] += x[c + j];
    for (; c < k; c++)
        total += x[c];
    for (ptrdiff_t j = 0; j < 8; j++)
        total += partial[j];
    return total;
}

/* out[c] *= x[c], unless x is NULL; then divides out by its sum, which it returns. */
FOR_EACH_WIDTH
static double vector_multiply_normalized(ptrdiff_t k, const double *x, double *out)
{
    for (ptrdiff_t c = 0; x != NULL && c < k; c++)
        out[c] *= x[c];
    const double sum = eightfold_sum(k, out), scale = 1.0 / sum;
    for (ptrdiff_t c = 0; c < k; c++)
        out[c] *= scale;
    return sum;
}

/* y[c] = x[c] / y[c] */
FOR_EACH_WIDTH
static void vector_divide(ptrdiff_t k, const double *x, double *y)
{
    for (ptrdiff_t c = 0; c < k; c++)
        y[c] = x[c] / y[c];
}

/* Even and odd rows have separate sums, so that an addition need not wait for the
 * previous one. */
static ALWAYS_INLINE void times_block(ptrdiff_t k, const double *x, const double *matrix,
                                      ptrdiff_t width, double *out)
{
    double even[GATHER_BLOCK] = {0.0}, odd[GATHER_BLOCK] = {0.0};
    ptrdiff_t p = 0;
    for (; p + 1 < k; p += 2) {
        const double *row = matrix + p * k, *next = row + k;
        for (ptrdiff_t c = 0; c < width; c++)
            even[c] += x[p] * row[c];
        for (ptrdiff_t c = 0; c < width; c++)
            odd[c] += x[p + 1] * next[c];
    }
    if (p < k)
        for (ptrdiff_t c = 0; c < width; c++)
            even[c] += x[p] * matrix[p * k + c];
    for (ptrdiff_t c = 0; c < width; c++)
        out[c] = even[c] + odd[c];
}

/* out[c] = Σ_p x[p] * matrix[p * k + c], by blocks like those of `vector_gather` */
FOR_EACH_WIDTH
static void vector_times(ptrdiff_t k, const double *x, const double *matrix, double *out)
{
    const ptrdiff_t half = GATHER_BLOCK / 2;
    if (k < half) {
        times_block(k, x, matrix, k, out);
    } else if (k < GATHER_BLOCK) {
        times_block(k, x, matrix, half, out);
        times_block(k, x, matrix + k - half, half, out + k - half);
    } else {
        for (ptrdiff_t c = 0; c < k; c += GATHER_BLOCK) {
            const ptrdiff_t start = c + GATHER_BLOCK <= k ? c : k - GATHER_BLOCK;
            times_block(k, x, matrix + start, GATHER_BLOCK, out + start);
        }
    }
}

#endif

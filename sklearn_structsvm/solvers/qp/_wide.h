/* Numbers of about 32 digits: unevaluated sums hi + lo of two doubles, with |lo| <=
 * ulp(hi) / 2. Sums and products of doubles are exact as such pairs (Dekker,
 * Numerische Mathematik 18, 1971), and a chain of n operations is accurate to n 2^-104
 * times the size of its terms. The compiler may not contract products and sums into
 * one operation: see setup.py. */
#ifndef SKLEARN_STRUCTSVM_WIDE_H
#define SKLEARN_STRUCTSVM_WIDE_H

#include <math.h>
#include <stddef.h>

#include "_utils/_vector.h"

typedef struct {
    double hi, lo;
} wide;

/* A vector of such numbers as two arrays. Without the second array it holds doubles. */
typedef struct {
    double *hi, *lo;
} wide_vector;

/* This many sums run side by side and are added up at the end. */
#define WIDE_LANES 8

/* 2^27 + 1 splits a double into two halves, whose products are exact. */
#define WIDE_CUT 134217729.0

static ALWAYS_INLINE wide wide_two_sum(double a, double b)
{
    const double s = a + b, c = s - a;
    const wide r = {s, (a - (s - c)) + (b - c)};
    return r;
}

/* For |a| >= |b|, or a = 0. */
static ALWAYS_INLINE wide wide_quick_sum(double a, double b)
{
    const double s = a + b;
    const wide r = {s, b - (s - a)};
    return r;
}

static ALWAYS_INLINE wide wide_two_product(double a, double b)
{
    const double p = a * b;
#ifdef FP_FAST_FMA
    const wide r = {p, fma(a, b, -p)};
#else
    const double ca = WIDE_CUT * a, cb = WIDE_CUT * b;
    const double ah = ca - (ca - a), bh = cb - (cb - b), al = a - ah, bl = b - bh;
    const wide r = {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#endif
    return r;
}

static ALWAYS_INLINE wide wide_sum(wide a, wide b)
{
    const wide s = wide_two_sum(a.hi, b.hi);
    const wide t = wide_two_sum(a.lo, b.lo);
    const wide u = wide_quick_sum(s.hi, s.lo + t.hi);
    return wide_quick_sum(u.hi, u.lo + t.lo);
}

static ALWAYS_INLINE wide wide_product(wide a, wide b)
{
    const wide p = wide_two_product(a.hi, b.hi);
    return wide_quick_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static ALWAYS_INLINE wide wide_negative(wide a)
{
    const wide r = {-a.hi, -a.lo};
    return r;
}

static ALWAYS_INLINE wide wide_difference(wide a, wide b)
{
    return wide_sum(a, wide_negative(b));
}

static ALWAYS_INLINE wide wide_of(double a)
{
    const wide r = {a, 0.0};
    return r;
}

static ALWAYS_INLINE wide wide_get(wide_vector v, ptrdiff_t k)
{
    const wide r = {v.hi[k], v.lo == NULL ? 0.0 : v.lo[k]};
    return r;
}

static ALWAYS_INLINE void wide_set(wide_vector v, ptrdiff_t k, wide a)
{
    v.hi[k] = a.hi;
    if (v.lo != NULL)
        v.lo[k] = a.lo;
}

static wide wide_quotient(wide a, wide b)
{
    const double q = a.hi / b.hi;
    const wide rest = wide_difference(a, wide_product(wide_of(q), b));
    const double r = rest.hi / b.hi;
    const wide last = wide_difference(rest, wide_product(wide_of(r), b));
    return wide_sum(wide_quick_sum(q, r), wide_of(last.hi / b.hi));
}

static wide wide_root(wide a)
{
    const double x = sqrt(a.hi);
    wide rest;
    if (x == 0.0)
        return wide_of(0.0);
    rest = wide_difference(a, wide_two_product(x, x));
    return wide_quick_sum(x, rest.hi / (2.0 * x));
}

/* The sum of the lanes and the rest. */
static ALWAYS_INLINE wide wide_add_up(const double *hi, const double *lo, wide rest)
{
    wide sums[WIDE_LANES];
    for (ptrdiff_t l = 0; l < WIDE_LANES; l++)
        sums[l] = wide_two_sum(hi[l], lo[l]);
    for (ptrdiff_t half = WIDE_LANES / 2; half > 0; half /= 2)
        for (ptrdiff_t l = 0; l < half; l++)
            sums[l] = wide_sum(sums[l], sums[l + half]);
    return wide_sum(sums[0], rest);
}

/* Σ x_k y_k of doubles; the sum of rounding errors is itself a double (Ogita, Rump,
 * Oishi, SIAM Journal on Scientific Computing 26, 2005). */
FOR_EACH_WIDTH
static wide wide_dot_of_doubles(ptrdiff_t n, const double *x, const double *y)
{
    double hi[WIDE_LANES] = {0.0}, lo[WIDE_LANES] = {0.0};
    ptrdiff_t k = 0;
    wide rest = {0.0, 0.0};
    for (; k + WIDE_LANES <= n; k += WIDE_LANES)
        for (ptrdiff_t l = 0; l < WIDE_LANES; l++) {
            const wide p = wide_two_product(x[k + l], y[k + l]);
            const wide s = wide_two_sum(hi[l], p.hi);
            hi[l] = s.hi;
            lo[l] += s.lo + p.lo;
        }
    for (; k < n; k++)
        rest = wide_sum(rest, wide_two_product(x[k], y[k]));
    return k < WIDE_LANES ? rest : wide_add_up(hi, lo, rest);
}

/* Σ x_k y_k */
FOR_EACH_WIDTH
static wide wide_dot(ptrdiff_t n, wide_vector x, wide_vector y)
{
    double hi[WIDE_LANES] = {0.0}, lo[WIDE_LANES] = {0.0};
    ptrdiff_t k = 0;
    wide rest = {0.0, 0.0};
    for (; k + WIDE_LANES <= n; k += WIDE_LANES)
        for (ptrdiff_t l = 0; l < WIDE_LANES; l++) {
            const double a = x.hi[k + l], b = y.hi[k + l];
            const wide p = wide_two_product(a, b);
            const wide s = wide_two_sum(hi[l], p.hi);
            hi[l] = s.hi;
            lo[l] += s.lo + (p.lo + (a * y.lo[k + l] + x.lo[k + l] * b));
        }
    for (; k < n; k++)
        rest = wide_sum(rest, wide_product(wide_get(x, k), wide_get(y, k)));
    return k < WIDE_LANES ? rest : wide_add_up(hi, lo, rest);
}

/* y += a x */
FOR_EACH_WIDTH
static void wide_axpy(ptrdiff_t n, wide a, wide_vector x, wide_vector y)
{
    const double *x_hi = x.hi, *x_lo = x.lo;
    double *y_hi = y.hi, *y_lo = y.lo;
    for (ptrdiff_t k = 0; k < n; k++) {
        const wide p = wide_two_product(a.hi, x_hi[k]);
        const wide s = wide_two_sum(y_hi[k], p.hi);
        const double rest = p.lo + (a.hi * x_lo[k] + a.lo * x_hi[k]);
        const wide r = wide_quick_sum(s.hi, s.lo + (y_lo[k] + rest));
        y_hi[k] = r.hi;
        y_lo[k] = r.lo;
    }
}

/* y += a x, for a vector x of doubles */
FOR_EACH_WIDTH
static void wide_axpy_of_doubles(ptrdiff_t n, wide a, const double *x, wide_vector y)
{
    double *y_hi = y.hi, *y_lo = y.lo;
    for (ptrdiff_t k = 0; k < n; k++) {
        const wide p = wide_two_product(a.hi, x[k]);
        const wide s = wide_two_sum(y_hi[k], p.hi);
        const wide r = wide_quick_sum(s.hi, s.lo + (y_lo[k] + (p.lo + a.lo * x[k])));
        y_hi[k] = r.hi;
        y_lo[k] = r.lo;
    }
}

#endif

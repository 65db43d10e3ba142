/* Products of one row of features with weights of k columns: for `_exact`, the only code
 * that depends on whether rows are dense or CSR. The weights W have a row for each
 * feature, and a last row for the constant feature, if any. */
#ifndef SKLEARN_STRUCTSVM_ROWS_H
#define SKLEARN_STRUCTSVM_ROWS_H

#include <stdint.h>
#include <string.h>

#include "_utils/_matrix/_widen.h"
#include "_utils/_vector.h"

/* Bytes of a cache line, and how many lines of a row are prefetched before its turn: the
 * processor prefetches the rest of a longer row by itself. */
#define LINE 64
#define LINES_AHEAD 8

/* A step changes few columns or all: the few are written one by one if they are at most
 * one in this many columns. */
#define COLUMNS_PER_CHANGE 4

typedef struct {
    const void *values;
    int is_single; /* whether values are float32, otherwise float64 */
    const int *indices; /* NULL for dense rows */
    const ptrdiff_t *starts;
    ptrdiff_t n_features;
    double bias; /* the constant feature, 0 for none */
} rows_t;

static inline void ask_for(const void *address, ptrdiff_t n_bytes)
{
    if (n_bytes > LINES_AHEAD * LINE)
        n_bytes = LINES_AHEAD * LINE;
    for (ptrdiff_t b = 0; b < n_bytes; b += LINE)
        PREFETCH((const char *) address + b);
}

/* Prefetch row i, which will be needed soon. */
static inline void rows_ask(const rows_t *rows, ptrdiff_t i)
{
    const ptrdiff_t start = rows->starts[i], count = rows->starts[i + 1] - start;
    const ptrdiff_t size = rows->is_single ? sizeof(float) : sizeof(double);
    ask_for((const char *) rows->values + start * size, count * size);
    if (rows->indices)
        ask_for(rows->indices + start, count * (ptrdiff_t) sizeof(int));
}

/* <x, w> for the entries x at the places `at`, or at the first ones if that is NULL. Four
 * sums run at once because within one sum, each addition waits for the one before. */
#define FOUR_SUMS(PLACE)                              \
    for (; j + 4 <= count; j += 4) {                  \
        a += x[j] * w[PLACE(j)];                      \
        b += x[j + 1] * w[PLACE(j + 1)];              \
        c += x[j + 2] * w[PLACE(j + 2)];              \
        d += x[j + 3] * w[PLACE(j + 3)];              \
    }                                                 \
    for (; j < count; j++)                            \
        a += x[j] * w[PLACE(j)];
#define HERE(j) (j)
#define THERE(j) (at[j])

static inline double row_dot(ptrdiff_t count, const double *x, const int *at,
                             const double *w)
{
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    ptrdiff_t j = 0;
    if (at) {
        FOUR_SUMS(THERE)
    } else {
        FOUR_SUMS(HERE)
    }
    return (a + b) + (c + d);
}

#ifdef GNU_C
/* Eight columns at once, at any alignment. */
typedef double pack_t __attribute__((vector_size(64), aligned(8), may_alias));
#define PACK 8
#define PACK_AT(address) (*(const pack_t *) (address))

/* out = W'x for a dense row and at least eight columns, sixteen at a time, so that their
 * sums stay in registers. The last columns may overlap earlier ones, which are then
 * computed twice. */
FOR_EACH_WIDTH
static void dense_scores(ptrdiff_t count, const double *x, const double *weights,
                         ptrdiff_t k, double *out)
{
    for (ptrdiff_t c = 0; c < k; c += 2 * PACK) {
        const ptrdiff_t first = c + PACK <= k ? c : k - PACK;
        const ptrdiff_t second = c + 2 * PACK <= k ? c + PACK : k - PACK;
        const double *row = weights;
        pack_t a = {0.0}, b = {0.0}, next_a = {0.0}, next_b = {0.0};
        ptrdiff_t j = 0;
        for (; j + 2 <= count; j += 2, row += 2 * k) {
            a += x[j] * PACK_AT(row + first);
            b += x[j] * PACK_AT(row + second);
            next_a += x[j + 1] * PACK_AT(row + k + first);
            next_b += x[j + 1] * PACK_AT(row + k + second);
        }
        if (j < count) {
            a += x[j] * PACK_AT(row + first);
            b += x[j] * PACK_AT(row + second);
        }
        *(pack_t *) (out + first) = a + next_a;
        *(pack_t *) (out + second) = b + next_b;
    }
}
#else
#define PACK PTRDIFF_MAX
#define dense_scores(count, x, weights, k, out)
#endif

/* out = W'x_i; returns whether it is out of memory. */
static inline int rows_scores(const rows_t *rows, ptrdiff_t i, const double *weights,
                              ptrdiff_t k, double *out)
{
    const ptrdiff_t start = rows->starts[i], count = rows->starts[i + 1] - start;
    room_t room;
    const double *x = widen(rows->values, start, count, rows->is_single, &room);
    const int *at = rows->indices ? rows->indices + start : NULL;
    const double *constant = weights + rows->n_features * k;
    if (!x)
        return 1;
    if (k == 1) {
        out[0] = row_dot(count, x, at, weights);
    } else if (!at && k >= PACK) {
        dense_scores(count, x, weights, k, out);
    } else {
        memset(out, 0, (size_t) k * sizeof(double));
        if (at)
            vector_gather(count, count, x, at, weights, k, out);
        else
            for (ptrdiff_t j = 0; j < count; j++)
                vector_axpy(k, x[j], weights + j * k, out);
    }
    free_room(&room);
    if (rows->bias != 0.0)
        vector_axpy(k, rows->bias, constant, out);
    return 0;
}

/* row += x delta, where delta is 0 except in the columns `changed` */
static inline void add_to_row(double x, const double *delta, ptrdiff_t n_changed,
                              const int *changed, ptrdiff_t k, double *row)
{
    if (n_changed * COLUMNS_PER_CHANGE <= k)
        for (ptrdiff_t m = 0; m < n_changed; m++)
            row[changed[m]] += x * delta[changed[m]];
    else
        vector_axpy(k, x, delta, row);
}

/* W += step x_i delta', where delta is 0 except in the columns `changed`; returns whether
 * it is out of memory. */
static inline int rows_add(const rows_t *rows, ptrdiff_t i, double step,
                           const double *delta, ptrdiff_t n_changed,
                           const int *changed, ptrdiff_t k, double *weights)
{
    const ptrdiff_t start = rows->starts[i], count = rows->starts[i + 1] - start;
    room_t room;
    const double *x = widen(rows->values, start, count, rows->is_single, &room);
    const int *at = rows->indices ? rows->indices + start : NULL;
    double *constant = weights + rows->n_features * k;
    if (!x)
        return 1;
    if (k == 1 && at)
        for (ptrdiff_t j = 0; j < count; j++)
            weights[at[j]] += step * delta[0] * x[j];
    else if (k == 1)
        vector_axpy(count, step * delta[0], x, weights);
    else
        for (ptrdiff_t j = 0; j < count; j++)
            add_to_row(step * x[j], delta, n_changed, changed, k,
                       weights + (at ? at[j] : j) * k);
    free_room(&room);
    if (rows->bias != 0.0)
        vector_axpy(k, step * rows->bias, delta, constant);
    return 0;
}

#endif

/* Loops over all subsets of k labels, in tables of 2^k numbers whose index has a bit for
 * each label. They are compiled like the loops of _vector.h. */
#ifndef SKLEARN_STRUCTSVM_SUBSETS_H
#define SKLEARN_STRUCTSVM_SUBSETS_H

#include "_utils/_vector.h"

/* A table of 2^18 numbers fills the second-level cache of a core. */
#define MAX_SUBSET_LABELS 18
/* Labels whose subsets make one run of a table, 64 numbers. */
#define RUN_LABELS 6
#define RUN (1 << RUN_LABELS)
#define LANES 8

/* sums[S] = start + Σ_{l in S} terms[l] */
FOR_EACH_WIDTH
static void subset_sums(int k, double start, const double *terms, double *sums)
{
    sums[0] = start;
    for (int l = 0; l < k; l++) {
        const ptrdiff_t half = (ptrdiff_t)1 << l;
        const double term = terms[l];
        double *upper = sums + half;
        for (ptrdiff_t s = 0; s < half; s++)
            upper[s] = sums[s] + term;
    }
}

/* scores[S] = Σ_{l in S} single[l] + Σ_{l < m in S} pair[l * k + m], pair symmetric.
 * Adding label l to a subset of the labels before it adds a sum of two numbers: one for
 * the first few of these labels, and one for the rest. */
FOR_EACH_WIDTH
static void subset_scores(int k, const double *single, const double *pair,
                          double *scores)
{
    double first[RUN], rest[1 << (MAX_SUBSET_LABELS - 1 - RUN_LABELS)];
    scores[0] = 0.0;
    for (int l = 0; l < k; l++) {
        const int n_first = l < RUN_LABELS ? l : RUN_LABELS;
        const ptrdiff_t run = (ptrdiff_t)1 << n_first;
        const ptrdiff_t n_runs = (ptrdiff_t)1 << (l - n_first);
        const double *lower = scores;
        double *upper = scores + run * n_runs;
        subset_sums(n_first, single[l], pair + l * k, first);
        subset_sums(l - n_first, 0.0, pair + l * k + n_first, rest);
        for (ptrdiff_t r = 0; r < n_runs; r++, lower += run, upper += run) {
            const double add = rest[r];
            for (ptrdiff_t s = 0; s < run; s++)
                upper[s] = lower[s] + (first[s] + add);
        }
    }
}

/* values[S] = a scores[S] + b values[S] + c scores[S] values[S] */
FOR_EACH_WIDTH
static void subset_values(ptrdiff_t n, double a, double b, double c,
                          const double *scores, double *values)
{
    for (ptrdiff_t s = 0; s < n; s++)
        values[s] = a * scores[s] + (b + c * scores[s]) * values[s];
}

/* For each size 0..k of a subset, the largest value, and the first subset that has it. */
FOR_EACH_WIDTH
static void subset_maxima(int k, const double *values, double *largest, double *subset)
{
    /* A row for each number of labels beyond the first three, a column for each subset
     * of the first three. Subsets are stored as doubles, to be blended like values. */
    double best[MAX_SUBSET_LABELS * LANES], at[MAX_SUBSET_LABELS * LANES];
    const int n_first = k < 3 ? k : 3;
    const ptrdiff_t lanes = (ptrdiff_t)1 << n_first;
    const ptrdiff_t n_rest = (ptrdiff_t)1 << (k - n_first);
    for (int row = 0; row <= k - n_first; row++) {
        /* Any subset with this many of the last labels. */
        const ptrdiff_t seen = ((ptrdiff_t)1 << row) - 1;
        for (ptrdiff_t lane = 0; lane < lanes; lane++) {
            best[row * LANES + lane] = values[seen * lanes + lane];
            at[row * LANES + lane] = (double)seen;
        }
    }
    if (lanes == LANES) {
        for (ptrdiff_t r = 0; r < n_rest; r++) {
            const ptrdiff_t row = BITS_SET((unsigned)r) * LANES;
            const double *value = values + r * LANES, place = (double)r;
            for (ptrdiff_t lane = 0; lane < LANES; lane++) {
                const int rises = value[lane] > best[row + lane];
                best[row + lane] = rises ? value[lane] : best[row + lane];
                at[row + lane] = rises ? place : at[row + lane];
            }
        }
    }
    for (int size = 0; size <= k; size++) {
        int found = 0;
        for (ptrdiff_t lane = 0; lane < lanes; lane++) {
            const int row = size - BITS_SET((unsigned)lane);
            if (row < 0 || row > k - n_first)
                continue;
            const double value = best[row * LANES + lane];
            const double place = at[row * LANES + lane] * lanes + lane;
            if (!found || value > largest[size]
                || (value == largest[size] && place < subset[size])) {
                largest[size] = value;
                subset[size] = place;
            }
            found = 1;
        }
    }
}

/* gains[l] = max_{S with l} scores[S] - max_{S without l} scores[S]; spoils `scores` */
FOR_EACH_WIDTH
static void subset_gains(int k, double *scores, double *gains)
{
    for (int l = k - 1; l >= 0; l--) {
        const ptrdiff_t half = (ptrdiff_t)1 << l;
        const ptrdiff_t lanes = half < LANES ? half : LANES;
        double with[LANES] = {0.0}, without[LANES] = {0.0};
        for (ptrdiff_t lane = 0; lane < lanes; lane++) {
            without[lane] = scores[lane];
            with[lane] = scores[half + lane];
        }
        for (ptrdiff_t s = 0; s < half; s += lanes) {
            for (ptrdiff_t lane = 0; lane < lanes; lane++) {
                const double low = scores[s + lane], high = scores[half + s + lane];
                without[lane] = low > without[lane] ? low : without[lane];
                with[lane] = high > with[lane] ? high : with[lane];
                scores[s + lane] = high > low ? high : low;
            }
        }
        for (ptrdiff_t lane = 1; lane < lanes; lane++) {
            without[0] = without[lane] > without[0] ? without[lane] : without[0];
            with[0] = with[lane] > with[0] ? with[lane] : with[0];
        }
        gains[l] = with[0] - without[0];
    }
}

#endif

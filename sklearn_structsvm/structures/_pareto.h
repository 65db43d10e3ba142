/* The inner loops of the Pareto front, compiled like those of _vector.h. */
#ifndef SKLEARN_STRUCTSVM_FRONT_H
#define SKLEARN_STRUCTSVM_FRONT_H

#include "_utils/_vector.h"

/* current[c] += max_j scores[j] + transition[labels[j] * k + c], for few labels */
FOR_EACH_WIDTH
static void front_add_max_plus(ptrdiff_t count, const int *labels, ptrdiff_t k,
                               const double *scores, const double *transition,
                               double *current)
{
    double best[MAX_PLUS_WIDTH];
    for (ptrdiff_t start = 0; start < k; start += MAX_PLUS_WIDTH) {
        ptrdiff_t width = k - start < MAX_PLUS_WIDTH ? k - start : MAX_PLUS_WIDTH;
        const double *first = transition + labels[0] * k + start;
        for (ptrdiff_t c = 0; c < width; c++)
            best[c] = scores[0] + first[c];
        for (ptrdiff_t j = 1; j < count; j++) {
            const double score = scores[j];
            const double *row = transition + labels[j] * k + start;
            for (ptrdiff_t c = 0; c < width; c++) {
                const double value = score + row[c];
                best[c] = value > best[c] ? value : best[c];
            }
        }
        for (ptrdiff_t c = 0; c < width; c++)
            current[start + c] += best[c];
    }
}

/* The largest cost below `bound`, or -1 */
FOR_EACH_WIDTH
static double front_next_cost(ptrdiff_t k, const double *cost, double bound)
{
    double largest = -1.0;
    for (ptrdiff_t c = 0; c < k; c++) {
        const double value = cost[c] < bound ? cost[c] : -1.0;
        largest = value > largest ? value : largest;
    }
    return largest;
}

/* best[c] = theta[c] - truth if the cost is `loss` and this plus the rest is at least
 * `least`, and `nothing` otherwise. Returns how many are not `nothing`. */
FOR_EACH_WIDTH
static ptrdiff_t front_select(ptrdiff_t k, const double *theta, double truth,
                              const double *cost, double loss, const double *rest,
                              double least, double nothing, double *best)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t c = 0; c < k; c++) {
        const double value = theta[c] - truth;
        const int keep = (cost[c] == loss) & (value + rest[c] >= least);
        best[c] = keep ? value : nothing;
        kept += keep;
    }
    return kept;
}

/* best[c] = a[c] + b[c], with source[c] = pair */
FOR_EACH_WIDTH
static void front_sum(ptrdiff_t k, const double *a, const double *b, int pair,
                      double *best, int *source)
{
    for (ptrdiff_t c = 0; c < k; c++) {
        best[c] = a[c] + b[c];
        source[c] = pair;
    }
}

/* best[c] = max(best[c], a[c] + b[c]), with source[c] = pair if it rose */
FOR_EACH_WIDTH
static void front_join(ptrdiff_t k, const double *a, const double *b, int pair,
                       double *best, int *source)
{
    for (ptrdiff_t c = 0; c < k; c++) {
        const double value = a[c] + b[c];
        source[c] = value > best[c] ? pair : source[c];
        best[c] = value > best[c] ? value : best[c];
    }
}

/* Entries that are not above `top`, or stay below `least` even with the rest, become
 * `nothing`; the others become the new top. Returns the number of the others. */
FOR_EACH_WIDTH
static ptrdiff_t front_prune(ptrdiff_t k, const double *rest, double least,
                             double nothing, double *best, double *top)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t c = 0; c < k; c++) {
        const int keep = (best[c] > top[c]) & (best[c] + rest[c] >= least);
        top[c] = keep ? best[c] : top[c];
        best[c] = keep ? best[c] : nothing;
        kept += keep;
    }
    return kept;
}

#endif

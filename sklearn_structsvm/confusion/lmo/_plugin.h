/* The plug-in rule on blocks of rows: which class is cheapest, and what was predicted for
 * how much of the sample. A block holds its rows class by class: k runs of `padded`
 * numbers; those after its last row are zeros.
 *
 * Compilers do not reliably vectorize loops that compare, choose and count. If the
 * compiler has vector types, the code uses them explicitly, for each vector width, and
 * the widest one that the processor supports is chosen at run time. */
#ifndef SKLEARN_STRUCTSVM_PLUGIN_H
#define SKLEARN_STRUCTSVM_PLUGIN_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "_utils/_compiler.h"

/* Rows of a block: with few classes, a block and its choices fit in the first-level
 * cache. */
#define BLOCK_ROWS 512

/* Each iteration of the loops processes a group of four vectors: enough independent
 * chains of operations to hide the latency of one. Runs are padded to whole groups of
 * floats. */
#define GROUP_VECTORS 4
#define WIDEST_BYTES 64
#define PADDING (GROUP_VECTORS * WIDEST_BYTES / 4)

/* Lines of 64 bytes of the next block to prefetch with each group that is summed: enough
 * that the block has arrived when it is needed, and so few that sums do not wait. */
#define LINES_PER_GROUP 2

/* One row in this many votes on the most frequent choice. */
#define VOTES_APART 16

#ifdef GNU_C
#define HAS_VECTORS
#define EACH_OF_GROUP _Pragma("GCC unroll 4") for (int u = 0; u < GROUP_VECTORS; u++)
#define ALIGNED __attribute__((aligned(WIDEST_BYTES)))
#else
#define ALIGNED
#endif

/* One block, and the costs of predictions in its cell: either 2 k numbers, c and then d,
 * if predicting j costs c_j + d_j η_j (`separable`, which needs q = k), or k x q costs
 * of predicting j of q for label i of k, at j k + i. Numbers are floats (`single`) or
 * doubles. */
typedef struct {
    ptrdiff_t rows, padded, k, q;
    int single, separable;
    const void *costs, *P;
} plugin_block;

typedef struct {
    void (*tally)(const plugin_block *, const double *, double *, double *);
    void (*sums)(const plugin_block *, const void *, const double *, double *, double *);
    void (*choices)(const plugin_block *, int32_t *);
} plugin_kernels;

#define KERNELS(kind) {tally_##kind, sums_##kind, write_choices_##kind}

#define TARGET
#define VECTOR_BYTES 16
#define OF_WIDTH(name) name##_16
#include "_plugin_width.h"

#if defined(HAS_VECTORS) && defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR_BYTES 32
#define OF_WIDTH(name) name##_32
#include "_plugin_width.h"

#define TARGET __attribute__((target("avx512f,fma")))
#define VECTOR_BYTES 64
#define OF_WIDTH(name) name##_64
#include "_plugin_width.h"

static const plugin_kernels *kernels_for(int single)
{
    static const plugin_kernels kernels[3][2] = {
        {KERNELS(double_16), KERNELS(float_16)},
        {KERNELS(double_32), KERNELS(float_32)},
        {KERNELS(double_64), KERNELS(float_64)},
    };
    if (!__builtin_cpu_supports("fma"))
        return &kernels[0][single];
    if (__builtin_cpu_supports("avx512f"))
        return &kernels[2][single];
    return &kernels[__builtin_cpu_supports("avx2") ? 1 : 0][single];
}
#else
static const plugin_kernels *kernels_for(int single)
{
    static const plugin_kernels kernels[2] = {KERNELS(double_16), KERNELS(float_16)};
    return &kernels[single];
}
#endif

/* tally[j] = Σ_{r: choice j} w_r, or the number of these rows if w is NULL. `room` has
 * space for 4 q doubles. */
static void block_tally(const plugin_block *block, const double *w, double *room,
                        double *tally)
{
    kernels_for(block->single)->tally(block, w, room, tally);
}

/* sums[i * q + j] += Σ_{r: choice j} w_r η_ri; w, if any, has the block's number type.
 * For the choice that is probably the most frequent, the sums are not computed: they are
 * `totals`, Σ_r w_r η_ri for each i, minus the other sums. `room` has space for k
 * doubles. */
static void block_sums(const plugin_block *block, const void *w, const double *totals,
                       double *room, double *sums)
{
    kernels_for(block->single)->sums(block, w, totals, room, sums);
}

/* chosen[r] = the choice for row r */
static void block_choices(const plugin_block *block, int32_t *chosen)
{
    kernels_for(block->single)->choices(block, chosen);
}

#endif

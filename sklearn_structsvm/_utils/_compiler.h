/* What the kernels ask of a compiler beyond C99, by names of our own. Other compilers, and
 * builds with SKLEARN_STRUCTSVM_PLAIN_LOOPS, take plain loops instead. */
#ifndef SKLEARN_STRUCTSVM_COMPILER_H
#define SKLEARN_STRUCTSVM_COMPILER_H

#include <stddef.h>

#if defined(__GNUC__) && !defined(SKLEARN_STRUCTSVM_PLAIN_LOOPS)
#define GNU_C
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BITS_SET(x) __builtin_popcount(x)
#define PREFETCH(address) __builtin_prefetch(address)
#define RESTRICT __restrict__
/* An OpenMP directive for the loop that follows, such as `omp simd`. */
#define LOOP(directive) _Pragma(#directive)
#define MAY_BE_UNUSED __attribute__((unused))
#else
#define ALWAYS_INLINE inline
#define PREFETCH(address) ((void) (address))
#define RESTRICT
#define LOOP(directive)
#define MAY_BE_UNUSED
static inline int BITS_SET(unsigned x)
{
    int count = 0;
    for (; x; x &= x - 1)
        count++;
    return count;
}
#endif

/* Of a long that several threads change: its value, the value before another takes its
 * place, and before it grows. PAUSE is for a thread that waits for such a change. */
#ifdef _MSC_VER
#include <intrin.h>
#define ATOMIC_SWAP(x, value) _InterlockedExchange((x), (value))
#define ATOMIC_ADD(x, value) _InterlockedExchangeAdd((x), (value))
#define ATOMIC_GET(x) ATOMIC_ADD((x), 0)
#define PAUSE() _mm_pause()
#else
#define ATOMIC_SWAP(x, value) __atomic_exchange_n((x), (value), __ATOMIC_SEQ_CST)
#define ATOMIC_ADD(x, value) __atomic_fetch_add((x), (value), __ATOMIC_SEQ_CST)
#define ATOMIC_GET(x) __atomic_load_n((x), __ATOMIC_SEQ_CST)
#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() ((void) 0)
#endif
#endif

/* Before a function: compile it for several vector widths, of which the C library chooses
 * one when the program starts. FOR_EACH_FMA also allows multiply-add for vectors of four
 * doubles. Clang 14 refuses functions of several widths that may be unused, and no clang
 * knows "fma" here. */
#if defined(GNU_C) && defined(__x86_64__) && defined(__linux__) && defined(__has_attribute)
#include <features.h>
#if defined(__GLIBC__) && __has_attribute(target_clones)
#ifdef __clang__
#define FOR_EACH_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_WIDTH \
    __attribute__((unused, target_clones("avx512f", "avx2", "default")))
#define FOR_EACH_FMA \
    __attribute__((unused, target_clones("avx512f", "fma", "default")))
#endif
#endif
#endif
#ifndef FOR_EACH_WIDTH
#define FOR_EACH_WIDTH MAY_BE_UNUSED
#endif
#ifndef FOR_EACH_FMA
#define FOR_EACH_FMA FOR_EACH_WIDTH
#endif

#endif

/* Features are stored as float64 or float32. Loops read float64: float32 entries are
 * copied first, a few rows at a time, so that one loop serves both types and its sums are
 * the same, bit for bit. */
#ifndef SKLEARN_STRUCTSVM_WIDEN_H
#define SKLEARN_STRUCTSVM_WIDEN_H

#include <stddef.h>
#include <stdlib.h>

#include "_utils/_vector.h"

/* Doubles on the stack: enough for a row of most data sets, and a fraction of the
 * first-level cache. */
#define SMALL_ROOM 1024

typedef struct {
    double small[SMALL_ROOM];
    double *large;
} room_t;

/* Room for `count` doubles, which the caller frees; NULL if out of memory. */
static inline double *make_room(ptrdiff_t count, room_t *room)
{
    room->large = NULL;
    if (count <= SMALL_ROOM)
        return room->small;
    return room->large = (double *) malloc((size_t) count * sizeof(double));
}

FOR_EACH_WIDTH
static void widen_entries(ptrdiff_t count, const float *given, double *copy)
{
    for (ptrdiff_t j = 0; j < count; j++)
        copy[j] = given[j];
}

/* Entries start to start + count, in place or copied to `room`, which the caller frees.
 * NULL if out of memory. */
static inline const double *widen(const void *values, ptrdiff_t start, ptrdiff_t count,
                                  int is_single, room_t *room)
{
    const float *given = (const float *) values + start;
    double *copy;
    if (!is_single) {
        room->large = NULL;
        return (const double *) values + start;
    }
    copy = make_room(count, room);
    if (copy)
        widen_entries(count, given, copy);
    return copy;
}

/* A single entry, for loops that do little work per entry. */
static inline double entry(const void *values, ptrdiff_t j, int is_single)
{
    return is_single ? ((const float *) values)[j] : ((const double *) values)[j];
}

static inline void free_room(room_t *room)
{
    free(room->large);
}

/* `vector_gather` of entries start to start + count; returns whether it is out of memory. */
static inline int gather_entries(ptrdiff_t count, ptrdiff_t available,
                                 const void *values, ptrdiff_t start, int is_single,
                                 const int *indices, const double *weights, ptrdiff_t k,
                                 double *out)
{
    room_t room;
    const double *x = widen(values, start, count, is_single, &room);
    if (!x)
        return 1;
    vector_gather(count, available, x, indices, weights, k, out);
    free_room(&room);
    return 0;
}

#endif

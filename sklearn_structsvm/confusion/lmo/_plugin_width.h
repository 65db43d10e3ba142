/* Included by _plugin.h once for each width of vectors, with TARGET, VECTOR_BYTES and
 * OF_WIDTH(name); without a guard, for that reason. */
#define REAL double
#define INDEX int64_t
#define NAMED(name) OF_WIDTH(name##_double)
#include "_plugin_core.h"
#undef REAL
#undef INDEX
#undef NAMED

#define REAL float
#define INDEX int32_t
#define NAMED(name) OF_WIDTH(name##_float)
#include "_plugin_core.h"
#undef REAL
#undef INDEX
#undef NAMED

#undef TARGET
#undef VECTOR_BYTES
#undef OF_WIDTH

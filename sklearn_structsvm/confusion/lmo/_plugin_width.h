/* _plugin.h includes this file once for each vector width, with TARGET, VECTOR_BYTES and
 * OF_WIDTH(name); hence there is no include guard. */
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

# Grids of up to this many rows and columns are transformed without hulls. It must not
# exceed MAX_PLUS_WIDTH of _vector.h.
cdef enum:
    SMALL_GRID = 64


# The cost, along one axis, of displacing a child from where its parent expects it:
# linear · d + square · d² for d = q - p - anchor.
cdef struct Deformation:
    double anchor
    double linear
    double square


cdef double deformation_cost(const Deformation* cost, double displacement) noexcept nogil


cdef Py_ssize_t transform_scratch_size(Py_ssize_t n_rows, Py_ssize_t n_columns)


cdef void raise_to_transform(
    Py_ssize_t n_rows, Py_ssize_t n_columns, const double* scores,
    const Deformation* down, const Deformation* across, double gain, double* out,
    double* scratch) noexcept nogil

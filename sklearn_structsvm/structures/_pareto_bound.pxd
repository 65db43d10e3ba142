from sklearn_structsvm.structures._forest cimport Forest


cdef struct Messages:
    # Four tables, n x k each: node scores plus λ times the costs; best scores of a node
    # and all below it; messages to the parents; best scores of everything but the node.
    double* node
    double* below
    double* message
    double* rest


cdef struct Point:
    # The largest h + λ g, the h and g of a labeling that attains it, and the largest h g
    # known.
    double value
    double h
    double g
    double incumbent


cdef Messages messages_at(const Forest* forest, double* start) noexcept nogil
cdef double find_multiplier(
    const Forest* forest, double one, double largest, Messages m, int* labels,
    Point* point) noexcept nogil
cdef void bound_the_rest(
    const Forest* forest, double value, Messages m, double* buffer) noexcept nogil
cdef double rounding(const Forest* forest, double lam, double one) noexcept nogil

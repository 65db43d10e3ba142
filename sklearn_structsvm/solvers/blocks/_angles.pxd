cdef double SMALLEST, LARGEST, PHI_ROUNDING


cdef struct Angle:
    # Labelings with beta h < g <= alpha h (or < if strict) have Φ <= bound, and
    # h + lam g <= highest (nothing if lam is 0).
    double alpha
    double beta
    bint strict
    double bound
    double lam
    double highest


cdef struct Queue:
    Py_ssize_t count
    Py_ssize_t capacity
    Angle* angles


cdef int push(Queue* queue, Angle angle) except -1 nogil
cdef Angle pop(Queue* queue) noexcept nogil
cdef double slope(double h, double g) noexcept nogil
cdef bint narrow(
    Angle* angle, double value, double highest_h, double highest_g) noexcept nogil
cdef void add_line(Angle* angle, double lam, double highest) noexcept nogil
cdef double leave_out(
    Angle* angle, double h, double g, double lam, double error) noexcept nogil

# Blocks decoded between two checks for signals: half a second of a slow oracle.
cdef enum:
    CHUNK = 1024


# Labelings of one block as points of a plane: their scores f(y) - f(y_i) and losses.
# `bound`: what loss · (one + score) of none exceeds, if that is not known by the points.
cdef struct Plane:
    Py_ssize_t count
    Py_ssize_t capacity
    double* scores
    double* losses
    double bound
    # What the oracle needs to find the labeling of a point again.
    Py_ssize_t scratch_size
    void* scratch


# The unit of the costs that oracles declare is an operation: an addition or a comparison
# of one number, or of LANES contiguous numbers. Each call adds CALL operations.
cdef enum:
    LANES = 8
    CALL = 8


cdef int reserve_points(Plane* plane, Py_ssize_t n_points) except -1 nogil
cdef void* reserve_scratch(Plane* plane, Py_ssize_t n_bytes) except NULL nogil
cdef void free_plane(Plane* plane) noexcept nogil


cdef int not_finite(Py_ssize_t i) except -1 nogil


cdef class BlockOracle:
    cdef readonly Py_ssize_t n_blocks
    cdef readonly Py_ssize_t n_weights
    cdef readonly Py_ssize_t max_labels
    cdef readonly Py_ssize_t n_values
    cdef readonly Py_ssize_t work_size
    cdef readonly Py_ssize_t n_scores
    cdef readonly Py_ssize_t direction_size
    cdef readonly double relative_cost
    cdef readonly bint thread_safe
    cdef readonly bint has_candidates
    cdef readonly bint has_constrained
    cdef readonly bint has_marginals
    cdef readonly bint has_sums

    cdef Py_ssize_t n_labels(self, Py_ssize_t i) noexcept nogil
    cdef int true_labels(self, Py_ssize_t i, int* labels) except -1 nogil
    cdef int potentials(
        self, Py_ssize_t i, const double* w, double* work) except -1 nogil
    cdef int finite_potentials(
        self, Py_ssize_t i, const double* w, double* work) except -1 nogil
    cdef int max_oracle(
        self, Py_ssize_t i, double lam, double* work,
        int* labels, double* score, double* loss) except -1 nogil
    cdef int evaluate(
        self, Py_ssize_t i, const double* work, const int* labels,
        double* score, double* loss) except -1 nogil
    cdef int evaluate_each(
        self, Py_ssize_t i, double* work, Py_ssize_t n, const int* labelings,
        double* scores) except -1 nogil
    cdef int scores_of(
        self, Py_ssize_t i, const double* w, double* work, Py_ssize_t n,
        const int* labelings, double* scores) except -1 nogil
    cdef double upper_bound(
        self, Py_ssize_t i, const double* work, double value) noexcept nogil
    cdef int soft_oracle(
        self, Py_ssize_t i, double lam, double temperature, double* work,
        double* value, double* loss) except -1 nogil
    cdef double loss(self, Py_ssize_t i, const int* labels) except? -1 nogil
    cdef int candidates(
        self, Py_ssize_t i, double one, double* work, Plane* plane) except -1 nogil
    cdef int candidate(
        self, Py_ssize_t i, const double* work, const Plane* plane, Py_ssize_t j,
        int* labels) except -1 nogil
    cdef bint constrained_oracle(
        self, Py_ssize_t i, double lam, double alpha, double beta,
        bint strict_alpha, bint strict_beta, double one, double* work,
        int* labels, double* score, double* loss) except? -1 nogil
    cdef Py_ssize_t n_factors(self, Py_ssize_t i) noexcept nogil
    cdef int true_factors(
        self, Py_ssize_t i, double odds, double* factors) except -1 nogil
    cdef int log_sum(
        self, Py_ssize_t i, double* work, double* value) except -1 nogil
    cdef int tilt(
        self, Py_ssize_t i, double gamma, double* work, const double* factors,
        double* tilted, double* out, double* squared_norm, double* slope,
        double* entropy) except -1 nogil
    cdef int load_factors(
        self, Py_ssize_t i, const double* factors, double* work) except -1 nogil
    cdef int block_score(
        self, Py_ssize_t i, const double* work, double* score) except -1 nogil
    cdef int direction(
        self, Py_ssize_t i, double c, Py_ssize_t n, const double* a, const int* s,
        double* out, double* squared_norm) except -1 nogil
    cdef int image(
        self, Py_ssize_t i, const double* direction, double* work) except -1 nogil
    cdef int move(
        self, Py_ssize_t i, double gamma, const double* direction) except -1 nogil
    cdef int scatter(
        self, Py_ssize_t i, double coef, const double* direction,
        double* target) except -1 nogil
    cdef int project(
        self, Py_ssize_t i, const double* direction, const double* v,
        const double* lower, const double* upper, double* w) except -1 nogil
    cdef int shrink(
        self, Py_ssize_t i, const double* direction, const double* v,
        double threshold, double* w) except -1 nogil
    cdef int mark(
        self, Py_ssize_t i, const double* direction, unsigned char* pages
        ) except -1 nogil
    cdef int release(self, Py_ssize_t i, const int* labels) except -1 nogil

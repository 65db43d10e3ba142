from sklearn_structsvm.structures._flat cimport FlatOracle


cdef class PairwiseOracle(FlatOracle):
    cdef const signed char[:, ::1] Y
    cdef const double[:, ::1] costs
    cdef const Py_ssize_t[:, ::1] pairs
    cdef Py_ssize_t n_pairs, pair_at

from sklearn_structsvm.structures._flat cimport IndicatorOracle


cdef class PairwiseOracle(IndicatorOracle):
    cdef const Py_ssize_t[:, ::1] pairs
    cdef Py_ssize_t n_pairs, pair_at

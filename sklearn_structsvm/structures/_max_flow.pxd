# A network between two terminals. Node v supplies excess[v] if that is positive, and
# absorbs -excess[v] if it is negative. Arcs first[v] ... first[v + 1] lead from v to
# `head`, with a capacity, and each has a `mate`, the arc back. The flow is found in
# place, which leaves the residual excess and capacity.
cdef struct Network:
    int n_nodes
    const int* first
    const int* head
    const int* mate
    double* excess
    double* capacity


# Of a node while the flow grows; see _max_flow.pyx.
cdef struct Vertex:
    int distance
    int parent
    int current
    int listed
    int next


cdef Py_ssize_t flow_scratch_size(Py_ssize_t n_nodes) noexcept nogil
cdef void find_max_flow(const Network* network, void* scratch) noexcept nogil
cdef bint on_source_side(const void* scratch, Py_ssize_t v) noexcept nogil

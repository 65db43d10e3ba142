from libc.string cimport memset


# Numbers that are mostly zero; the places of the others are listed.
cdef struct Table:
    Py_ssize_t size
    double* values
    # The number of listed places, each listed once; or -n if no places are listed and any
    # of the first n values may be nonzero.
    Py_ssize_t* count
    int* places
    # 1 for each listed place.
    unsigned char* marks


cdef inline Py_ssize_t table_room(Py_ssize_t size) noexcept nogil:
    """Doubles that a table takes besides its values."""
    return 1 + (size + 1) // 2 + (size + 7) // 8


cdef inline Table make_table(
        Py_ssize_t size, double* values, double* room) noexcept nogil:
    """A table in the caller's memory: its values and its room, both zero at first."""
    cdef Table table
    table.size = size
    table.values = values
    table.count = <Py_ssize_t*> room
    table.places = <int*> (room + 1)
    table.marks = <unsigned char*> (room + 1 + (size + 1) // 2)
    return table


cdef inline void table_add(
        const Table* table, Py_ssize_t place, double value) noexcept nogil:
    if table.count[0] >= 0 and not table.marks[place]:
        table.marks[place] = 1
        table.places[table.count[0]] = <int> place
        table.count[0] += 1
    table.values[place] += value


cdef inline void table_clear(const Table* table) noexcept nogil:
    """Set all values to zero."""
    cdef Py_ssize_t j, place
    if table.count[0] < 0:
        memset(table.values, 0, -table.count[0] * sizeof(double))
    for j in range(table.count[0]):
        place = table.places[j]
        table.values[place] = 0.0
        table.marks[place] = 0
    table.count[0] = 0


cdef inline void table_fill(const Table* table, Py_ssize_t n) noexcept nogil:
    """Stop listing: the first n > 0 values may all be nonzero; zero the listed ones."""
    if table.count[0] >= 0:
        table_clear(table)
    # A larger n from before stays, so that `table_clear` clears those values, too.
    table.count[0] = min(table.count[0], -n)


# The sums of one block: all of them if the count is negative, else those at `places`.
cdef struct Sums:
    Py_ssize_t count
    Py_ssize_t capacity
    double* values
    int* places


cdef class EdgeSums:
    cdef readonly Py_ssize_t n_blocks, size
    cdef Sums* blocks

    cdef void _forget(self, Py_ssize_t i) noexcept nogil
    cdef int _reserve(self, Sums* sums, Py_ssize_t n_more) except -1 nogil
    cdef bint is_all(self, Py_ssize_t i) noexcept nogil
    cdef const double* all_or_none(self, Py_ssize_t i) except? NULL nogil
    cdef double* all_values(self, Py_ssize_t i) except NULL nogil
    cdef double dot(self, Py_ssize_t i, const double* weights) noexcept nogil
    cdef void add_to(self, Py_ssize_t i, double c, const Table* table) noexcept nogil
    cdef int move(self, Py_ssize_t i, double gamma, const Table* table) except -1 nogil

"""Labelings of a forest that slack rescaling must look at, exactly.

With h(y) = one + f(y) - f(y_i) and the loss g(y) >= 0, which are sums over nodes and
edges, the maximizer of h g is on the Pareto front: for each value that the loss can have,
the best score. Dynamic programming finds it (Bauer, Görnitz, Biegler, Müller and
Kloft 2014 for chains). For each node v with all nodes below it, the *rows*

    F_v[g][c] = best score of a labeling of them of loss g where v has the label c

are built from those of its children u, one child after another, as

    F_v[a + b][c] = max F_v[a][c] + max_p (F_u[b][p] + edge_u[p, c]).

Scores are differences from those of the true labeling, and there is a row for each
distinct sum of losses: integer costs make few of them, at most 1 + the largest loss. To
keep their number small for other costs, and for long chains, entries are dropped

- if another one of the same label has no smaller loss and no smaller score;
- if no labeling that they are a part of can be the maximizer. With K the largest
  h + λ g of such labelings, from max-sum messages of the rest of the forest,
  h g <= K² / (4 λ) (Lemma 5 of Choi, Meshi and Srebro 2016). They are dropped if the
  h g of a known labeling is larger; see `_pareto_bound`.

If too many are left, that known labeling is the only candidate, with the bound for all.

All results are in the scratch memory of the plane: a `Head`, one `Node` for each node
and one for the root above all roots, then rows.
"""
from sklearn_structsvm._utils import tolerances

from libc.math cimport INFINITY, sqrt
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memmove

from sklearn_structsvm._contract._oracle cimport Plane, reserve_points, reserve_scratch
from sklearn_structsvm.structures._forest cimport (
    Forest, costs_of, edge_of, fill, highest_of, parent_of, true_edge, true_label)
from sklearn_structsvm.structures._pareto_bound cimport (
    Messages, Point, bound_the_rest, find_multiplier, messages_at, rounding)


cdef extern from "_utils/_vector.h" nogil:
    void vector_add_max_plus(
        Py_ssize_t k, const double* previous, const double* transition,
        double* current) noexcept


cdef extern from "structures/_pareto.h" nogil:
    void front_add_max_plus(
        Py_ssize_t count, const int* labels, Py_ssize_t k, const double* scores,
        const double* transition, double* current) noexcept
    double front_next_cost(
        Py_ssize_t k, const double* cost, double bound) noexcept
    Py_ssize_t front_select(
        Py_ssize_t k, const double* theta, double truth, const double* cost,
        double loss, const double* rest, double least, double nothing,
        double* best) noexcept
    void front_sum(
        Py_ssize_t k, const double* a, const double* b, int pair, double* best,
        int* source) noexcept
    void front_join(
        Py_ssize_t k, const double* a, const double* b, int pair, double* best,
        int* source) noexcept
    Py_ssize_t front_prune(
        Py_ssize_t k, const double* rest, double least, double nothing, double* best,
        double* top) noexcept


cdef double VALUE_ROUNDING = tolerances.VALUE_ROUNDING

# Forests of at most this many nodes, with costs of one size, have so few rows that the
# search for a multiplier does not pay.
cdef Py_ssize_t SMALL_FOREST = 8

# Limit of the memory of one example, in doubles: about 128 MB and a second.
cdef Py_ssize_t MEMORY_LIMIT = 1 << 24


# Places count doubles from the start of the scratch memory, which moves as it grows.
cdef struct Head:
    Py_ssize_t used
    # The row of the whole forest that is the first point of the plane. The place of the
    # labels of a point that is found without rows; otherwise -1.
    Py_ssize_t points
    Py_ssize_t labels
    # The multiplier λ, the least value of an entry that is kept, and the place of `rest`:
    # the most that can be added to the rows of each node, for each label.
    double lam
    double least
    Py_ssize_t rest
    # The place of a row of zeros, or of the rest of the root above all roots.
    Py_ssize_t top_rest


cdef struct Node:
    # Places and counts of rows: those of the node alone, and those of its parent joined
    # with the children up to and including this node.
    Py_ssize_t own
    Py_ssize_t n_own
    Py_ssize_t joint
    Py_ssize_t n_joint
    # The last child so far, and the sibling joined before this node; -1 for none.
    Py_ssize_t last
    Py_ssize_t previous
    # For `forest_labels`: the row of the labeling, and the label.
    Py_ssize_t row
    Py_ssize_t label


# `count` scores, then as many sources (int), then as many labels (int). A row of all k
# scores has no labels, and missing scores are -infinity.
cdef struct Row:
    double loss
    Py_ssize_t at
    Py_ssize_t count


cdef struct Pair:
    double loss
    Py_ssize_t index


cdef inline Py_ssize_t doubles(Py_ssize_t n_bytes) noexcept nogil:
    return (n_bytes + sizeof(double) - 1) // sizeof(double)


cdef inline Py_ssize_t row_size(Py_ssize_t count, bint dense) noexcept nogil:
    return count + (2 - dense) * doubles(count * sizeof(int))


cdef double* memory(Plane* plane, Py_ssize_t size) except NULL nogil:
    return <double*> reserve_scratch(plane, size * sizeof(double))


cdef inline Node* node_at(double* base, Py_ssize_t v) noexcept nogil:
    return <Node*> (base + doubles(sizeof(Head))) + v


cdef Py_ssize_t close_row(
        double* base, Py_ssize_t place, Py_ssize_t at, Py_ssize_t width, double loss,
        Py_ssize_t kept, int* spare) noexcept nogil:
    """Close a row with `kept` of `width` entries, dense or compressed; return its end."""
    cdef bint dense = 2 * kept >= width
    cdef double* scores = base + at
    cdef int* sources = <int*> (scores + width)
    cdef Py_ssize_t c, j = 0
    cdef Row* row = <Row*> (base + place)
    row.loss = loss
    row.at = at
    row.count = width if dense else kept
    if not dense:
        for c in range(width):
            if scores[c] > -INFINITY:
                scores[j] = scores[c]
                sources[j] = sources[c]
                spare[j] = <int> c
                j += 1
        memcpy(sources_of(base, row), sources, kept * sizeof(int))
        memcpy(labels_of(base, row), spare, kept * sizeof(int))
    return at + row_size(row.count, dense)


cdef int own_rows(
        const Forest* forest, Plane* plane, Py_ssize_t v) except -1 nogil:
    """The rows of a node alone: one for each of its costs, the largest first.

    Returns 1 if there are too many.
    """
    cdef Py_ssize_t row_doubles = doubles(sizeof(Row))
    cdef Py_ssize_t k = forest.k, n_rows = 0, kept, rest
    cdef Py_ssize_t spare = (<Head*> plane.scratch).used
    cdef Py_ssize_t rows = spare + doubles(k * sizeof(int))
    cdef Py_ssize_t end = rows + k * row_doubles
    cdef double* base
    cdef Head* head
    cdef const double* cost = costs_of(forest, v)
    cdef const double* theta = forest.theta + v * k
    cdef double truth = theta[true_label(forest, v)]
    cdef double loss = INFINITY
    while loss > 0.0:
        loss = front_next_cost(k, cost, loss)
        if end > MEMORY_LIMIT:
            return 1
        base = memory(plane, end + row_size(k, True))
        head = <Head*> base
        rest = head.top_rest if head.rest < 0 else head.rest + v * k
        kept = front_select(
            k, theta, truth, cost, loss, base + rest, head.least - head.lam * loss,
            -INFINITY, base + end)
        if kept > 0:
            end = close_row(base, rows + n_rows * row_doubles, end, k, loss, kept,
                            <int*> (base + spare))
            n_rows += 1
    node_at(base, v).own = close_up(base, rows, n_rows, k, end)
    node_at(base, v).n_own = n_rows
    node_at(base, v).last = -1
    return 0


cdef Py_ssize_t close_up(
        double* base, Py_ssize_t rows, Py_ssize_t n_rows, Py_ssize_t room,
        Py_ssize_t end) noexcept nogil:
    """Move rows and their entries to the end of the memory in use; returns their place.

    Before their entries, there was room for `room` rows.
    """
    cdef Head* head = <Head*> base
    cdef Py_ssize_t place = head.used, r
    cdef Py_ssize_t entries = rows + room * doubles(sizeof(Row))
    cdef Py_ssize_t new_entries = place + n_rows * doubles(sizeof(Row))
    cdef Row* row
    memmove(base + place, base + rows, n_rows * sizeof(Row))
    memmove(base + new_entries, base + entries, (end - entries) * sizeof(double))
    row = <Row*> (base + place)
    for r in range(n_rows):
        row[r].at -= entries - new_entries
    head.used = new_entries + end - entries
    return place


cdef void rows_of(
        double* base, Py_ssize_t v, Py_ssize_t* place, Py_ssize_t* count) noexcept nogil:
    """The rows of a node with all children that were joined to it so far."""
    cdef Node* node = node_at(base, v)
    if node.last < 0:
        place[0] = node.own
        count[0] = node.n_own
    else:
        place[0] = node_at(base, node.last).joint
        count[0] = node_at(base, node.last).n_joint


cdef void sort_pairs(
        Py_ssize_t n, Py_ssize_t run, Pair* pairs, Pair* spare) noexcept nogil:
    """Merge runs of descending losses, each of length `run`, into one, in place."""
    cdef Py_ssize_t start, middle, stop, a, b, at
    while run < n:
        start = 0
        while start < n:
            middle = min(start + run, n)
            stop = min(start + 2 * run, n)
            memcpy(spare, pairs + start, (middle - start) * sizeof(Pair))
            a = 0
            b = middle
            at = start
            while a < middle - start and b < stop:
                if spare[a].loss >= pairs[b].loss:
                    pairs[at] = spare[a]
                    a += 1
                else:
                    pairs[at] = pairs[b]
                    b += 1
                at += 1
            memcpy(pairs + at, spare + a, (middle - start - a) * sizeof(Pair))
            start = stop
        run *= 2


cdef void send_messages(
        const Forest* forest, double* base, Py_ssize_t u, Py_ssize_t parent,
        Py_ssize_t rows, Py_ssize_t n_rows, double* out) noexcept nogil:
    """max_p F_u[g][p] + edge_u[p, c], minus the true edge, for all rows g of u."""
    cdef Py_ssize_t k = forest.k, r, place
    cdef const Row* row = <const Row*> (base + rows)
    for r in range(n_rows):
        if parent == forest.n:
            out[r] = highest_of(row[r].count, base + row[r].at, &place)
            continue
        fill(k, -true_edge(forest, u, parent), out + r * k)
        if row[r].count == k:
            vector_add_max_plus(k, base + row[r].at, edge_of(forest, u), out + r * k)
        else:
            front_add_max_plus(
                row[r].count, labels_of(base, &row[r]), k, base + row[r].at,
                edge_of(forest, u), out + r * k)


cdef inline int* sources_of(double* base, const Row* row) noexcept nogil:
    return <int*> (base + row.at + row.count)


cdef inline int* labels_of(double* base, const Row* row) noexcept nogil:
    return <int*> (base + row.at + row.count + doubles(row.count * sizeof(int)))


cdef void join_row(
        double* base, const Row* row, Py_ssize_t width, const double* message,
        int pair, bint first, double* best, int* source) noexcept nogil:
    """best[c] = max(best[c], row[c] + message[c]); just the latter for the first row."""
    cdef const int* labels
    cdef const double* scores = base + row.at
    cdef double value
    cdef Py_ssize_t j, c
    if row.count == width:
        if first:
            front_sum(width, scores, message, pair, best, source)
        else:
            front_join(width, scores, message, pair, best, source)
        return
    if first:
        for c in range(width):
            best[c] = -INFINITY
            source[c] = pair
    labels = labels_of(base, row)
    for j in range(row.count):
        c = labels[j]
        value = scores[j] + message[c]
        if value > best[c]:
            best[c] = value
            source[c] = pair


cdef Py_ssize_t lower_rest(
        const Forest* forest, double* base, Py_ssize_t u, Py_ssize_t v) noexcept nogil:
    """Take u, once joined to v, out of the rest of v; return the place of the rest."""
    cdef Py_ssize_t k = forest.k, c
    cdef Head* head = <Head*> base
    cdef double* message
    cdef double* rest
    if head.rest < 0:
        return head.top_rest
    message = messages_at(forest, base + head.rest).message + u * k
    if v == forest.n:
        base[head.top_rest] -= message[0]
        return head.top_rest
    rest = base + head.rest + v * k
    for c in range(k):
        rest[c] -= message[c]
    return head.rest + v * k


cdef int join(const Forest* forest, Plane* plane, Py_ssize_t u) except -1 nogil:
    """Join the rows of u, and so of all below it, to those of its parent.

    Returns 1 if there are too many.
    """
    cdef Py_ssize_t v = parent_of(forest, u), width = forest.k if v < forest.n else 1
    cdef Py_ssize_t rows_u = 0, n_u = 0, rows_v = 0, n_v = 0, a, b, j = 0, kept
    cdef Py_ssize_t n_pairs, messages, pairs_at, top, spare, rest, rows, end
    cdef Py_ssize_t n_rows = 0, row_doubles = doubles(sizeof(Row))
    cdef double* base = <double*> plane.scratch
    cdef Head* head = <Head*> base
    cdef Pair* pairs
    cdef double loss
    cdef bint first
    rows_of(base, u, &rows_u, &n_u)
    rows_of(base, v, &rows_v, &n_v)
    n_pairs = n_u * n_v
    messages = head.used
    pairs_at = messages + n_u * width
    top = pairs_at + 2 * n_pairs * doubles(sizeof(Pair))
    spare = top + width
    rows = spare + doubles(width * sizeof(int))
    end = rows + n_pairs * row_doubles
    if end > MEMORY_LIMIT:
        return 1
    base = memory(plane, end)
    rest = lower_rest(forest, base, u, v)
    send_messages(forest, base, u, v, rows_u, n_u, base + messages)
    pairs = <Pair*> (base + pairs_at)
    list_pairs(<const Row*> (base + rows_v), n_v, <const Row*> (base + rows_u), n_u,
               pairs)
    fill(width, -INFINITY, base + top)
    while j < n_pairs:
        if end > MEMORY_LIMIT:
            return 1
        base = memory(plane, end + row_size(width, True))
        head = <Head*> base
        pairs = <Pair*> (base + pairs_at)
        loss = pairs[j].loss
        first = True
        while j < n_pairs and pairs[j].loss >= loss * (1.0 - VALUE_ROUNDING):
            a = pairs[j].index // n_u
            b = pairs[j].index % n_u
            join_row(base, <const Row*> (base + rows_v) + a, width,
                     base + messages + b * width, <int> pairs[j].index, first,
                     base + end, <int*> (base + end + width))
            first = False
            j += 1
        kept = front_prune(
            width, base + rest, head.least - head.lam * loss, -INFINITY, base + end,
            base + top)
        if kept > 0:
            end = close_row(base, rows + n_rows * row_doubles, end, width, loss, kept,
                            <int*> (base + spare))
            n_rows += 1
    node_at(base, u).joint = close_up(base, rows, n_rows, n_pairs, end)
    node_at(base, u).n_joint = n_rows
    node_at(base, u).previous = node_at(base, v).last
    node_at(base, v).last = u
    return 0


cdef void list_pairs(
        const Row* first, Py_ssize_t n_first, const Row* second, Py_ssize_t n_second,
        Pair* pairs) noexcept nogil:
    """List pairs of rows by descending loss; `pairs` has room for twice as many."""
    cdef Py_ssize_t a, b, at = 0
    if n_first <= n_second:
        for a in range(n_first):
            for b in range(n_second):
                pairs[at].loss = first[a].loss + second[b].loss
                pairs[at].index = a * n_second + b
                at += 1
        sort_pairs(at, n_second, pairs, pairs + at)
    else:
        for b in range(n_second):
            for a in range(n_first):
                pairs[at].loss = first[a].loss + second[b].loss
                pairs[at].index = a * n_second + b
                at += 1
        sort_pairs(at, n_first, pairs, pairs + at)


cdef bint of_one_size(const Forest* forest, double* largest) noexcept nogil:
    """Whether all costs that are not zero are equal; also the largest sum of costs."""
    cdef Py_ssize_t v
    cdef double size = 0.0, cost
    cdef bint result = True
    largest[0] = 0.0
    for v in range(forest.n):
        cost = front_next_cost(forest.k, costs_of(forest, v), INFINITY)
        largest[0] += cost
        if result and cost > 0.0:
            result = (size == 0.0 or cost == size) and front_next_cost(
                forest.k, costs_of(forest, v), cost) == 0.0
            size = cost
    return result


cdef int aim(
        const Forest* forest, double one, double unit, double largest, Plane* plane
        ) except -1 nogil:
    """Find the multiplier, the threshold for entries, and a labeling with its bound."""
    cdef Py_ssize_t n = forest.n, k = forest.k
    cdef Py_ssize_t rest = (<Head*> plane.scratch).used, labels = rest + 4 * n * k
    cdef Py_ssize_t buffer = labels + doubles(3 * n * sizeof(int))
    cdef Point best
    cdef double* base = memory(plane, buffer + k * (k + 1))
    cdef Head* head = <Head*> base
    cdef Messages m = messages_at(forest, base + rest)
    head.lam = find_multiplier(forest, one, largest, m, <int*> (base + labels), &best)
    head.labels = labels
    reserve_points(plane, 1)
    plane.count = 1
    plane.scores[0] = best.h - one
    plane.losses[0] = unit * best.g
    if best.h > 0.0 and 4.0 * head.lam * best.h * best.g >= (
            best.value * best.value * (1.0 - VALUE_ROUNDING)):
        return 0
    head.least = 2.0 * sqrt(head.lam * best.incumbent) - rounding(forest, head.lam, one)
    bound_the_rest(forest, best.value, m, base + buffer)
    head.rest = rest
    base[head.top_rest] = best.value
    best.value = max(best.value, 0.0) + rounding(forest, head.lam, one)
    plane.bound = unit * best.value * best.value / (4.0 * head.lam)
    head.used = labels + doubles(n * sizeof(int))
    return 0


cdef int forest_front(
        const Forest* forest, double one, double unit, Plane* plane) except -1 nogil:
    """Fill the plane with labelings one of which maximizes loss · (one + score).

    Losses are `unit` times the sums of costs. The plane is empty if the maximum is
    0, that of the true labeling. If there are too many, it has one labeling, which the
    search for a multiplier found, and its bound.
    """
    cdef Py_ssize_t n = forest.n, k = forest.k, v, j, rows = 0, count = 0
    cdef double largest = 0.0
    cdef double* base
    cdef Head* head
    cdef Node* node
    cdef Row* row
    cdef bint one_size = of_one_size(forest, &largest)
    plane.count = 0
    if largest == 0.0:
        return 0
    v = doubles(sizeof(Head)) + (n + 1) * doubles(sizeof(Node))
    base = memory(plane, v + k + doubles(sizeof(Row)) + row_size(1, True))
    head = <Head*> base
    head.top_rest = v
    fill(k, 0.0, base + v)
    head.lam = 0.0
    head.least = -INFINITY
    head.rest = head.labels = -1
    node = node_at(base, n)
    node.own = v + k
    node.n_own = 1
    node.last = -1
    row = <Row*> (base + node.own)
    row.loss = 0.0
    row.at = node.own + doubles(sizeof(Row))
    row.count = 1
    base[row.at] = 0.0
    head.used = row.at + row_size(1, True)
    if n > SMALL_FOREST or k > MEMORY_LIMIT >> 8 or not one_size:
        aim(forest, one, unit, largest, plane)
        if plane.bound == 0.0:
            return 0
    for v in range(2 * n):
        if own_rows(forest, plane, v) if v < n else join(forest, plane, v - n):
            return 0
    plane.count = 0
    plane.bound = 0.0
    base = <double*> plane.scratch
    head = <Head*> base
    head.labels = -1
    rows_of(base, n, &rows, &count)
    reserve_points(plane, count)
    row = <Row*> (base + rows)
    head.points = -1
    for j in range(count):
        # Losses fall and scores rise, so the points that are left out are at the ends.
        if row[j].loss == 0.0 or one + base[row[j].at] <= 0.0:
            continue
        if head.points < 0:
            head.points = j
        plane.losses[plane.count] = unit * row[j].loss
        plane.scores[plane.count] = base[row[j].at]
        plane.count += 1
    return 0


cdef Py_ssize_t place_of(
        double* base, const Row* row, Py_ssize_t width, Py_ssize_t label) noexcept nogil:
    """Place of a label among the entries of a row that has it."""
    cdef const int* labels
    cdef Py_ssize_t j = 0
    if row.count == width:
        return label
    labels = labels_of(base, row)
    # It is there, unless scores are NaN.
    while j < row.count - 1 and labels[j] != label:
        j += 1
    return j


cdef void forest_labels(
        const Forest* forest, const Plane* plane, Py_ssize_t j, int* labels
        ) noexcept nogil:
    """The labeling of point j, traced back through the sources of its row."""
    cdef Py_ssize_t n = forest.n, k = forest.k, v, u, r, width, source, c, p, best
    cdef Py_ssize_t place = 0, n_rows = 0
    cdef double* base = <double*> plane.scratch
    cdef Node* node
    cdef Node* child
    cdef const Row* row
    cdef double highest, score
    if (<Head*> base).labels >= 0:
        memcpy(labels, base + (<Head*> base).labels, n * sizeof(int))
        return
    node_at(base, n).row = (<Head*> base).points + j
    node_at(base, n).label = 0
    for v in range(n, -1, -1):
        node = node_at(base, v)
        width = k if v < n else 1
        c = node.label
        r = node.row
        u = node.last
        while u >= 0:
            child = node_at(base, u)
            row = (<const Row*> (base + child.joint)) + r
            source = sources_of(base, row)[place_of(base, row, width, c)]
            rows_of(base, u, &place, &n_rows)
            r = source // n_rows
            child.row = source % n_rows
            row = (<const Row*> (base + place)) + child.row
            best = 0
            highest = -INFINITY
            for p in range(row.count):
                score = base[row.at + p]
                if v < n:
                    score += edge_of(forest, u)[
                        (p if row.count == k else labels_of(base, row)[p]) * k + c]
                if score > highest:
                    highest = score
                    best = p
            child.label = best if row.count == k else labels_of(base, row)[best]
            labels[u] = <int> child.label
            u = child.previous


cdef struct Flip:
    double gain
    int index


cdef int higher_gain(const void* first, const void* second) noexcept nogil:
    cdef const Flip* a = <const Flip*> first
    cdef const Flip* b = <const Flip*> second
    if a.gain != b.gain:
        return 1 if a.gain < b.gain else -1
    return 1 if a.index > b.index else -1


cdef int prefix_front(const Forest* forest, Plane* plane) except -1 nogil:
    """Same as `forest_front`, for labels 0 (true) and 1, no edges, and costs of one size.

    For each number of ones that cost something, those with the highest gains are best.
    Ones that cost nothing are taken if they gain.
    """
    cdef Py_ssize_t n = forest.n, v, m = 0
    cdef Flip* flips = <Flip*> reserve_scratch(plane, n * sizeof(Flip))
    cdef double score = 0.0, cost = 0.0, gain
    for v in range(n):
        gain = forest.theta[2 * v + 1] - forest.theta[2 * v]
        if forest.costs[2 * v + 1] == 0.0:
            score += max(gain, 0.0)
        else:
            cost = forest.costs[2 * v + 1]
            # NaN cannot be sorted.
            flips[m].gain = gain if gain == gain else -INFINITY
            flips[m].index = <int> v
            m += 1
    qsort(flips, m, sizeof(Flip), higher_gain)
    reserve_points(plane, m)
    for v in range(m):
        score += flips[v].gain
        plane.scores[v] = score
        plane.losses[v] = (v + 1) * cost
    plane.count = m
    return 0


cdef void prefix_labels(
        const Forest* forest, const Plane* plane, Py_ssize_t j, int* labels
        ) noexcept nogil:
    """The labeling of point j of `prefix_front`."""
    cdef const Flip* order = <const Flip*> plane.scratch
    cdef Py_ssize_t v
    for v in range(forest.n):
        labels[v] = (forest.costs[2 * v + 1] == 0.0
                     and forest.theta[2 * v + 1] > forest.theta[2 * v])
    for v in range(j + 1):
        labels[order[v].index] = 1

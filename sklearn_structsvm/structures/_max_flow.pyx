"""Maximum flow, and with it a minimum cut, by incremental breadth-first search.

Two trees grow toward each other over arcs with capacity left: S from all nodes that
supply excess, T from all that absorb it. A node's `distance` is its exact distance to its
terminal, d in S and -d in T. A tree holds all nodes within its radius, and grows by all
that are one arc farther. If an arc leads from S to T, flow is sent along it and the two
branches. That exhausts arcs or terminals, which cuts nodes off. Such an orphan takes a
parent at its distance less one; or else the nearest possible parent, with a larger
distance; or it leaves its tree if that is beyond the radius. Orphans are processed from
the nearest to the farthest, so each comes after those that may become its parents.

As distances only grow, O(n² m) operations are enough for any capacities [1]_. Neither
tiny flows nor rounding keep it from ending, since what is used up becomes exactly zero.
On images, each arc is looked at a few times.

At the end S holds the nodes that can still be reached from excess: the smallest of all
minimum cuts.

.. [1] Goldberg, A., Hed, S., Kaplan, H., Tarjan, R. and Werneck, R. (2011). Maximum flows
   by incremental breadth-first search. ESA 2011.
"""

# Values of `parent`: for a node without one, for a node that is attached to its terminal,
# and for a node that has lost its parent and has no other yet.
cdef enum:
    FREE = -1
    ROOT = -2
    ORPHAN = -3

cdef enum:
    SOURCE = 1
    SINK = -1


# A tree: its sign, its radius, its nodes at that distance, and those one arc farther.
cdef struct Tree:
    int sign
    int radius
    int n_active
    int n_next
    int* active
    int* next_active


cdef struct Search:
    const Network* network
    Vertex* vertices
    # The first orphan of each distance, and the range of distances that have one.
    int* orphans
    int nearest
    int farthest


cdef Py_ssize_t flow_scratch_size(Py_ssize_t n_nodes) noexcept nogil:
    """Bytes of scratch memory that `find_max_flow` needs."""
    return n_nodes * sizeof(Vertex) + (5 * n_nodes + 2) * sizeof(int)


cdef bint on_source_side(const void* scratch, Py_ssize_t v) noexcept nogil:
    """Whether excess can still reach node v, once the flow is maximal."""
    return (<const Vertex*> scratch)[v].distance > 0


cdef void find_max_flow(const Network* network, void* scratch) noexcept nogil:
    """Send as much excess as possible, in place."""
    cdef int n = network.n_nodes, v
    cdef Search search
    cdef Tree source, sink
    cdef int* numbers = <int*> (<char*> scratch + n * sizeof(Vertex))
    search.network = network
    search.vertices = <Vertex*> scratch
    search.orphans = numbers
    search.nearest, search.farthest = n + 1, 0
    plant(&source, SOURCE, n, numbers + n + 2)
    plant(&sink, SINK, n, numbers + 3 * n + 2)
    for v in range(n + 2):
        search.orphans[v] = FREE
    for v in range(n):
        search.vertices[v].distance = search.vertices[v].listed = 0
        search.vertices[v].parent = FREE
        if network.excess[v] != 0.0:
            attach(&search, &source if network.excess[v] > 0.0 else &sink, v, ROOT, 1)
    shift(&source)
    shift(&sink)
    # Once T cannot grow any more, S takes in whatever else it reaches.
    while source.n_active:
        if 0 < sink.n_active < source.n_active:
            grow(&search, &sink, &source)
        else:
            grow(&search, &source, &sink)


cdef void plant(Tree* tree, int sign, int n, int* numbers) noexcept nogil:
    tree.sign = sign
    tree.radius = tree.n_active = tree.n_next = 0
    tree.active = numbers
    tree.next_active = numbers + n


cdef void shift(Tree* tree) noexcept nogil:
    """Increase the radius: the tree now holds all nodes at the next distance."""
    tree.active, tree.next_active = tree.next_active, tree.active
    tree.n_active = tree.n_next
    tree.n_next = 0
    tree.radius += 1


cdef void attach(
        Search* search, Tree* tree, int v, int parent, int distance) noexcept nogil:
    """Put node v at this distance, with the arc `parent` to its parent."""
    cdef Vertex* vertex = &search.vertices[v]
    vertex.distance = tree.sign * distance
    vertex.parent = vertex.current = parent
    if distance < tree.radius or vertex.listed == vertex.distance:
        return
    vertex.listed = vertex.distance
    if distance == tree.radius:
        tree.active[tree.n_active] = v
        tree.n_active += 1
    else:
        tree.next_active[tree.n_next] = v
        tree.n_next += 1


cdef inline double toward(
        const Network* network, int sign, int slot) noexcept nogil:
    """Capacity left in the direction of flow on an arc toward the terminal."""
    return network.capacity[network.mate[slot] if sign > 0 else slot]


cdef void grow(Search* search, Tree* tree, Tree* other) noexcept nogil:
    """Take in all free nodes one arc farther, sending flow where the trees meet."""
    cdef const Network* network = search.network
    cdef int i = 0, v, w, slot, at = tree.sign * tree.radius
    while i < tree.n_active:
        v = tree.active[i]
        i += 1
        slot = network.first[v]
        while slot < network.first[v + 1] and search.vertices[v].distance == at:
            w = network.head[slot]
            if (search.vertices[w].distance * tree.sign > 0
                    or toward(network, -tree.sign, slot) <= 0.0):
                slot += 1
            elif search.vertices[w].distance == 0:
                attach(search, tree, w, network.mate[slot], tree.radius + 1)
                slot += 1
            else:
                send(search, tree, other,
                     slot if tree.sign > 0 else network.mate[slot])
    shift(tree)


cdef void send(Search* search, Tree* growing, Tree* other, int slot) noexcept nogil:
    """Send what fits through an arc from S to T and the branches at its ends."""
    cdef const Network* network = search.network
    cdef int start = network.head[network.mate[slot]], end = network.head[slot]
    cdef double amount = network.capacity[slot]
    amount = least_left(search, SOURCE, start, amount)
    amount = least_left(search, SINK, end, amount)
    network.capacity[slot] -= amount
    network.capacity[network.mate[slot]] += amount
    # The growing tree already has nodes one arc beyond its radius.
    use(search, growing.sign, start if growing.sign > 0 else end, amount)
    adopt(search, growing, growing.radius + 1)
    use(search, other.sign, start if other.sign > 0 else end, amount)
    adopt(search, other, other.radius)


cdef double least_left(
        const Search* search, int sign, int v, double amount) noexcept nogil:
    """How much of an amount the branch from v to its terminal lets through."""
    cdef int slot = search.vertices[v].parent
    while slot != ROOT:
        amount = min(amount, toward(search.network, sign, slot))
        v = search.network.head[slot]
        slot = search.vertices[v].parent
    return min(amount, sign * search.network.excess[v])


cdef void use(Search* search, int sign, int v, double amount) noexcept nogil:
    """Send an amount through the branch of v; nodes it cuts off become orphans."""
    cdef const Network* network = search.network
    cdef int slot = search.vertices[v].parent, forth, back
    while slot != ROOT:
        forth = network.mate[slot] if sign > 0 else slot
        back = slot if sign > 0 else network.mate[slot]
        network.capacity[forth] -= amount
        network.capacity[back] += amount
        if network.capacity[forth] <= 0.0:
            orphan(search, v)
        v = network.head[slot]
        slot = search.vertices[v].parent
    network.excess[v] -= sign * amount
    if sign * network.excess[v] <= 0.0:
        orphan(search, v)


cdef void orphan(Search* search, int v) noexcept nogil:
    cdef Vertex* vertex = &search.vertices[v]
    cdef int distance = abs(vertex.distance)
    vertex.parent = ORPHAN
    vertex.next = search.orphans[distance]
    search.orphans[distance] = v
    search.nearest = min(search.nearest, distance)
    search.farthest = max(search.farthest, distance)


cdef void adopt(Search* search, Tree* tree, int limit) noexcept nogil:
    """Find parents for all orphans of a tree, within the limit, or leave them free."""
    cdef int distance = search.nearest, v
    while distance <= search.farthest:
        v = search.orphans[distance]
        if v == FREE:
            distance += 1
            continue
        search.orphans[distance] = search.vertices[v].next
        if not keep_distance(search, tree, v, distance):
            move_away(search, tree, v, limit)
    search.nearest, search.farthest = search.network.n_nodes + 1, 0


cdef bint keep_distance(Search* search, Tree* tree, int v, int distance) noexcept nogil:
    """Find another parent one arc nearer, starting at the arc of the last one."""
    cdef const Network* network = search.network
    cdef int slot, wanted = tree.sign * (distance - 1)
    cdef Vertex* vertex = &search.vertices[v]
    if distance == 1:
        return False
    for slot in range(vertex.current, network.first[v + 1]):
        if (search.vertices[network.head[slot]].distance == wanted
                and toward(network, tree.sign, slot) > 0.0):
            vertex.parent = vertex.current = slot
            return True
    return False


cdef void move_away(Search* search, Tree* tree, int v, int limit) noexcept nogil:
    """Take the nearest parent of all, if within the limit; the children lose theirs."""
    cdef const Network* network = search.network
    cdef int slot, w, distance, nearest = limit, best = FREE
    for slot in range(network.first[v], network.first[v + 1]):
        w = network.head[slot]
        distance = search.vertices[w].distance * tree.sign
        if distance <= 0:
            continue
        if distance < nearest and toward(network, tree.sign, slot) > 0.0:
            nearest = distance
            best = slot
        if search.vertices[w].parent == network.mate[slot]:
            orphan(search, w)
    if best != FREE:
        attach(search, tree, v, best, nearest + 1)
    else:
        search.vertices[v].distance = 0
        search.vertices[v].parent = FREE

/* _plugin_width.h includes this file once for each REAL, with INDEX the integer type of
 * the same size and NAMED(name) the name for this type; hence there is no include guard.
 * Among the cheapest classes, the first is chosen. */

#define GROUP_ROWS ((ptrdiff_t)(GROUP_VECTORS * VECTOR_BYTES / sizeof(REAL)))

#ifdef HAS_VECTORS
typedef REAL NAMED(vector)
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
typedef INDEX NAMED(indices)
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(INDEX)), may_alias));
#define VECTOR NAMED(vector)
#define INDICES NAMED(indices)
#define LANES ((int)(VECTOR_BYTES / sizeof(REAL)))
#define AT(pointer, u) (*(const VECTOR *)((pointer) + (u) * LANES))
#define CHOICES(pointer, u) (*(const INDICES *)((pointer) + (u) * LANES))

/* Where the score is less than the best so far, it becomes the best, and j the choice.
 * Compilers turn the three bit operations into one blend. */
#define TAKE_LESS(score, j, best, choice)                                             \
    do {                                                                              \
        const INDICES less_ = (INDICES)((score) < (best));                            \
        best = (VECTOR)((less_ & (INDICES)(score)) | (~less_ & (INDICES)(best)));     \
        choice = (less_ & (j)) | (~less_ & (choice));                                 \
    } while (0)

TARGET
static void NAMED(choose_separable)(ptrdiff_t padded, ptrdiff_t k, const REAL *costs,
                                    const REAL *P, INDEX *choices)
{
    const VECTOR zeros = {0};
    const INDICES first = {0};
    for (ptrdiff_t r = 0; r < padded; r += GROUP_ROWS) {
        const REAL *p = P + r;
        VECTOR best[GROUP_VECTORS];
        INDICES choice[GROUP_VECTORS];
        EACH_OF_GROUP {
            best[u] = (zeros + costs[0]) + costs[k] * AT(p, u);
            choice[u] = first;
        }
        for (ptrdiff_t j = 1; j < k; j++) {
            const VECTOR c = zeros + costs[j], d = zeros + costs[k + j];
            const INDICES label = first + (INDEX)j;
            p += padded;
            EACH_OF_GROUP {
                const VECTOR score = c + d * AT(p, u);
                TAKE_LESS(score, label, best[u], choice[u]);
            }
        }
        EACH_OF_GROUP *(INDICES *)(choices + r + u * LANES) = choice[u];
    }
}

TARGET
static void NAMED(choose_any)(ptrdiff_t padded, ptrdiff_t k, ptrdiff_t q,
                              const REAL *costs, const REAL *P, INDEX *choices)
{
    const VECTOR none = (VECTOR){0} + (REAL)INFINITY;
    const INDICES first = {0};
    for (ptrdiff_t r = 0; r < padded; r += GROUP_ROWS) {
        VECTOR best[GROUP_VECTORS];
        INDICES choice[GROUP_VECTORS];
        EACH_OF_GROUP {
            best[u] = none;
            choice[u] = first;
        }
        for (ptrdiff_t j = 0; j < q; j++) {
            const REAL *p = P + r, *column = costs + j * k;
            const INDICES label = first + (INDEX)j;
            VECTOR score[GROUP_VECTORS];
            EACH_OF_GROUP score[u] = column[0] * AT(p, u);
            for (ptrdiff_t i = 1; i < k; i++) {
                p += padded;
                EACH_OF_GROUP score[u] += column[i] * AT(p, u);
            }
            EACH_OF_GROUP TAKE_LESS(score[u], label, best[u], choice[u]);
        }
        EACH_OF_GROUP *(INDICES *)(choices + r + u * LANES) = choice[u];
    }
}

/* counts[j] = how many of the choices are j */
TARGET
static void NAMED(count)(ptrdiff_t padded, ptrdiff_t q, const INDEX *choices,
                         double *counts)
{
    const INDICES first = {0};
    for (ptrdiff_t j = 0; j < q; j++) {
        const INDICES label = first + (INDEX)j;
        INDICES found = {0};
        for (ptrdiff_t r = 0; r < padded; r += GROUP_ROWS)
            EACH_OF_GROUP found -= (INDICES)(CHOICES(choices + r, u) == label);
        INDEX total = 0;
        for (int l = 0; l < LANES; l++)
            total += found[l];
        counts[j] = (double)total;
    }
}

/* Which labels may be among the choices of each group: bit j modulo the width of INDEX. */
TARGET
static void NAMED(find_present)(ptrdiff_t padded, const INDEX *choices, INDEX *present)
{
    const INDICES ones = (INDICES){0} + (INDEX)1;
    for (ptrdiff_t r = 0; r < padded; r += GROUP_ROWS) {
        INDICES bits = {0};
        EACH_OF_GROUP bits |=
            ones << (CHOICES(choices + r, u) & (INDEX)(8 * sizeof(INDEX) - 1));
        INDEX any = 0;
        for (int l = 0; l < LANES; l++)
            any |= bits[l];
        present[r / GROUP_ROWS] = any;
    }
}

TARGET
static inline double NAMED(add_up)(const REAL *lanes)
{
    double sums[LANES];
    for (int l = 0; l < LANES; l++)
        sums[l] = lanes[l];
    for (int half = LANES / 2; half >= 1; half /= 2)
        for (int l = 0; l < half; l++)
            sums[l] += sums[l + half];
    return sums[0];
}

/* For each j except `but`, collect the weights of the rows that choose j, with zeros for
 * the other rows, and skip groups in which no row chooses j; then multiply by η, two
 * labels at a time. Similar rows are side by side, so that a group has few choices. What
 * is added to `sums` is subtracted from `rest` (k numbers). Meanwhile the next block is
 * prefetched. */
TARGET
static void NAMED(add_products)(ptrdiff_t padded, ptrdiff_t k, ptrdiff_t q,
                                const INDEX *choices, INDEX but, const REAL *P,
                                const REAL *w, double *rest, double *sums)
{
    VECTOR chosen[BLOCK_ROWS / LANES];
    INDEX present[BLOCK_ROWS / GROUP_ROWS];
    ptrdiff_t starts[BLOCK_ROWS / GROUP_ROWS];
    const INDICES first = {0};
    const VECTOR ones = (VECTOR){0} + (REAL)1;
    const char *ahead = (const char *)(P + padded * k);
    const char *const end = (const char *)(P + 2 * padded * k);
    NAMED(find_present)(padded, choices, present);
    for (ptrdiff_t j = 0; j < q; j++) {
        const INDICES label = first + (INDEX)j;
        const int bit = (int)(j % (ptrdiff_t)(8 * sizeof(INDEX)));
        ptrdiff_t n_groups = 0;
        for (ptrdiff_t r = 0; r < padded && j != but; r += GROUP_ROWS) {
            if (!(present[r / GROUP_ROWS] >> bit & 1))
                continue;
            EACH_OF_GROUP {
                const VECTOR weight = w ? AT(w + r, u) : ones;
                const INDICES is = (INDICES)(CHOICES(choices + r, u) == label);
                chosen[n_groups * GROUP_VECTORS + u] = (VECTOR)(is & (INDICES)weight);
            }
            starts[n_groups++] = r;
        }
        for (ptrdiff_t i = 0; n_groups && i < k; i += 2) {
            const ptrdiff_t next = i + 1 < k ? i + 1 : i;
            const REAL *p = P + i * padded, *after = P + next * padded;
            VECTOR total[GROUP_VECTORS] = {{0}}, other[GROUP_VECTORS] = {{0}};
            for (ptrdiff_t g = 0; g < n_groups; g++) {
                const VECTOR *c = chosen + g * GROUP_VECTORS;
                const ptrdiff_t r = starts[g];
                for (int line = 0; line < LINES_PER_GROUP && ahead < end; line++, ahead += 64)
                    __builtin_prefetch(ahead, 0, 2);
                EACH_OF_GROUP {
                    total[u] += c[u] * AT(p + r, u);
                    other[u] += c[u] * AT(after + r, u);
                }
            }
            total[0] = (total[0] + total[1]) + (total[2] + total[3]);
            other[0] = (other[0] + other[1]) + (other[2] + other[3]);
            const double sum = NAMED(add_up)((const REAL *)total);
            sums[i * q + j] += sum;
            rest[i] -= sum;
            if (next > i) {
                const double sum_next = NAMED(add_up)((const REAL *)other);
                sums[next * q + j] += sum_next;
                rest[next] -= sum_next;
            }
        }
    }
}

#undef VECTOR
#undef INDICES
#undef LANES
#undef AT
#undef CHOICES
#undef TAKE_LESS
#else

static void NAMED(choose_separable)(ptrdiff_t padded, ptrdiff_t k, const REAL *costs,
                                    const REAL *P, INDEX *choices)
{
    for (ptrdiff_t r = 0; r < padded; r++) {
        REAL best = (REAL)INFINITY;
        choices[r] = 0;
        for (ptrdiff_t j = 0; j < k; j++) {
            const REAL score = costs[j] + costs[k + j] * P[j * padded + r];
            choices[r] = score < best ? (INDEX)j : choices[r];
            best = score < best ? score : best;
        }
    }
}

static void NAMED(choose_any)(ptrdiff_t padded, ptrdiff_t k, ptrdiff_t q,
                              const REAL *costs, const REAL *P, INDEX *choices)
{
    for (ptrdiff_t r = 0; r < padded; r++) {
        REAL best = (REAL)INFINITY;
        choices[r] = 0;
        for (ptrdiff_t j = 0; j < q; j++) {
            REAL score = costs[j * k] * P[r];
            for (ptrdiff_t i = 1; i < k; i++)
                score += costs[j * k + i] * P[i * padded + r];
            choices[r] = score < best ? (INDEX)j : choices[r];
            best = score < best ? score : best;
        }
    }
}

static void NAMED(count)(ptrdiff_t padded, ptrdiff_t q, const INDEX *choices,
                         double *counts)
{
    memset(counts, 0, q * sizeof(double));
    for (ptrdiff_t r = 0; r < padded; r++)
        counts[choices[r]] += 1.0;
}

static void NAMED(add_products)(ptrdiff_t padded, ptrdiff_t k, ptrdiff_t q,
                                const INDEX *choices, INDEX but, const REAL *P,
                                const REAL *w, double *rest, double *sums)
{
    for (ptrdiff_t i = 0; i < k; i++)
        for (ptrdiff_t r = 0; r < padded; r++)
            if (choices[r] != but) {
                const double product = (w ? w[r] : 1) * P[i * padded + r];
                sums[i * q + choices[r]] += product;
                rest[i] -= product;
            }
}

#endif

static void NAMED(choose)(const plugin_block *block, INDEX *choices)
{
    const REAL *costs = (const REAL *)block->costs, *P = (const REAL *)block->P;
    if (block->separable)
        NAMED(choose_separable)(block->padded, block->k, costs, P, choices);
    else
        NAMED(choose_any)(block->padded, block->k, block->q, costs, P, choices);
}

static void NAMED(tally)(const plugin_block *block, const double *w, double *room,
                         double *tally)
{
    INDEX choices[BLOCK_ROWS] ALIGNED;
    const ptrdiff_t q = block->q, padding = block->padded - block->rows;
    NAMED(choose)(block, choices);
    if (!w) {
        NAMED(count)(block->padded, q, choices, tally);
        if (padding)
            tally[choices[block->padded - 1]] -= (double)padding;
        return;
    }
    /* Four sums for each choice, since each addition waits for the one before it. */
    const ptrdiff_t quarter = block->padded / 4;
    memset(room, 0, 4 * q * sizeof(double));
    for (ptrdiff_t r = 0; r < quarter; r++)
        for (ptrdiff_t s = 0; s < 4; s++)
            room[s * q + choices[s * quarter + r]] += w[s * quarter + r];
    for (ptrdiff_t j = 0; j < q; j++)
        tally[j] = (room[j] + room[q + j]) + (room[2 * q + j] + room[3 * q + j]);
}

/* The choice that more than half of the sampled rows make, if there is one; otherwise any
 * of their choices (Boyer and Moore). */
static INDEX NAMED(frequent)(ptrdiff_t rows, const INDEX *choices)
{
    INDEX found = choices[0];
    ptrdiff_t votes = 0;
    for (ptrdiff_t r = 0; r < rows; r += VOTES_APART) {
        if (votes == 0)
            found = choices[r];
        votes += choices[r] == found ? 1 : -1;
    }
    return found;
}

static void NAMED(sums)(const plugin_block *block, const void *w, const double *totals,
                        double *rest, double *sums)
{
    INDEX choices[BLOCK_ROWS] ALIGNED;
    const ptrdiff_t k = block->k, q = block->q;
    NAMED(choose)(block, choices);
    const INDEX but = NAMED(frequent)(block->rows, choices);
    memcpy(rest, totals, k * sizeof(double));
    NAMED(add_products)(block->padded, k, q, choices, but, (const REAL *)block->P,
                        (const REAL *)w, rest, sums);
    for (ptrdiff_t i = 0; i < k; i++)
        sums[i * q + but] += rest[i] > 0.0 ? rest[i] : 0.0;
}

static void NAMED(write_choices)(const plugin_block *block, int32_t *chosen)
{
    INDEX choices[BLOCK_ROWS] ALIGNED;
    NAMED(choose)(block, choices);
    for (ptrdiff_t r = 0; r < block->rows; r++)
        chosen[r] = (int32_t)choices[r];
}

#undef GROUP_ROWS

"""Tables from the values of columns to the features of a plan, learned or hashed."""

import re

import numpy as np

from sklearn_structsvm.preprocessing._words import (
    PairTable,
    affixes,
    atoms_of,
    group_pairs,
    letters_of,
    make_rows,
    rows_of_values,
    shapes,
    shifted_rows,
)

ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


class ValueFault(TypeError):
    """The value at the place `row` of a column is no string."""

    def __init__(self, row, column):
        super().__init__(row, column)
        self.row, self.column = row, column


def lowered(words):
    """Words in lower case, with each digit as 0."""
    # Most of a text is in lower case already, and is held once.
    words = [word if (own := word.lower()) == word else own for word in words]
    return [word if word.isalpha() else re.sub(r"\d", "0", word) for word in words]


def strings_of(kind, argument, values, clusters):
    """The attribute of each value of a column, None where there is none."""
    if kind in ("shape", "short"):
        return shapes(values, kind == "short")
    if kind == "cluster":
        return [_cluster(word, *argument, clusters) for word in values]
    if kind in "tT":
        found = re.compile(argument).search
        return ["false" if found(value) is None else "true" for value in values]
    if kind in "mM":
        found = map(re.compile(argument).search, values)
        values = ["" if match is None else match[0] for match in found]
    return [value.translate(ASCII_LOWER) for value in values] if kind in "XM" else values


def _cluster(word, name, size, clusters):
    table = clusters[name]
    for own in (word, word.lower()):
        if own in table:
            bits = str(table[own])
            return bits[:size] if size is None or len(bits) >= size else None
    return None


class FeatureTables:
    """What a fit learns of words: rows of values, atoms of strings, columns of features.

    `n_columns`: of the input, with those of gazetteers. `n_hashed` or None: the number
    of columns if they are hashed: then nothing is learned.
    """

    def __init__(self, plan, n_columns, clusters, n_hashed=None):
        self.plan, self.clusters, self.n_hashed = plan, clusters, n_hashed
        spaces = dict.fromkeys(attribute.space for attribute in plan.attributes)
        self.vocabularies = {space: {} for space in spaces}
        self._index(n_columns)
        # Whether the columns of a row rise by themselves.
        self.is_sorted = n_hashed is None and not plan.is_translated
        bounds = [*plan.bounds[0], *plan.bounds[1]]
        self.values = [{} for _ in range(n_columns)]
        self.atoms = [
            self._atoms(column, bounds, [], are_bounds=not plan.is_translated)
            for column in range(n_columns)
        ]
        nothing = np.empty(0, np.intc)
        self.pairs = np.empty(0, np.int64), nothing, nothing
        self.bases, self.single = {}, nothing
        self.n_features = n_hashed or 0

    def _index(self, n_columns):
        """What follows from the plan: attributes of columns, and numbers of families."""
        self.own = [self.plan.own(column) for column in range(n_columns)]
        self.known = [
            [self.vocabularies[self.plan.attributes[place].space] for place in own]
            if self.n_hashed is None
            else None
            for own in self.own
        ]
        families = dict.fromkeys(map(self.plan.family, self.plan.templates))
        self.families = {family: number for number, family in enumerate(families)}

    def _atoms(self, column, values, numbers=None, are_bounds=False):
        """Atoms of values, one row each; `numbers` as of `atoms_of`."""
        lower, strings = None, []
        for place in self.own[column]:
            _, kind, argument, _ = self.plan.attributes[place]
            if are_bounds:
                own = values if kind in ("lower", "x") else [None] * len(values)
            elif kind in ("lower", "prefix", "suffix"):
                if lower is None:
                    lower = lowered(values)
                    letters = letters_of(lower)
                own = lower
                if kind != "lower":
                    own = affixes(letters, argument, kind == "suffix")
            else:
                own = strings_of(kind, argument, values, self.clusters)
            strings.append(own)
        return atoms_of(strings, self.known[column], numbers, len(values))

    def fit(self, columns, starts, min_count):
        """Learn the features of words; return what `rows` does.

        `starts` (n_sentences + 1,). `columns` (list of lists of str): the values of
        each column, of all words.
        """
        if self.n_hashed is not None:
            return self.rows(columns)
        rows = []
        for column, values in enumerate(columns):
            n_rows = len(self.atoms[column])
            own, new = self._rows(column, values)
            self.values[column] = new
            atoms = self._atoms(column, list(new), [*range(n_rows), *new.values()])
            self.atoms[column] = np.concatenate([self.atoms[column], atoms])
            rows.append(own)
        shifted = _Shifted(rows, starts, self.plan.reach)
        ranks = {name: _ranks(own) for name, own in self.vocabularies.items()}
        # Those of equal names are counted together. What neighbors have but once says
        # nothing of others: without it errors are as many or fewer, and features half.
        least = (1, 1) if self.plan.is_translated else (min_count, max(min_count, 2))
        self.features, counts = [], []
        self._learn_singles(shifted, ranks, least, counts)
        nodes, leaves = self._learn_others(shifted, ranks, least[1], counts)
        if self.plan.is_translated:
            leaves = self._merge(leaves, np.concatenate(counts), min_count)
        self.pairs = tuple(map(np.concatenate, zip(*nodes, *leaves, strict=True)))
        return [(own, {}) for own in rows]

    def _learn_singles(self, shifted, ranks, min_counts, counts):
        """Columns of templates with one part: of each family, of each of its atoms.

        Atom 0 of a family is at its place in `bases`, and before it what has no atom.
        `min_counts`: of features of the word, and of its neighbors.
        """
        times, least, single = {}, {}, [self.single]
        for column, own in enumerate(self.own):
            for template in self.plan.singles(column):
                (part,) = template.parts
                number = self.families[self.plan.family(template)]
                space = self.plan.attributes[part.attribute].space
                atoms = self.atoms[column][:, own.index(part.attribute)]
                at_rows = shifted.counts(column, part, len(atoms))
                found = np.bincount(
                    atoms[atoms >= 0], at_rows[atoms >= 0], len(self.vocabularies[space])
                )
                times[number] = times.get(number, 0.0) + found
                least[number] = min_counts[part.offset != 0]
        for (literals, spaces), number in self.families.items():
            if len(spaces) != 1:
                continue
            kept = np.flatnonzero(times[number] >= least[number]).astype(np.intc)
            kept = kept[np.argsort(ranks[spaces[0]][kept])]
            self.bases[number] = sum(map(len, single)) + 1
            single.append(np.full(len(times[number]) + 1, -1, np.intc))
            single[-1][kept + 1] = self._new_columns(len(kept))
            self.features.append((literals, spaces, None))  # `single` has its atoms.
            counts.append(times[number][kept])
        self.single = np.concatenate(single)

    def _learn_others(self, shifted, ranks, min_count, counts):
        """Entries (prefix, atom, value) of templates with several parts, or none."""
        families, nodes, leaves, n_nodes = {}, [], [self.pairs], 0
        for template in self.plan.others:
            families.setdefault(self.plan.family(template), []).append(template)
        for (literals, spaces), templates in families.items():
            root = np.int64(self.families[literals, spaces] + 1) << 32
            if not spaces:
                # It is the same at each word.
                is_kept = int(shifted.n_words * len(templates) >= min_count)
                prefix, ends = np.full(is_kept, root), np.zeros(is_kept, np.intc)
                atoms = np.empty((is_kept, 0), np.intc)
                counts.append(np.full(is_kept, shifted.n_words * len(templates)))
            else:
                parts = np.concatenate(
                    [self._part_atoms(own, shifted) for own in templates], axis=1
                )
                prefix = root | parts[0].astype(np.int64)
                for middle in parts[1:-1]:
                    groups, first = group_pairs(prefix, middle)
                    numbers = n_nodes + np.arange(len(first), dtype=np.intc)
                    nodes.append((prefix[first], middle[first], numbers))
                    prefix = (n_nodes + groups).astype(np.int64)
                    n_nodes += len(first)
                groups, first = group_pairs(prefix, parts[-1])
                times = np.bincount(groups, minlength=len(first))
                first, times = first[times >= min_count], times[times >= min_count]
                own = [
                    ranks[space][atoms]
                    for space, atoms in zip(spaces, parts[:, first], strict=True)
                ]
                order = np.lexsort(own[::-1])
                first = first[order]
                counts.append(times[order])
                prefix, ends, atoms = prefix[first], parts[-1][first], parts[:, first].T
            leaves.append((prefix, ends, self._new_columns(len(prefix))))
            self.features.append((literals, spaces, atoms))
        return nodes, leaves

    def _part_atoms(self, template, shifted):
        """Atoms of the parts of a template (n_parts, n), at words that have them all."""
        found = []
        for part in template.parts:
            if part not in shifted.atoms:
                column = self.plan.attributes[part.attribute].column
                place = self.own[column].index(part.attribute)
                atoms = self.atoms[column][:, place][shifted.rows(column, part)]
                shifted.atoms[part] = atoms, atoms.min() >= 0
            found.append(shifted.atoms[part])
        found, are_all = zip(*found, strict=True)
        found = np.stack(found)
        if all(are_all):
            return found
        return np.ascontiguousarray(found[:, (found >= 0).all(axis=0)])

    def _new_columns(self, n):
        self.n_features += n
        return np.arange(self.n_features - n, self.n_features, dtype=np.intc)

    def _merge(self, leaves, counts, min_count):
        """Make one feature of equal names, as CRF++ does; return the leaves."""
        names, places = np.unique(self.names(), return_inverse=True)
        is_kept = np.bincount(places, counts, len(names)) >= min_count
        places = np.where(is_kept, np.cumsum(is_kept) - 1, -1)[places].astype(np.intc)
        places = np.append(places, np.intc(-1))  # For -1.
        self.single = places[self.single]
        self.features, self.n_features = names[is_kept], int(is_kept.sum())
        found = []
        for prefixes, atoms, columns in leaves:
            is_used = places[columns] >= 0
            own = prefixes[is_used], atoms[is_used], places[columns[is_used]]
            found.append(own)
        return found

    def transform(self, found, starts):
        """Columns of the features of each word.

        `found` of `rows`, `starts` of `fit`. Returns `indices` (intc), `indptr` (intp).
        """
        tables = [
            (rows, known, self._atoms(column, list(new)) if new else known[:0])
            for column, ((rows, new), known) in enumerate(
                zip(found, self.atoms, strict=True)
            )
        ]
        compiled = vars(self).get("_compiled") or self._compile()
        is_hashed = self.n_hashed is not None
        return make_rows(
            tables, starts, self.plan.reach, *compiled, self.n_features, is_hashed
        )

    def rows(self, columns):
        """The rows of the values of each column, and a dict of those of new values."""
        return [self._rows(column, values) for column, values in enumerate(columns)]

    def _rows(self, column, values):
        n_rows = len(self.atoms[column])
        rows, new, bad = rows_of_values(values, self.values[column], n_rows, column > 0)
        if bad >= 0:
            raise ValueFault(bad, column)
        return rows, new

    def _compile(self):
        """What `make_rows` takes, of the tables that were learned."""
        if len(self.single) and self.single.max() >= self.n_features:
            raise ValueError("The tables of features were changed after fit.")
        places, singles, others, parts = {}, [], [], []
        for template in self.plan.templates:
            own = []
            for part in template.parts:
                column = self.plan.attributes[part.attribute].column
                place = places.setdefault((column, *part[1:]), len(places))
                own.append((place, self.own[column].index(part.attribute)))
            number = self.families[self.plan.family(template)]
            if len(own) == 1:
                singles.append((*own[0], self.bases.get(number, number)))
            else:
                parts += own
                others.append((number, len(parts)))
        places, singles, others, parts = (
            np.array(list(rows), np.intc).reshape(-1, width)
            for rows, width in ((places, 3), (singles, 3), (others, 2), (parts, 2))
        )
        table = PairTable(*self.pairs)
        self._compiled = places, singles, self.single, others, parts, table
        return self._compiled

    def __getstate__(self):
        state = vars(self).items()
        made = ("_compiled", "own", "known", "families")
        return {name: value for name, value in state if name not in made}

    def __setstate__(self, state):
        vars(self).update(state)
        self._index(len(self.values))

    def names(self):
        """The name of each feature."""
        if isinstance(self.features, np.ndarray):
            return self.features
        found = []
        lists = {name: list(own) for name, own in self.vocabularies.items()}
        for literals, spaces, atoms in self.features:
            if atoms is None:
                base = self.bases[self.families[literals, spaces]]
                columns = self.single[base : base + len(lists[spaces[0]])]
                atoms = np.argsort(columns)[(columns < 0).sum() :, np.newaxis]
            parts = [
                [lists[space][atom] for atom in own]
                for space, own in zip(spaces, atoms.T.tolist(), strict=True)
            ]
            if not spaces:
                found += literals * len(atoms)
            for strings in zip(*parts, strict=True):
                pairs = zip(literals[1:], strings, strict=True)
                found.append(literals[0] + "".join(s + text for text, s in pairs))
        return np.array(found, dtype=object)


class _Shifted:
    """Rows of the values at offsets from each word."""

    def __init__(self, rows, starts, reach):
        self.own, self.starts, self.reach = rows, starts, reach
        self.n_words = int(starts[-1])
        self.counted, self.atoms = {}, {}

    def rows(self, column, part):
        return shifted_rows(
            self.own[column], self.starts, part.offset, part.is_absolute, self.reach
        )

    def counts(self, column, part, n_rows):
        """How often each row stands there."""
        place = column, part.offset, part.is_absolute
        if place not in self.counted:
            self.counted[place] = np.bincount(self.rows(column, part), minlength=n_rows)
        return self.counted[place]


def _ranks(vocabulary):
    """The rank of each string among all, sorted."""
    order = sorted(range(len(vocabulary)), key=list(vocabulary).__getitem__)
    ranks = np.empty(len(order), np.intc)
    ranks[order] = np.arange(len(order), dtype=np.intc)
    return ranks

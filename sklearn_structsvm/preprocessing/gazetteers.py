"""Lists of phrases, found in sentences longest first."""

from array import array

import numpy as np

from sklearn_structsvm.preprocessing._words import PairTable, group_pairs, match_phrases

# What the first and the other words of a phrase have as their value.
MARKS = (None, "B", "I")


class Gazetteer:
    """Phrases in lower case, as a tree of words."""

    def __init__(self, name, phrases):
        if isinstance(phrases, str):
            raise TypeError(f"gazetteers[{name!r}] must be a list of phrases; got a str.")
        # Millions of phrases, so numbers are held in arrays.
        self.words, numbers, sizes = {}, array("i"), array("i")
        for phrase in phrases:
            try:
                if isinstance(phrase, str):
                    own = phrase.lower().split()
                else:
                    own = [word.lower() for word in phrase]
            except (TypeError, AttributeError):
                raise TypeError(
                    f"gazetteers[{name!r}] contains {phrase!r}; a phrase must be a "
                    "string or a tuple of words."
                ) from None
            setdefault = self.words.setdefault
            numbers.extend([setdefault(word, len(self.words)) for word in own])
            sizes.append(len(own))
        self._grow(np.array(numbers, np.intc), np.array(sizes, np.intc))

    def _grow(self, numbers, sizes):
        """Make the nodes, those of one depth at a time; the root is 0."""
        starts = np.cumsum(sizes) - sizes
        nodes, n_nodes, entries = np.zeros(len(sizes), np.int64), 1, []
        longer = np.flatnonzero(sizes)
        for depth in range(max(sizes, default=0)):
            own = nodes[longer], numbers[starts[longer] + depth]
            groups, first = group_pairs(*own)
            found = n_nodes + np.arange(len(first), dtype=np.intc)
            entries.append((own[0][first], own[1][first], found))
            nodes[longer] = n_nodes + groups
            n_nodes += len(first)
            longer = longer[sizes[longer] > depth + 1]
        empty = np.empty(0, np.int64), np.empty(0, np.intc), np.empty(0, np.intc)
        self.pairs = tuple(map(np.concatenate, zip(empty, *entries, strict=True)))
        self.is_end = np.zeros(n_nodes, np.uint8)
        self.is_end[nodes] = 1
        self.is_end[0] = 0

    def marks(self, words, starts):
        """The value of each word: "B" or "I" in a phrase, or None."""
        table = vars(self).get("_table")
        if table is None:
            table = self._table = PairTable(*self.pairs)
        numbers = [self.words.get(word.lower(), -1) for word in words]
        found = match_phrases(np.array(numbers, np.intc), starts, table, self.is_end)
        return [MARKS[mark] for mark in found.tolist()]

    def __getstate__(self):
        return {name: own for name, own in vars(self).items() if name != "_table"}

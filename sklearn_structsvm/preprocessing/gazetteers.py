"""Lists of phrases, found in sentences longest first."""

import numpy as np

from sklearn_structsvm.preprocessing._words import PairTable, match_phrases

# What the first and the other words of a phrase have as their value.
MARKS = (None, "B", "I")


class Gazetteer:
    """Phrases in lower case, as a tree of words."""

    def __init__(self, name, phrases):
        if isinstance(phrases, str):
            raise TypeError(f"gazetteers[{name!r}] must be a list of phrases; got a str.")
        words, nodes, ends = {}, {}, [0]
        for phrase in phrases:
            if isinstance(phrase, str):
                phrase = phrase.split()
            node = 0
            for word in phrase:
                number = words.setdefault(word.lower(), len(words))
                node = nodes.setdefault((node << 32) + number, len(nodes) + 1)
            ends.append(node)
        keys = np.fromiter(nodes, np.int64, len(nodes))
        self.words = words
        self.pairs = keys >> 32, keys.astype(np.intc), np.arange(1, len(keys) + 1)
        self.pairs = tuple(map(np.ascontiguousarray, self.pairs))
        self.pairs = *self.pairs[:2], self.pairs[2].astype(np.intc)
        self.is_end = np.zeros(len(nodes) + 1, np.uint8)
        self.is_end[ends[1:]] = 1
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

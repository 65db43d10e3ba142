"""Attributes of the tokens of a text for chunking, as strings and as CSR rows."""

from collections.abc import Sequence
from itertools import chain
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix

from sklearn_structsvm._utils.borders import check_choice, check_sequence
from sklearn_structsvm._utils.mistakes import with_plain_calls

# The template of the CRFsuite tutorial: fields and offsets read together. The order is
# that of the columns; offsets of a token grow within an entry.
TEMPLATE = (
    *((("w", offset),) for offset in range(-2, 3)),
    *((("w", offset), ("w", offset + 1)) for offset in (-1, 0)),
    *((("pos", offset),) for offset in range(-2, 3)),
    *((("pos", offset), ("pos", offset + 1)) for offset in range(-2, 2)),
    *((("pos", o), ("pos", o + 1), ("pos", o + 2)) for o in range(-2, 1)),
)
REACH = 2  # the largest offset
FIELDS = {"w": 0, "pos": 1}
BOS, EOS = "__BOS__", "__EOS__"
# Codes of the two pads, of unknown strings, and of the first known string.
BOS_CODE, EOS_CODE, UNKNOWN, FIRST_CODE = range(4)


def _attribute_prefix(entry):
    return "|".join(f"{field}[{offset}]" for field, offset in entry) + "="


@with_plain_calls
def chunking_attributes(
    tokens: Sequence[tuple[str, str]], *, template: Literal["paper", "tutorial"] = "paper"
) -> list[list[str]]:
    """Extract attributes for chunking from the words and tags around each token.

    The attributes are those of the chunking tutorial of CRFsuite [1]_: the words at
    offsets -2 to 2 (``w[-2]=the``), the word pairs at offsets -1, 0 and 0, 1
    (``w[-1]|w[0]=the|cat``), and the unigrams, bigrams and trigrams of part-of-speech
    tags at offsets -2 to 2.

    Read more in the :ref:`User Guide <guide-words>`.

    Parameters
    ----------
    tokens : sequence of (word, tag) pairs of str
        One sentence.
    template : {'paper', 'tutorial'}, default='paper'
        How to treat the case of words and the ends of the sentence.

        - 'paper': words in lower case; offsets beyond the ends read ``__BOS__`` and
          ``__EOS__``. Every token has 19 attributes. These are the attributes of [2]_.
        - 'tutorial': words as they are; attributes that reach beyond the ends are left
          out; the first and the last token have the attributes ``__BOS__`` and
          ``__EOS__``.

    Returns
    -------
    attributes : list of list of str
        Attributes of each token.

    Raises
    ------
    ValueError
        If a token is not a pair of strings (the message names it), or `template` is
        unknown.

    See Also
    --------
    fetch_conll2000 : Sentences with these attributes as sparse features.

    References
    ----------
    .. [1] N. Okazaki, "CRFsuite: a fast implementation of Conditional Random Fields",
       2007, tutorial on chunking.
    .. [2] A. Osokin, J.-B. Alayrac, I. Lukasewitz, P. Dokania, S. Lacoste-Julien,
       "Minding the Gaps for Block Frank-Wolfe Optimization of Structured SVMs",
       ICML 2016.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import chunking_attributes
    >>> attributes = chunking_attributes([("The", "DT"), ("cat", "NN"), ("sat", "VBD")])
    >>> attributes[1][2:6]
    ['w[0]=cat', 'w[1]=sat', 'w[2]=__EOS__', 'w[-1]|w[0]=the|cat']
    """
    check_choice("template", template, ("paper", "tutorial"))
    check_sequence("tokens", tokens, "a list of (word, tag) pairs", TypeError)
    pairs = []
    for t, token in enumerate(tokens):
        if (
            not isinstance(token, (tuple, list))
            or len(token) != 2
            or not all(isinstance(part, str) for part in token)
        ):
            raise ValueError(f"tokens[{t}] must be a (word, tag) pair, got {token!r}.")
        word, tag = token
        pairs.append((word.lower() if template == "paper" else word, tag))
    n_tokens = len(pairs)

    def read(field, position):
        if position < 0:
            return BOS
        return EOS if position >= n_tokens else pairs[position][FIELDS[field]]

    attributes = [
        [
            _attribute_prefix(entry) + "|".join(read(f, t + o) for f, o in entry)
            for entry in TEMPLATE
            if template == "paper" or all(0 <= t + o < n_tokens for _, o in entry)
        ]
        for t in range(n_tokens)
    ]
    if template == "tutorial" and attributes:
        attributes[0].append(BOS)
        attributes[-1].append(EOS)
    return attributes


class ChunkingVocabulary:
    """Columns of the attributes of some sentences, and the encoding of others.

    Equal to counting the strings of :func:`chunking_attributes`, but on integers: each
    field is coded once, and an attribute is a number of up to three digits, in base of
    the number of codes.

    `template` ({'paper', 'tutorial'}). `sentences` (list of list of (word, tag)):
    sentences whose attributes, seen at least `min_count` times, have a column.
    """

    def __init__(self, sentences, template, min_count):
        check_choice("template", template, ("paper", "tutorial"))
        self.template = template
        self._strings = {}  # of each field: code by string
        for field in FIELDS:
            flat = dict.fromkeys(self._flat_field(sentences, field))
            self._strings[field] = {s: FIRST_CODE + c for c, s in enumerate(flat)}
        codes, positions = self._padded_codes(sentences)
        self._keys = []  # of each entry of the template: sorted numbers with a column
        for entry in TEMPLATE:
            numbers = self._numbers(entry, codes, positions)
            keys, counts = np.unique(numbers[numbers >= 0], return_counts=True)
            self._keys.append(keys[counts >= min_count])
        self._first_columns = np.cumsum([0] + [len(keys) for keys in self._keys])
        self._has_end_marks = template == "tutorial" and len(sentences) >= min_count
        self.n_attributes = int(self._first_columns[-1]) + 2 * self._has_end_marks

    def _flat_field(self, sentences, field):
        column = FIELDS[field]
        strings = (token[column] for token in chain.from_iterable(sentences))
        if field == "w" and self.template == "paper":
            return map(str.lower, strings)
        return strings

    def _padded_codes(self, sentences):
        """Codes of each field, with pads around sentences, and the places of tokens."""
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        ends = np.cumsum(lengths + 2 * REACH)
        positions = np.arange(lengths.sum()) + np.repeat(
            REACH * (1 + 2 * np.arange(len(lengths))), lengths
        )
        padded = np.full(ends[-1] if len(ends) else 0, EOS_CODE, dtype=np.int64)
        for before in range(REACH):
            padded[ends - lengths - 2 * REACH + before] = BOS_CODE
        codes = {}
        for field, code_of in self._strings.items():
            flat = (code_of.get(s, UNKNOWN) for s in self._flat_field(sentences, field))
            codes[field] = padded.copy()
            codes[field][positions] = np.fromiter(flat, np.int64, len(positions))
        return codes, positions

    def _base(self, entry):
        return FIRST_CODE + len(self._strings[entry[0][0]])

    def _numbers(self, entry, codes, positions):
        """The number of each token's attribute, or -1 if it has none."""
        base = self._base(entry)
        numbers = np.zeros(len(positions), dtype=np.int64)
        absent = np.zeros(len(positions), dtype=bool)
        for field, offset in entry:
            read = codes[field][positions + offset]
            numbers = numbers * base + read
            absent |= read == UNKNOWN
            if self.template == "tutorial":
                absent |= read < FIRST_CODE
        numbers[absent] = -1
        return numbers

    def encode(self, sentences):
        """One row a token: CSR (n_tokens, n_attributes), float64, columns sorted."""
        codes, positions = self._padded_codes(sentences)
        n_tokens = len(positions)
        columns = np.full((n_tokens, len(TEMPLATE) + 2), -1, dtype=np.int32)
        for j, (entry, keys) in enumerate(zip(TEMPLATE, self._keys, strict=True)):
            if len(keys):
                numbers = self._numbers(entry, codes, positions)
                found = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
                known = keys[found] == numbers
                columns[known, j] = found[known] + self._first_columns[j]
        if self._has_end_marks:
            lengths = np.array([len(sentence) for sentence in sentences], dtype=int)
            ends = np.cumsum(lengths)[lengths > 0]
            columns[ends - lengths[lengths > 0], -2] = self.n_attributes - 2
            columns[ends - 1, -1] = self.n_attributes - 1
        present = columns >= 0
        indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        indices = columns[present]
        rows = csr_matrix(
            (np.ones(len(indices)), indices, indptr.astype(np.int32)),
            shape=(n_tokens, self.n_attributes),
        )
        rows.has_canonical_format = True
        return rows

    def attribute_names(self):
        """The string of each column, (n_attributes,) of dtype object."""
        names = []
        for entry, keys in zip(TEMPLATE, self._keys, strict=True):
            prefix, base = _attribute_prefix(entry), self._base(entry)
            strings = [BOS, EOS, None, *self._strings[entry[0][0]]]
            digits = []
            for _ in entry:
                keys, digit = np.divmod(keys, base)
                digits.append([strings[code] for code in digit.tolist()])
            names += [
                prefix + "|".join(parts) for parts in zip(*digits[::-1], strict=True)
            ]
        if self._has_end_marks:
            names += [BOS, EOS]
        return np.array(names, dtype=object)

"""Entities described by the tags of a chain, as spans with probabilities.

Tags are read as in `entity_f1_score`: pairs of neighbors decide whether a tag continues
the entity of the previous one.
"""

from typing import NamedTuple

import numpy as np

from sklearn_structsvm._utils.labels import plain
from sklearn_structsvm._utils.tags import entities_of, tag_parts
from sklearn_structsvm.structures._spans import span_probabilities


class Span(NamedTuple):
    """An entity of a sequence: its positions, its type, and its probability.

    ``tokens[span.start:span.stop]`` are its tokens.
    """

    start: int
    stop: int
    type: str
    probability: float


def has_tags(structure):
    """Whether all labels are entity tags, and at least one is inside an entity."""
    scheme = scheme_of(structure.transitions)
    parts = [tag_parts(label, scheme) for label in structure.classes_.tolist()]
    return None not in parts and any(prefix != "O" for prefix, _ in parts)


def scheme_of(transitions):
    """The scheme that tags cannot be read without, if `transitions` names it."""
    return "runs" if isinstance(transitions, str) and transitions == "runs" else None


class TagTables:
    """The types of the classes, and the pairs of classes that continue an entity."""

    def __init__(self, classes, scheme):
        parts, self.scheme = [], scheme
        for label in classes.tolist():
            parts.append(tag_parts(label, scheme))
            if parts[-1] is None:
                raise ValueError(
                    "Spans are those of entity tags such as 'B-NP', 'I-NP' and 'O', but "
                    f"one of the classes is {plain(label)!r}."
                )
        self.names = sorted({name for prefix, name in parts if prefix != "O"})
        self.types = np.array(
            [-1 if prefix == "O" else self.names.index(name) for prefix, name in parts],
            dtype=np.intp,
        )
        opens = np.array([prefix in "BI" for prefix, _ in parts])
        follows = np.array([prefix in "IE" for prefix, _ in parts])
        is_same = self.types[:, np.newaxis] == self.types
        self.goes_on = (is_same & opens[:, np.newaxis] & follows).view(np.uint8)

    def stops_of(self, labels):
        """For each position and type the stop of a labeling's span there, or 0."""
        stops = np.zeros((len(labels), len(self.names)), dtype=np.intp)
        for name, first, last in entities_of(labels.tolist(), self.scheme):
            stops[first, self.names.index(name)] = last + 1
        return stops

    def spans(self, theta, transition, threshold, labels):
        """The spans of a labeling or, if it is None, all with at least this probability.

        None if no labeling is possible: scores may be -inf.
        """
        stops = None if labels is None else self.stops_of(labels)
        found = span_probabilities(
            theta, transition, self.types, self.goes_on, threshold or 0.0, stops
        )
        if found is None:
            return None
        return [Span(*at, self.names[type_], p) for *at, type_, p in found]

"""Some examples of a problem, as one of its parts holds them."""

from dataclasses import dataclass
from functools import wraps

import numpy as np

from sklearn_structsvm.structures.answers import oracle_of


@dataclass
class Examples:
    """Some examples, bound to a fitted structure.

    `weights` (n,): p_i, shares of all weight. `origin`: words for their place in the
    data, if they are not all.
    """

    structure: object
    X: object
    y: object
    weights: np.ndarray
    origin: str = ""

    def make_oracle(self):
        """A new dual state."""
        return oracle_of(self.structure, self.X, self.y)


def with_origin(function):
    """A function of a shard and a message; errors tell which examples the shard has."""

    @wraps(function)
    def called(shard, message):
        try:
            return function(shard, message)
        except ValueError as error:
            if shard.examples.origin:
                error.add_note(f"The example is one of {shard.examples.origin}.")
            raise

    return called

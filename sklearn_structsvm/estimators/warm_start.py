"""The state that a fit keeps, and when the next fit may start from it."""

from dataclasses import dataclass
from pickle import PicklingError

import joblib
import numpy as np

from sklearn_structsvm._utils.borders import as_tuple, check_entries
from sklearn_structsvm._utils.caller import warn_caller
from sklearn_structsvm.estimators.fingerprints import places_before
from sklearn_structsvm.structures.nodes import NodeStructure


@dataclass
class WarmStart:
    """The start of a fit.

    `kept`: the identity of the examples and of the structure, which is kept with the
    state. None if no state is kept. `state`: the dual point of the previous fit, or
    None if it cannot be reused. `places` (n,) intp: the place of each example in the
    previous fit, or -1 if it is new. None if no place has changed. `sizes` (m,) intp or
    None: the number of labels of each previous example, 1 for rows. `has_moved`:
    whether the state is of other examples, or of other weights of the same ones.
    """

    kept: dict | None = None
    state: dict | None = None
    places: np.ndarray | None = None
    sizes: np.ndarray | None = None
    has_moved: bool = False

    def drop(self):
        """Forget the previous fit."""
        self.state = self.places = self.sizes = None
        self.has_moved = False

    def dual_state(self):
        """The state with the blocks of these examples. New ones are at their truth."""
        if self.state is None or self.places is None:
            return self.state
        sizes = self.kept["sizes"]
        state = dict(self.state)
        if "loss" in state:
            state["loss"] = self._moved("loss", state["loss"])
            state["blocks"] = self._moved_blocks(state["blocks"], sizes)
        if "atoms" in state:
            # An empty block means the truth.
            sets = as_tuple("atoms (active sets)", state["atoms"], len(self.sizes))
            state["atoms"] = [sets[j] if j >= 0 else [] for j in self.places.tolist()]
        return state

    def _moved(self, name, rows):
        """An array with a row for each example; zeros for new ones."""
        rows = check_rows(f"_dual_state['state']['{name}']", rows, len(self.sizes))
        result = np.zeros((len(self.places), *rows.shape[1:]))
        is_old = self.places >= 0
        result[is_old] = rows[self.places[is_old]]
        return result

    def _moved_blocks(self, blocks, sizes):
        if isinstance(blocks, list):
            none = np.empty(0, dtype=np.intp), np.empty(0)
            return [blocks[j] if j >= 0 else none for j in self.places.tolist()]
        if not isinstance(blocks, tuple):
            return self._moved("blocks", blocks)
        nodes, others = as_tuple("blocks", blocks, 2)
        starts = np.concatenate([[0], np.cumsum(self.sizes)])
        nodes = check_rows("nodes of the blocks", nodes, starts[-1])
        rows = [
            nodes[starts[j] : starts[j + 1]] if j >= 0 else np.zeros((T, nodes.shape[1]))
            for j, T in zip(self.places.tolist(), sizes.tolist(), strict=True)
        ]
        return np.concatenate(rows), self._moved_edges(others)

    def _moved_edges(self, edges):
        if not isinstance(edges, tuple):
            return self._moved("blocks", edges)
        values, places, starts = as_tuple("edges of the blocks", edges, 3)
        # Without transitions there are no edges.
        if len(starts) == 1:
            return edges
        starts = check_rows("starts of the edges", starts, len(self.sizes) + 1)
        chosen = [
            np.arange(starts[j], starts[j + 1]) if j >= 0 else np.zeros(0, dtype=np.intp)
            for j in self.places.tolist()
        ]
        counts = np.cumsum([0, *map(len, chosen)])
        kept = np.concatenate(chosen)
        return values[kept], places[kept], counts


def find_warm_start(estimator, problem, previous, entries, **others):
    """The `WarmStart` for an estimator's parameter `warm_start`.

    `entries`: the entries of every state. `**others`: parameters on which the state
    depends, besides the examples and the structure.
    """
    if not estimator.warm_start:
        return WarmStart()
    kept = _identity(problem, others)
    before = previous.get("_dual_state")
    if before is None:
        return WarmStart(kept)
    names = ("key", "examples", "sizes", "weights", "state")
    check_entries("_dual_state", before, *names)
    check_entries("_dual_state['state']", before["state"], *entries)
    if not (isinstance(before["key"], str) and before["key"] == kept["key"]):
        names = ["the structure", "what it learned (classes, costs)", *others]
        warn_of_cold_start(f"{' or '.join(names)} is not that", "dual point is")
        return WarmStart(kept)
    sizes = check_rows("_dual_state['sizes']", before["sizes"], np.size(before["sizes"]))
    examples = check_rows("_dual_state['examples']", before["examples"], len(sizes), 2)
    now = kept["examples"]
    if np.array_equal(examples, now):
        has_moved = not np.array_equal(before["weights"], kept["weights"])
        return WarmStart(kept, before["state"], has_moved=has_moved)
    # Log factors are feasible for any features. Lists belong to Python structures.
    blocks = before["state"].get("blocks")
    by_labels = problem.structure._dual_is_of_labels and not isinstance(blocks, list)
    places = places_before(examples, now, blocks is None or by_labels)
    if not (places >= 0).any():
        warn_of_cold_start("no example is one", "dual point is")
        return WarmStart(kept)
    return WarmStart(kept, before["state"], places, sizes, has_moved=True)


def check_rows(name, rows, n, n_columns=None):
    """An array of n rows of numbers, as it is.

    ValueError naming it.
    """
    is_array = isinstance(rows, np.ndarray) and rows.dtype.kind in "fiu" and rows.ndim > 0
    if not is_array or len(rows) != n or n_columns not in (None, *rows.shape[1:]):
        raise ValueError(f"{name} must be an array of {n} rows of numbers.")
    return rows


def _identity(problem, others):
    """The identity of a state: of the structure, of each example, and its weight."""
    structure = problem.structure
    learned = {name: own for name, own in vars(structure).items() if name[-1:] == "_"}
    try:
        examples = problem.fingerprints
        key = joblib.hash((structure.get_params(), learned, others))
    except PicklingError as error:
        raise ValueError(
            "warm_start=True requires examples and a structure that can be pickled: "
            f"{error}"
        ) from error
    sizes = np.ones(len(examples), dtype=np.intp)
    if isinstance(structure, NodeStructure):
        labels = map(structure._labels_of, problem.y)
        sizes = np.fromiter(map(len, labels), np.intp, len(examples))
    shares = np.array(problem.weights)
    return {"key": key, "examples": examples, "sizes": sizes, "weights": shares}


def warn_of_cold_start(other, useless):
    """Warn of changes since the previous fit, and of the part that is not reused."""
    warn_caller(
        f"warm_start=True, but {other} of the previous fit, whose {useless} of no "
        "use here: starting anew.",
    )

"""What the steps of a solver move, and what is asked of it."""

from typing import Any, Protocol

import numpy as np


class Iterate(Protocol):
    """What a fit keeps and reads at any moment, between two steps.

    `weights` (d,). `best_weights` (d,) or None: better weights, if known.
    """

    weights: np.ndarray
    best_weights: np.ndarray | None

    def rebuild_weights(self) -> None:
        """Compute the weights of the dual point anew, without errors of the steps."""

    def get_state(self) -> dict[str, Any]:
        """What a later fit can start from; not if the examples are in other processes."""


class BlockIterate(Iterate, Protocol):
    """A dual point with a part for each example, which passes move; see `_proximal`.

    Solvers modify it in place, and it is a consistent dual point at any moment. `lam`,
    `kappa`, `l1_ratio`: λ, κ of the proximal term, and ρ of the elastic net.
    `active_blocks`: the examples of positive weight. `estimated_gap`: the duality gap
    by the last known gaps of the blocks. `is_remote`: whether the examples are in other
    processes. `is_rows`: whether `hinge_along` searches along a line, as for rows of a
    matrix.
    """

    lam: float
    kappa: float
    l1_ratio: float
    active_blocks: Any
    estimated_gap: float
    dual_objective: float
    n_oracle_calls: int
    is_remote: bool
    is_rows: bool

    def set_kappa(self, kappa: float) -> None:
        """Change the proximal term, with the center at the weights."""

    def keep_weights(self, weights: np.ndarray | None, objective: float) -> None:
        """Take these for `best_weights`."""

    def check_gaps(self, n_threads: int) -> tuple[float, float]:
        """The hinge at the weights, and the sum of the gaps of the blocks."""

    def take_plane(self, w: np.ndarray, j: int, most: int) -> tuple[float, Any, float]:
        """The hinge and a plane below it at w, of which each block stores its part."""

    def mix(self, shares: np.ndarray, u: np.ndarray) -> None:
        """Mix the dual point with the planes that are stored."""

"""Branch and bound that always takes the box of the least bound."""

from heapq import heappop, heappush
from itertools import count
from time import perf_counter

import numpy as np

from sklearn_structsvm._utils.tolerances import SAME


class BestFirst:
    """Minimizes over boxes of solutions, each with a lower bound.

    A subclass has `value`, that of the best solution so far, and `_divide`: (low, box,
    deadline) -> (bound, parts). `low`: the bound of the box. `bound`: of what is done
    with, inf if nothing of it is better than `value`. `parts`: (bound, box) of each.
    With `is_late`, it does not divide boxes. It counts in `n_boxes` those that take long.
    """

    def __init__(self, low, box):
        self._order = count()
        self._boxes = [(low, next(self._order), box)]
        self._done = np.inf
        self.n_boxes, self.is_late = 0, False

    @property
    def bound(self):
        """No solution has less."""
        least = self._boxes[0][0] if self._boxes else np.inf
        return min(least, self._done, self.value)

    def move(self, deadline=np.inf):
        """Divide the box of the least bound; "stalled" if none is left."""
        if not self._boxes:
            return "stalled"
        low, _, box = heappop(self._boxes)
        bound, parts = self._divide(low, box, deadline)
        self._done = min(self._done, bound)
        for low_of_part, part in parts:
            heappush(self._boxes, (low_of_part, next(self._order), part))
        return None

    def run(self, tol, n_exact, most, deadline, enough=-np.inf):
        """Go through all boxes that may have a better solution.

        After `n_exact` boxes a distance of `tol` suffices. After `most`, or beyond the
        deadline, it is late. `enough`: of a value that needs no better one.
        """
        while self._boxes and self.value > enough:
            far = max(SAME, tol if self.n_boxes >= n_exact else 0.0)
            if self._boxes[0][0] >= self.value - far:
                return
            self.is_late = self.n_boxes >= most or perf_counter() > deadline
            self.move(deadline)

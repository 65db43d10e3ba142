"""Synthetic images of snakes whose parts look alike."""

from numbers import Real

import numpy as np
from sklearn.utils import Bunch, check_random_state, check_scalar

from sklearn_structsvm._utils.borders import check_integer
from sklearn_structsvm._utils.grids import check_grid, grid_edges
from sklearn_structsvm._utils.mistakes import with_plain_calls

# Steps (row, column) by the number of the direction: right, down, left, up.
DIRECTIONS = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])


@with_plain_calls
def make_snakes(
    n_samples: int = 20,
    *,
    shape: tuple[int, int] = (8, 8),
    n_parts: int = 5,
    noise: float = 0.3,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate images of snakes whose parts are distinguished only by their neighbors.

    A snake winds through the image from its head, part 1, to its tail, part `n_parts`.
    The background has label 0. A cell shows either background or one of four directions,
    in which the next part lies; the direction of the tail is random. A cell alone
    therefore shows where the snake is, but not which part it is. To find the parts, a
    model needs label pairs that depend on the directions, and joint inference over the
    whole image, as in [1]_.

    Read more in the :ref:`User Guide <guide-graphs>`.

    Parameters
    ----------
    n_samples : int, default=20
        Number of images.
    shape : tuple of two ints, default=(8, 8)
        Number of rows and columns of cells.
    n_parts : int, default=5
        Number of parts of a snake, one cell each. There are `n_parts + 1` labels.
    noise : float, default=0.3
        Standard deviation of the noise of each of the five channels.
    random_state : int, RandomState instance or None, default=None
        Controls the random draws. Pass an int for reproducible output across calls.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``X``, a list of n_samples tuples in the format of `GraphStructure`: the
          channels background, right, down, left and up, of shape (n_cells, 5); edges to
          the right and down, of shape (n_edges, 2); and edge features of shape (n_edges,
          3), which are 1, how much the first cell points to the second, and the second to
          the first.
        - ``y``, a list of n_samples ndarrays of shape (n_cells,), int64.
        - ``images``, an ndarray of shape (n_samples, n_rows, n_columns, 5).
        - ``labels``, an ndarray of shape (n_samples, n_rows, n_columns), int64.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    See Also
    --------
    make_segmentation : Images in which neighboring pixels tend to be alike.

    References
    ----------
    .. [1] Nowozin, S., Rother, C., Bagon, S., Sharp, T., Yao, B. and Kohli, P. (2011).
       Decision tree fields. ICCV 2011.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import make_snakes
    >>> data = make_snakes(n_samples=1, shape=(3, 6), random_state=0)
    >>> data.labels[0]
    array([[0, 0, 0, 0, 0, 1],
           [0, 0, 5, 4, 3, 2],
           [0, 0, 0, 0, 0, 0]])
    """
    check_integer("n_samples", n_samples, 1)
    n_rows, n_columns = check_grid(shape)
    check_integer("n_parts", n_parts, 1, n_rows * n_columns)
    check_scalar(noise, "noise", Real, min_val=0)
    rng = check_random_state(random_state)
    edges = grid_edges(shape)
    # An edge leads to the right or down; its end sees it in the opposite direction.
    is_down = (np.arange(len(edges)) >= n_rows * (n_columns - 1)).astype(int)
    X, y, images, labels = [], [], [], []
    for _ in range(n_samples):
        cells, directions = _snake(shape, n_parts, rng)
        label, shown = np.zeros(shape, dtype=np.int64), np.zeros((*shape, 5))
        shown[..., 0] = 1.0
        at = tuple(cells.T)
        label[at] = np.arange(1, n_parts + 1)
        shown[at] = np.eye(5)[1 + directions]
        image = shown + noise * rng.normal(size=shown.shape)
        channels = image.reshape(-1, 5)
        points = np.column_stack(
            [
                np.ones(len(edges)),
                channels[edges[:, 0], 1 + is_down],
                channels[edges[:, 1], 3 + is_down],
            ]
        )
        X.append((channels, edges, points))
        y.append(label.ravel())
        images.append(image)
        labels.append(label)
    return Bunch(X=X, y=y, images=np.array(images), labels=np.array(labels))


def _snake(shape, n_parts, rng):
    """Cells of a path that does not cross itself, and the direction from each."""
    # After as many walks that end too early, a snake goes row by row.
    for _ in range(100):
        cells = _wind(shape, n_parts, rng)
        if len(cells) == n_parts:
            break
    else:
        # Row by row there is always room.
        rows, columns = np.indices(shape)
        columns[1::2] = columns[1::2, ::-1]
        cells = np.column_stack([rows.ravel(), columns.ravel()])[:n_parts]
    cells = np.array(cells)
    steps = np.diff(cells, axis=0)
    directions = (steps[:, np.newaxis] == DIRECTIONS).all(axis=2).argmax(axis=1)
    return cells, np.append(directions, rng.randint(4))


def _wind(shape, n_parts, rng):
    """A random walk over free cells, until no neighboring cell is free."""
    cells = [tuple(rng.randint(shape).tolist())]
    while len(cells) < n_parts:
        around = [tuple((np.array(cells[-1]) + step).tolist()) for step in DIRECTIONS]
        free = [
            (r, c)
            for r, c in around
            if 0 <= r < shape[0] and 0 <= c < shape[1] and (r, c) not in cells
        ]
        if not free:
            break
        cells.append(free[rng.randint(len(free))])
    return cells

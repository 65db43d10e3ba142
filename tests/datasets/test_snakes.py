"""make_snakes: snakes that wind, what cells show of them, repeatability, misuse."""

import numpy as np
import pytest
from _seeds import new_seed

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import make_snakes
from sklearn_structsvm.structures import GraphStructure, grid_edges

STEPS = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])


@pytest.mark.parametrize(
    "shape, n_parts", [((4, 5), 6), ((1, 7), 7), ((3, 1), 2), ((3, 3), 9), ((1, 1), 1)]
)
def test_cells_show_where_the_next_part_is(shape, n_parts):
    data = make_snakes(
        4, shape=shape, n_parts=n_parts, noise=0.0, random_state=new_seed(0)
    )
    assert data.images.shape == (4, *shape, 5)
    for x, y, image, labels in zip(data.X, data.y, data.images, data.labels, strict=True):
        np.testing.assert_array_equal(x[0], image.reshape(-1, 5))
        np.testing.assert_array_equal(y, labels.ravel())
        assert np.isin(image, [0, 1]).all() and (image.sum(axis=2) == 1).all()
        np.testing.assert_array_equal(image[..., 0] == 1, labels == 0)
        cells = [np.argwhere(labels == part) for part in range(1, n_parts + 1)]
        assert all(len(cell) == 1 for cell in cells)
        for part, cell in enumerate(cells[:-1]):
            direction = image[tuple(cell[0])][1:].argmax()
            np.testing.assert_array_equal(cell[0] + STEPS[direction], cells[part + 1][0])
        edges, features = x[1:]
        np.testing.assert_array_equal(edges, grid_edges(shape))
        for (a, b), (one, forth, back) in zip(edges, features, strict=True):
            rows, columns = np.unravel_index([a, b], shape)
            step = (rows[1] - rows[0], columns[1] - columns[0])
            way = [tuple(s) for s in STEPS.tolist()].index(step)
            assert one == 1.0
            assert forth == image.reshape(-1, 5)[a, 1 + way]
            assert back == image.reshape(-1, 5)[b, 1 + (way + 2) % 4]


def test_parts_are_told_apart_by_their_neighbors_alone():
    data = make_snakes(60, random_state=new_seed(0))
    y = np.concatenate(data.y[40:])
    found = {}
    for transition in (False, "potts", "directed"):
        structure = GraphStructure(transition=transition, inference="messages")
        model = BCFWClassifier(structure, C=1.0, tol=0.1, random_state=0)
        labels = model.fit(data.X[:40], data.y[:40]).predict(data.X[40:])
        found[transition] = (np.concatenate(labels) == y)[y > 0].mean()
    # A fifth by chance.
    assert found[False] < 0.35 and found["potts"] < 0.4 < found["directed"]

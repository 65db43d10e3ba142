"""make_poses: shapes, what is where, repeatability, misuse."""

import numpy as np
from _seeds import new_seed

from sklearn_structsvm.datasets import make_poses

SIZES = {"n_samples": 4, "shape": (20, 15)}


def test_joints_are_on_the_grid_and_hang_together():
    data = make_poses(random_state=new_seed(0), **SIZES)
    assert len(data.names) == len(data.parents) == 11
    assert data.parents[0] == -1 and all(p < v for v, p in enumerate(data.parents))
    for x, y in zip(data.X, data.y, strict=True):
        assert x.shape == (11, 20, 15, 1) and y.shape == (11, 2)
        assert y.dtype == np.int64
        assert (y >= 0).all() and (y < (20, 15)).all()


def test_without_noise_and_distractors_a_map_is_highest_at_the_joint():
    data = make_poses(n_distractors=0, noise=0.0, random_state=new_seed(0), **SIZES)
    for x, y in zip(data.X, data.y, strict=True):
        for own, place in zip(x[..., 0], y, strict=True):
            assert np.unravel_index(own.argmax(), own.shape) == tuple(place)

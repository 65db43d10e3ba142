"""Synthetic stick figures with noisy detectors of their joints."""

from numbers import Real

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.utils import Bunch, check_random_state, check_scalar

from sklearn_structsvm._utils.borders import check_integer
from sklearn_structsvm._utils.grids import check_grid
from sklearn_structsvm._utils.mistakes import with_plain_calls

# Each joint with its parent, and its place relative to the parent: direction in degrees
# (0 is down, 90 is right), the standard deviation of that, and the length in heights of
# the figure.
JOINTS = (
    ("neck", -1, 0, 0, 0.0),
    ("head", 0, 180, 15, 0.12),
    ("left elbow", 0, -45, 35, 0.2),
    ("left hand", 2, -30, 55, 0.18),
    ("right elbow", 0, 45, 35, 0.2),
    ("right hand", 4, 30, 55, 0.18),
    ("hip", 0, 0, 10, 0.32),
    ("left knee", 6, -20, 20, 0.24),
    ("left foot", 7, -5, 20, 0.24),
    ("right knee", 6, 20, 20, 0.24),
    ("right foot", 9, 5, 20, 0.24),
)
# Standard deviation of a blob, in positions.
BLUR = 1.0


@with_plain_calls
def make_poses(
    n_samples: int = 30,
    *,
    shape: tuple[int, int] = (32, 24),
    n_distractors: int = 2,
    noise: float = 0.3,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Generate poses of a stick figure, with noisy detector maps of its joints.

    The map of a joint has a blob of height 1 at the joint, equally high blobs elsewhere,
    and noise. A detector alone cannot distinguish the blobs, but a model of the relative
    positions of joints can.

    Read more in the :ref:`User Guide <guide-parts>`.

    Parameters
    ----------
    n_samples : int, default=30
        Number of images.
    shape : tuple of two ints, default=(32, 24)
        Number of rows and columns of an image.
    n_distractors : int, default=2
        Number of blobs in a map that are not the joint.
    noise : float, default=0.3
        Standard deviation of the noise at each position.
    random_state : int, RandomState instance or None, default=None
        Controls the random draws. Pass an int for reproducible output across calls.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``X``, a list of n_samples ndarrays of shape (11, n_rows, n_columns, 1): a map
          for each joint, in the format of `PictorialStructure`.
        - ``y``, a list of n_samples ndarrays of shape (11, 2), int64: row and column of
          each joint.
        - ``parents``, a list of 11 ints: the parent of each joint, or -1 for the neck.
        - ``names``, a list of 11 str: the names of the joints.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    See Also
    --------
    sklearn_structsvm.structures.PictorialStructure : The structure for these data.

    Examples
    --------
    >>> from sklearn_structsvm.datasets import make_poses
    >>> data = make_poses(n_samples=5, random_state=0)
    >>> data.X[0].shape, data.y[0].shape, data.names[:2]
    ((11, 32, 24, 1), (11, 2), ['neck', 'head'])
    """
    check_integer("n_samples", n_samples, 1)
    shape = check_grid(shape)
    check_integer("n_distractors", n_distractors, 0)
    check_scalar(noise, "noise", Real, min_val=0)
    rng = check_random_state(random_state)
    names, parents = [joint[0] for joint in JOINTS], [joint[1] for joint in JOINTS]
    y = [_pose(shape, rng) for _ in range(n_samples)]
    return Bunch(
        X=[_maps(pose, shape, n_distractors, noise, rng) for pose in y],
        y=y,
        parents=parents,
        names=names,
    )


def _pose(shape, rng):
    """Rows and columns of the joints of one figure, clipped at the border."""
    height = 0.75 * shape[0] * rng.uniform(0.8, 1.1)
    places = np.zeros((len(JOINTS), 2))
    for joint, (_, parent, angle, spread, length) in enumerate(JOINTS):
        if parent < 0:
            middle = np.array([0.25, 0.5]) * shape
            places[joint] = middle + rng.normal(scale=0.06, size=2) * shape
            continue
        angle = np.deg2rad(rng.normal(angle, spread))
        step = np.array([np.cos(angle), np.sin(angle)])
        places[joint] = places[parent] + height * length * step
    return np.clip(np.round(places), 0, np.array(shape) - 1).astype(np.int64)


def _maps(pose, shape, n_distractors, noise, rng):
    maps = np.zeros((len(pose), *shape))
    for own, place in zip(maps, pose, strict=True):
        others = rng.uniform(0, shape, size=(n_distractors, 2)).astype(int)
        for at in (place, *others):
            own[tuple(at)] = 1.0
        own[:] = gaussian_filter(own, BLUR, mode="constant") * 2.0 * np.pi * BLUR**2
    return (maps + noise * rng.normal(size=maps.shape))[..., np.newaxis]

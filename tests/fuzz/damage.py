"""Damage to the state of fitted models, and to the files that they are saved in."""

import copy
import io
import pickle
import zipfile

import numpy as np
from scipy import sparse
from values import NUMBERS, spoil_array

OWN = "sklearn_structsvm"
SCALARS = (bool, int, float, str, type(None), np.generic)
OTHER_TYPES = (
    None, "x", 5, -1, 0.5, True, [], {}, (), [None], np.zeros(3),
    np.zeros((2, 2, 2)), np.array(1), np.array(["a"]), 10**9, np.nan, {"a": 1},
    [[1], [2, 3]],
)  # fmt: skip


def places(owner, depth=0):
    """(owner, key, value) of all that is stored below an object of the package."""
    if isinstance(owner, dict):
        items = owner.items()
    elif isinstance(owner, list):
        items = enumerate(owner)
    else:
        try:
            kept = owner.__getstate__()
        except AttributeError:  # of an attribute that is gone
            kept = ()
        items = [(key, value) for key, value in vars(owner).items() if key in kept]
    for key, value in [*items]:
        if key == "n_jobs":  # a billion processes are joblib's, and the machine's, affair
            continue
        if isinstance(value, (np.ndarray, *SCALARS)):
            yield owner, key, value
        elif depth < 8 and (isinstance(value, (dict, list)) or _has_state(value)):
            yield owner, key, value
            yield from places(value, depth + 1)


def _has_state(value):
    is_own = type(value).__module__.startswith(OWN) or sparse.issparse(value)
    return is_own and hasattr(value, "__dict__") and not isinstance(value, type)


def damage(rng, model):
    """Change, replace or remove one thing at any depth of a model."""
    found = [*places(model)]
    owner, key, value = found[rng.integers(len(found))]
    way = rng.random()
    if way < 0.15:
        return _remove(owner, key)
    if way < 0.35:
        value = OTHER_TYPES[rng.integers(len(OTHER_TYPES))]
    elif isinstance(value, np.ndarray):
        value = _other_array(rng, value)
    elif isinstance(value, (list, dict)):
        value = copy.copy(value)
        if value:
            _remove(value, rng.integers(len(value)) if isinstance(value, list) else
                    [*value][rng.integers(len(value))])  # fmt: skip
    elif isinstance(value, SCALARS):
        value = [*NUMBERS, -2, 3, 10**6][rng.integers(len(NUMBERS) + 3)]
    return _set(owner, key, value)


def _other_array(rng, array):
    if rng.random() < 0.5 or not array.size:
        return np.asarray(spoil_array(rng, array))
    # Numbers of bytes, sizes and indices that are off by a little or by much.
    array = array.copy()
    at = rng.integers(array.size)
    try:
        if array.dtype.kind in "iu":
            array.flat[at] += [1, -1, 10**6, -(10**6)][rng.integers(4)]
        elif array.dtype.kind == "f":
            raw = array.view(np.uint8) if array.flags.c_contiguous else array
            raw.flat[rng.integers(raw.size)] = rng.integers(256)
    except (OverflowError, ValueError):
        pass
    return array


def _set(owner, key, value):
    if isinstance(owner, (dict, list)):
        owner[key] = value
    else:
        vars(owner)[key] = value


def _remove(owner, key):
    if isinstance(owner, (dict, list)):
        del owner[key]
    else:
        del vars(owner)[key]


def saved_and_read(rng, model):
    """The model itself, from a pickle, or from a file of skops with other bytes."""
    way = rng.integers(3)
    if way == 0:
        return model
    if way == 1:
        return pickle.loads(_written(pickle.dumps, model))
    from skops.io import dumps, get_untrusted_types, loads

    file = _written(dumps, model)
    if rng.random() < 0.5:
        file = with_other_bytes(rng, file)
    return loads(file, trusted=get_untrusted_types(data=file))


def _written(dumps, model):
    """The file; TypeError for a model that was damaged too much to be saved at all."""
    try:
        return dumps(model)
    except Exception as error:
        raise TypeError("It cannot be saved.") from error


def with_other_bytes(rng, file):
    """A file of skops in which bytes of one array are others, be it of the header."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(out, "w") as new:
        names = [name for name in old.namelist() if name.endswith(".npy")]
        chosen = names[rng.integers(len(names))] if names else None
        for name in old.namelist():
            data = bytearray(old.read(name))
            if name == chosen:
                for _ in range(rng.integers(1, 4)):
                    data[rng.integers(len(data))] = rng.integers(256)
                data = data[: -rng.integers(1, 9)] if rng.random() < 0.2 else data
            new.writestr(name, bytes(data))
    return out.getvalue()

"""Ways to save a model and load it again."""

import copy
import io
import pickle

import joblib
import pytest

# Classes of the tests. All other untrusted classes must belong to the package.
OWN = ("_estimators.",)


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def through_skops(model):
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(model)
    types = skops.get_untrusted_types(data=data)
    assert all(name.startswith(("sklearn_structsvm.", *OWN)) for name in types), types
    return skops.loads(data, trusted=types)


SAVED = {"pickle": through_pickle, "skops": through_skops}
ROUND_TRIPS = SAVED | {"joblib": through_joblib, "deepcopy": copy.deepcopy}

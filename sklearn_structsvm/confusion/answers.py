"""What a user's metric or constraint returns, through the gate, whoever asks."""

from functools import wraps
from inspect import isfunction

import numpy as np

from sklearn_structsvm._contract.answers import Answer, brief


def gate_methods(kind, checks):
    """Let what the methods of a user's class return pass the gate.

    The matrices that they get are read-only: a solver goes on with them.

    `kind`: nothing is done to a class of the library, whose methods are tested.
    `checks`: by the name of a method: (answer, value, argument) -> the checked value,
    for the method's first argument.
    """
    if kind.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return
    for name, check in checks.items():
        method = vars(kind).get(name)
        if isfunction(method):
            setattr(kind, name, _gated(name, method, check))


def _gated(name, method, check):
    @wraps(method)
    def gated(self, *args, **kwargs):
        args = list(map(_read_only, args))
        kwargs = {key: _read_only(value) for key, value in kwargs.items()}
        value = method(self, *args, **kwargs)
        return check(Answer(name, self), value, [*args, *kwargs.values()][0])

    return gated


def _read_only(value):
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _number(answer, value, _):
    return answer.number(value)


def _like(answer, value, C):
    return answer.array(value, *np.shape(C))


def _tangent(answer, value, C):
    G, h = answer.pair(value)
    return _like(answer, G, C), answer.number(h)


def _pair_of_squares(answer, value, priors):
    if value is None:
        return None
    k = len(priors)
    A, B = answer.pair(value)
    return answer.array(A, k, k), answer.array(B, k, k)


def _pieces(answer, value, priors):
    if value is None:
        return None
    k = len(priors)
    G, h = answer.pair(value)
    h = answer.array(h, "p")
    return answer.array(G, len(h), k, k), h


def _terms(answer, value, priors):
    if value is None:
        return None
    k, terms = len(priors), []
    for term in value:
        if not isinstance(term, (tuple, list)) or len(term) != 3:
            raise answer.fault("hold triples (weight, A, B)", brief(term))
        weight, A, B = term
        both = answer.array(A, k, k), answer.array(B, k, k)
        terms.append((answer.number(weight, 0.0), *both))
    return terms


def _mask(answer, value, k):
    return answer.array(value, k, k) != 0.0


def _linear(answer, value, cells):
    G, h = answer.pair(value)
    h = answer.array(h, "p")
    return answer.array(G, len(h), *cells.shape), h


def _denominators(answer, value, cells):
    return None if value is None else answer.array(value, "p", *cells.shape)


OF_METRICS = {
    "value": _number,
    "gradient": _like,
    "tangent": _tangent,
    "ratio": _pair_of_squares,
    "pieces": _pieces,
    "ratio_terms": _terms,
    "entries": _mask,
}

OF_CONSTRAINTS = {
    "linear": _linear,
    "denominators": _denominators,
    "convex_value": _number,
    "convex_gradient": _like,
    "convex_tangent": _tangent,
}

"""Checks of user-defined structures."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array, check_consistent_length, check_random_state

from sklearn_structsvm._contract.answers import brief
from sklearn_structsvm._utils.borders import (
    as_array,
    as_canonical,
    check_integer,
    check_sequence,
)
from sklearn_structsvm._utils.mistakes import with_plain_calls
from sklearn_structsvm.structures.answers import (
    bounds_of,
    check_n_weights,
    checked_data,
    fit_to_checked,
)
from sklearn_structsvm.structures.base import Structure
from sklearn_structsvm.structures.checked_completions import check_completions
from sklearn_structsvm.structures.checked_example import (
    CheckedExample,
    check_constrained,
    picture,
)
from sklearn_structsvm.structures.checked_oracle import check_oracle

MAX_EXAMPLES = 20


@with_plain_calls
def check_structure(
    structure: Structure,
    X: Any,
    y: Any,
    *,
    labelings: Callable[[Any], Iterable[Any]] | None = None,
    n_trials: int = 5,
    random_state: int | np.random.RandomState | None = 0,
) -> None:
    """Check whether a structure does what training assumes, on given examples.

    It checks that

    - the methods return values of valid shapes and types;
    - the loss is nonnegative, and 0 at the true labeling;
    - `decode`, `loss_augmented_decode`, `constrained_decode` and `slack_augmented_decode`
      find the best labeling, for random weights and for zero weights;
    - `complete`, if there is one, keeps what y tells and finds the best such labeling, as
      far as that is known, and the loss does not depend on what y hides;
    - repeated calls give the same answer, and leave unchanged their arguments and the
      labelings that were returned before;
    - parameters survive `sklearn.base.clone`;
    - the structure's own oracle, if `make_oracle` returns one (usually compiled), agrees
      with these methods in every operation, and so do its attributes `has_candidates`,
      `has_constrained`, `has_marginals` and `thread_safe`.

    The best labeling is known if `labelings`, or the structure's method of that name,
    lists all labelings of an example, and there are at most 1000. Otherwise answers are
    only compared with one another and with the true labeling, which finds fewer mistakes.
    Therefore pass small examples. A structure that passes may still be wrong.

    Read more in the :ref:`User Guide <guide-custom>`.

    Parameters
    ----------
    structure : Structure
        A fitted structure is used as it is. Otherwise a clone is fitted to X and y.
    X, y : as for the `fit` of an estimator
        Examples. If there are more than 20, 20 are chosen at random. For a structure with
        a method `complete`, y is the input of that method. Its results are compared with
        y if None, `MISSING` or sets mark what is hidden.
    labelings : callable or None, default=None
        ``labelings(x)`` returns all labelings of x. None uses the structure's own method.
    n_trials : int, default=5
        Number of random weight vectors to try.
    random_state : int, RandomState instance or None, default=0
        Controls the random choices.

    Raises
    ------
    ValueError, TypeError
        If a check fails. The message names the method, the example and the values. An
        exception raised by a method of the structure gets a note that says what was
        asked.

    See Also
    --------
    sklearn_structsvm.confusion.check_metric : The same for metrics.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.structures import Structure, check_structure
    >>> class BetterOfTwo(Structure):
    ...     def joint_feature(self, x, y):
    ...         return x[y]
    ...
    ...     def loss(self, y_true, y):
    ...         return float(y_true != y)
    ...
    ...     def decode(self, x, w):
    ...         return int(np.argmax(x @ w))
    ...
    ...     def loss_augmented_decode(self, x, y_true, w, lam=1.0):
    ...         return int(np.argmax(x @ w + lam * (np.arange(2) != y_true)))
    ...
    ...     def labelings(self, x):
    ...         return [0, 1]
    >>> X = list(np.random.default_rng(0).normal(size=(4, 2, 3)))
    >>> check_structure(BetterOfTwo(), X, [0, 1, 1, 0])

    With a mistake that training cannot see:

    >>> class Forgetful(BetterOfTwo):
    ...     def loss_augmented_decode(self, x, y_true, w, lam=1.0):
    ...         return self.decode(x, w)
    >>> check_structure(Forgetful(), X, [0, 1, 1, 0])
    Traceback (most recent call last):
    ...
    ValueError: loss_augmented_decode of Forgetful is not exact: for example 0, a random w
    and lam = 4 it returns 0 of value 0, and 1 has 2.99... Is the loss added?
    """
    if not isinstance(structure, Structure):
        raise TypeError(
            f"check_structure takes a Structure; got {type(structure).__name__}."
        )
    check_sequence("y", y, "a sequence with one labeling per example", TypeError)
    check_integer("n_trials", n_trials, 1)
    rng = check_random_state(random_state)
    structure, X, y = _fit_structure(structure, X, y)
    chosen = np.arange(len(y))
    if len(chosen) > MAX_EXAMPLES:
        chosen = np.sort(rng.choice(chosen, MAX_EXAMPLES, replace=False))
    if structure.flat:
        X, y = X[chosen], y[chosen]
    else:
        X, y = [X[i] for i in chosen], [y[i] for i in chosen]
    partial_y, source = None, "y"
    if hasattr(structure, "complete"):
        partial_y, source = list(y), "complete"
        pairs = zip(X, partial_y, strict=True)
        y = [structure.complete(x, partial_i, None) for x, partial_i in pairs]
    before = picture([X, list(y), partial_y, structure.get_params(deep=False)])
    examples = [
        CheckedExample(structure, *example, source)
        for example in zip(chosen.tolist(), structure._items(X), y, strict=True)
    ]
    for example in examples:
        example.list_labelings(structure.labelings if labelings is None else labelings)
    weights = _weights(structure, examples, n_trials, rng)
    for example in examples:
        for w in weights:
            example.ask_decoders(w)
        example.check_decoders(weights)
    for example in examples:
        example.check_labelings_kept()
    if max(len(example.labelings) for example in examples) == 1:
        raise ValueError(
            f"{examples[0].name} returns the true labelings for all weights, so nothing "
            "can be compared. Pass all labelings as `labelings`."
        )
    if partial_y is not None:
        for example, partial_labeling in zip(examples, partial_y, strict=True):
            check_completions(example, partial_labeling, weights)
    for example in examples:
        if structure.has_constrained_decode:
            for w in weights:
                ask = partial(_constrained_decode, example, w)
                method = f"constrained_decode of {example.name}"
                check_constrained(example, w, rng, ask, method)
        if structure.has_slack_augmented_decode:
            for w in weights:
                example.check_slack_augmented_decode(w)
    _check_batch(structure, X, examples, weights)
    if type(structure).make_oracle is not Structure.make_oracle:
        check_oracle(structure, X, y, examples, weights, rng)
    if structure.has_sums and not structure.make_oracle(X, y).has_sums:
        raise ValueError(
            f"{type(structure).__name__} claims has_sums, because it defines marginals, "
            "but its oracle does not."
        )
    if picture([X, list(y), partial_y, structure.get_params(deep=False)]) != before:
        raise ValueError(
            f"A method of {type(structure).__name__} modifies X, y or a parameter of the "
            "structure."
        )


def _fit_structure(structure, X, y):
    """The fitted structure, with X and y in the form that `make_oracle` takes."""
    name = type(structure).__name__
    try:
        copied = clone(structure)
    except (RuntimeError, TypeError) as error:
        raise TypeError(
            f"{name} cannot be cloned, which every fit does. Its __init__ must store its "
            f"parameters unchanged under their names: {error}"
        ) from error
    is_fitted = hasattr(structure, "n_weights_")
    structure = structure if is_fitted else copied
    if structure.flat:
        X = as_canonical(X)
        X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
        y = as_array("y", y)
        check_consistent_length(X, y)
    else:
        X, y = checked_data(structure, X, y)
        kept = [i for i, x in enumerate(X) if not structure._is_empty(x)]
        X, y = [X[i] for i in kept], [y[i] for i in kept]
    if is_fitted:
        check_n_weights(structure)
    else:
        fit_to_checked(structure, X, y)
    bounds_of(structure)
    w = np.arange(structure.n_weights_, dtype=np.float64)
    if not np.allclose(structure.join_weights(*structure.split_weights(w)), w):
        raise ValueError(
            f"join_weights of {name} is not the inverse of split_weights, so predictions "
            "would use other weights than training."
        )
    return structure, X, y


def _weights(structure, examples, n_trials, rng):
    """Random weights whose scores are about as large as losses, and w = 0."""
    largest = max(max(example.norms) for example in examples)
    unit = 1.0 / largest if largest > 0.0 else 1.0
    sizes = np.append(unit * 10.0 ** rng.uniform(-1, 1, size=n_trials), 0.0)
    weights = sizes[:, np.newaxis] * rng.standard_normal(
        (n_trials + 1, structure.n_weights_)
    )
    # As in training.
    weights.flags.writeable = False
    return list(weights)


def _constrained_decode(example, w, lam, alpha, beta, strict_alpha, strict_beta):
    """The question as `check_constrained` asks it."""
    labeling = example.ask(
        "constrained_decode",
        x=example.x,
        y_true=example.truth,
        w=w,
        lam=lam,
        alpha=alpha,
        beta=beta,
        strict_alpha=strict_alpha,
        strict_beta=strict_beta,
    )
    if labeling is None:
        return None
    place = example.add(labeling, "constrained_decode")
    scores, losses, _ = example.points(w)
    return scores[place], losses[place], brief(example.labelings[place])


def _check_batch(structure, X, examples, weights):
    """Compare `decode_batch` with `decode`."""
    name = type(structure).__name__
    for t, w in enumerate(weights):
        found = structure.decode_batch(X, w)
        if len(found) != len(examples):
            raise ValueError(
                f"decode_batch of {name} returns {len(found)} labelings for "
                f"{len(examples)} examples."
            )
        for example, labeling in zip(examples, found, strict=True):
            place = example.add(labeling, "decode_batch")
            scores, _, tol = example.points(w)
            alone = example.answers[t, None]
            if abs(scores[place] - scores[alone]) > tol:
                raise ValueError(
                    f"decode_batch of {name} finds {brief(labeling)} for example "
                    f"{example.i}, of another score than "
                    f"{brief(example.labelings[alone])} of decode."
                )

"""Checks of a structure's `complete`, for outputs of which a part is never observed."""

import numpy as np

from sklearn_structsvm._contract.answers import brief
from sklearn_structsvm._utils.labels import MISSING
from sklearn_structsvm.structures.checked_example import ULPS
from sklearn_structsvm.structures.hidden_labels import SETS, is_hidden

COLLECTIONS = (list, tuple, np.ndarray)


def check_completions(example, partial, weights):
    """Compare the completions of an example for all weights, and None for none.

    They keep what `partial` tells, have no loss beside one another and the same loss
    beside others, and each is the best of those that are known at its own weights.
    """
    places, tells = [], tells_parts(partial, example.truth)
    for w in (None, *weights):
        asked = {"x": example.x, "y": partial, "w": w}
        answers = [example.ask("complete", **asked) for _ in range(2)]
        place, again = (example.add(answer, "complete") for answer in answers)
        _check_answer(example, partial, w, answers, place, again, tells)
        places.append(place)
    for place in set(places):
        _check_losses(example, place)
    known = set(places)
    if example.is_complete and tells:
        known |= {z for z in example.listed if agrees(partial, example.labelings[z])}
    known = sorted(known)
    for w, place in zip(weights, places[1:], strict=True):
        scores, _, tol = example.points(w)
        best = known[int(scores[known].argmax())]
        if scores[place] < scores[best] - tol:
            raise ValueError(
                f"complete of {example.name} is not exact: for example {example.i}, y = "
                f"{brief(partial)} and {_words(w)} it returns "
                f"{brief(example.labelings[place])} of value {scores[place]:.6g}, and "
                f"{brief(example.labelings[best])}, which agrees with y, has "
                f"{scores[best]:.6g}. (Values are ⟨w, joint_feature⟩, less that of the "
                "completion for w=None.)"
            )


def _check_answer(example, partial, w, answers, place, again, tells):
    about = (
        f"complete of {example.name} returns {brief(answers[0])} for example "
        f"{example.i}, y = {brief(partial)} and {_words(w)}"
    )
    if place != again:
        raise ValueError(
            f"{about}, and for the same arguments then {brief(answers[1])}. It must be "
            "deterministic."
        )
    if tells and not agrees(partial, answers[0]):
        raise ValueError(f"{about}, which does not agree with y.")
    if example.losses[place] != 0.0:
        raise ValueError(
            f"{about}, which has a loss of {example.losses[place]:g} beside the "
            f"completion for w=None, {brief(example.truth)}. Completions of the same y "
            "differ in the hidden part alone, on which the loss must not depend."
        )


def _check_losses(example, place):
    """A completion in the place of the truth has the same losses."""
    truth, most = example.labelings[place], max(example.losses)
    for labeling, loss in zip(example.labelings, example.losses, strict=True):
        found = float(example.structure.loss(truth, labeling))
        if not abs(found - loss) <= ULPS * np.finfo(np.float64).eps * most:
            raise ValueError(
                f"loss of {example.name} depends on the hidden part of y_true: for "
                f"example {example.i} and the labeling {brief(labeling)} it is "
                f"{loss!r} beside the completion {brief(example.truth)}, and {found!r} "
                f"beside {brief(truth)}."
            )


def _words(w):
    if w is None:
        return "w=None"
    return "a random w" if w.any() else "w = 0"


def tells_parts(partial, labeling):
    """Whether it has as many parts as a labeling, and markers for those that are hidden.

    Otherwise nothing tells which labelings agree with it.
    """
    parts = _parts(partial)
    return len(parts) == len(_parts(labeling)) and any(map(_holds_marker, parts))


def _holds_marker(partial):
    return is_hidden(partial) or any(map(_holds_marker, _parts(partial)))


def agrees(partial, labeling):
    """Whether a labeling has all that is known of a partial one."""
    if partial is None or partial is MISSING:
        return True
    if isinstance(partial, SETS):
        return any(agrees(one, labeling) for one in partial)
    if isinstance(partial, COLLECTIONS):
        parts, others = _parts(partial), _parts(labeling)
        return len(parts) == len(others) and all(map(agrees, parts, others))
    return bool(np.all(partial == labeling))


def _parts(labeling):
    """What a labeling consists of, if it is a sequence."""
    if isinstance(labeling, np.ndarray) and labeling.ndim == 0:
        return []
    return list(labeling) if isinstance(labeling, COLLECTIONS) else []

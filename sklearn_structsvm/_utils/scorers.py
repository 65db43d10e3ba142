"""The scorers of sequences by name, for `scoring`, beside those of scikit-learn."""

from sklearn.metrics import get_scorer_names

from sklearn_structsvm._utils import entity_scores, segment_scores, sequence_scores
from sklearn_structsvm._utils.labels import plain
from sklearn_structsvm._utils.mistakes import meant

SCORERS = {
    name.removesuffix("_scorer"): getattr(module, name)
    for module in (entity_scores, segment_scores, sequence_scores)
    for name in module.__all__
    if name.endswith("_scorer")
}


def by_name(scoring):
    """The scorer of this package with that name, if it has one; else `scoring`.

    ValueError for a metric or a score that is not yet a scorer.
    """
    name = getattr(scoring, "__name__", type(scoring).__name__)
    if hasattr(scoring, "scorer"):
        raise ValueError(f"scoring must be a scorer: write scoring={name}().scorer().")
    module = str(getattr(scoring, "__module__", ""))
    if name.endswith("_score") and module.startswith("sklearn_structsvm."):
        own = name.removesuffix("_score")
        write = repr(own) if own in SCORERS else f"make_scorer({name})"
        raise ValueError(f"scoring must be a scorer: write scoring={write}.")
    if not isinstance(scoring, str) or scoring in get_scorer_names():
        return scoring
    if scoring not in SCORERS:
        likely = meant(scoring, [*SCORERS, *get_scorer_names()])
        raise ValueError(
            f"scoring={scoring!r} is unknown.{likely} For sequences there are "
            f"{', '.join(map(repr, SCORERS))}, for rows those of scikit-learn."
        )
    return SCORERS[scoring]


def refuse_unsuitable(scoring, labels):
    """ValueError for a score that sequences of such labels do not have."""
    if isinstance(scoring, str) and scoring not in SCORERS:
        raise ValueError(
            f"scoring={scoring!r} compares one label per row, but there are sequences. "
            f"For these there are {', '.join(map(repr, SCORERS))}."
        )
    names = [name for name, own in SCORERS.items() if scoring in (name, own)]
    is_tag = [isinstance(label, str) for label in labels]
    if names and names[0].startswith("entity_") and is_tag and not any(is_tag):
        raise ValueError(
            f"scoring={names[0]!r} needs tags of entities, such as 'B-PER', but y "
            f"contains {plain(labels[0])!r}. Choose 'token_accuracy' or 'segment_f1'."
        )

"""The scorers of sequences by name, for `scoring`, beside those of scikit-learn."""

from sklearn.metrics import get_scorer_names

from sklearn_structsvm._utils import entity_scores, segment_scores, sequence_scores
from sklearn_structsvm._utils.mistakes import meant

SCORERS = {
    name.removesuffix("_scorer"): getattr(module, name)
    for module in (entity_scores, segment_scores, sequence_scores)
    for name in module.__all__
    if name.endswith("_scorer")
}


def by_name(scoring):
    """The scorer of this package with that name, if it has one; else `scoring`."""
    if not isinstance(scoring, str) or scoring in get_scorer_names():
        return scoring
    if scoring not in SCORERS:
        likely = meant(scoring, [*SCORERS, *get_scorer_names()])
        raise ValueError(
            f"scoring={scoring!r} is unknown.{likely} For sequences there are "
            f"{', '.join(map(repr, SCORERS))}, for rows those of scikit-learn."
        )
    return SCORERS[scoring]


def refuse_scores_of_rows(scoring):
    """ValueError for scikit-learn's name of a score, which sequences do not have."""
    if isinstance(scoring, str) and scoring not in SCORERS:
        raise ValueError(
            f"scoring={scoring!r} compares one label per row, but there are sequences. "
            f"For these there are {', '.join(map(repr, SCORERS))}."
        )

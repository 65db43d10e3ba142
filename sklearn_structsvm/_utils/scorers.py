"""The scorers of sequences by name, for `scoring`, beside those of scikit-learn."""

from sklearn_structsvm._utils import entity_scores, segment_scores, sequence_scores

SCORERS = {
    name.removesuffix("_scorer"): getattr(module, name)
    for module in (entity_scores, segment_scores, sequence_scores)
    for name in module.__all__
    if name.endswith("_scorer")
}


def by_name(scoring):
    """The scorer of this package with that name, if it has one; else `scoring`."""
    return SCORERS.get(scoring, scoring) if isinstance(scoring, str) else scoring

"""What data hold before a fit, and why a tagger says what it says after it."""

from sklearn_structsvm.inspection._data_report import DataReport, check_data
from sklearn_structsvm.inspection._explanations import (
    Explanation,
    explain,
    top_features,
    transition_table,
)

__all__ = [
    "DataReport",
    "Explanation",
    "check_data",
    "explain",
    "top_features",
    "transition_table",
]

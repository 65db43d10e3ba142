"""The order of the gallery: from a first model to one's own structure."""

from pathlib import Path

# The scripts of each section, which is a folder of examples/.
EXAMPLES = {
    "sequences": [
        "plot_ocr_chain.py",
        "plot_tagging.py",
        "tagger_conll2000.py",
        "plot_sparse_chunking.py",
        "plot_over_any_classifier.py",
        "plot_embeddings_beside_attributes.py",
        "plot_active_learning.py",
        "plot_correction_by_hand.py",
        "plot_segmentation.py",
        "superpixels.py",
        "plot_parts.py",
    ],
    "confidence": [
        "plot_regularization_path.py",
        "plot_grid_search_sequences.py",
        "plot_confidence.py",
        "plot_crf_calibration.py",
        "plot_prediction_sets.py",
    ],
    "solvers": [
        "plot_slack_rescaling.py",
        "plot_step_sampling.py",
        "plot_batch_solvers.py",
    ],
    "metrics": [
        "plot_cookbook.py",
        "plot_complex_metric.py",
        "plot_fairness.py",
        "plot_loan_rule.py",
        "plot_calibration_metric.py",
    ],
    "structures": [
        "plot_custom_structure.py",
        "plot_hierarchy.py",
    ],
}
SCRIPTS = [script for scripts in EXAMPLES.values() for script in scripts]


def section_place(path):
    """Sorting key for sphinx-gallery; ValueError for a folder that is not listed."""
    return list(EXAMPLES).index(Path(path).name)


class ReadingOrder:
    """Sorting key for sphinx-gallery; scripts that are not listed come last."""

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __call__(self, filename):
        known = filename in SCRIPTS
        return (SCRIPTS.index(filename) if known else len(SCRIPTS), filename)

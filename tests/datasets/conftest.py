"""Where the real files are, for the tests that read them."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data():
    """Folder with the subfolders `ocr` and `conll2000`, or the test is skipped."""
    folder = os.environ.get("SKLEARN_STRUCTSVM_DATA")
    if folder is None:
        folder = Path(__file__).parents[2].parent / "shared" / "data"
    folder = Path(folder)
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}; SKLEARN_STRUCTSVM_DATA names their folder")
    return folder

"""What all tests of displays share."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def no_figure_is_left_open():
    plt.close("all")
    yield
    plt.close("all")

"""The recipes of the cookbook: each runs on its own, and does what it says."""

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "metrics" / "plot_cookbook.py"


@cache
def sections():
    """Cells of the script, by their headings."""
    found, cells = {}, SCRIPT.read_text(encoding="utf-8").split("\n# %%\n")[1:]
    for cell in cells:
        if heading := re.match(r"# (.+)\n# -+\n", cell):
            title = heading[1]
            found[title] = []
        found[title].append(cell)
    return found


def titles():
    """Of the recipes: all sections but the first, which has the data."""
    return list(sections())[1:]


@cache
def data():
    names = {}
    exec(compile(*sections()["The data"], SCRIPT.name, "exec"), names)
    return names


@pytest.fixture
def run():

    def run_section(start):
        (title,) = (title for title in titles() if title.startswith(start))
        names = dict(data())
        for cell in sections()[title]:
            exec(compile(cell, SCRIPT.name, "exec"), names)
        assert plt.get_fignums()
        return SimpleNamespace(**names)

    plt.close("all")
    yield run_section
    plt.close("all")


def test_there_are_ten_recipes_of_at_most_ten_lines():
    assert len(titles()) == 10
    for cells in map(sections().get, titles()):
        lines = [line for line in cells[0].splitlines() if line and line[0] != "#"]
        assert len(lines) <= 10


def test_the_g_mean_is_better_where_a_class_was_given_up(run):
    found = run("Imbalanced classes")
    assert found.likely_score == 0.0
    assert found.score > 0.5
    assert found.model.dual_gap_ <= found.model.tol


def test_the_rare_letter_is_found(run):
    found = run("Finding a rare class")
    assert found.score > found.likely_score + 0.2
    assert found.model.pos_label_ == "x"
    assert set(found.model.predict(found.images_test)) == {"x", "other"}


def test_the_precision_is_reached_and_the_recall_higher(run):
    found = run("The highest recall")
    C = found.model.certified_confusions_[0]
    assert C[1, 1] >= 0.9 * C[:, 1].sum() - 1e-9
    assert found.precision > 0.85
    assert found.recall > found.likely_recall + 0.1


def test_costs_of_each_row_are_lower_and_the_rule_is_elkans(run):
    found = run("Costs that differ")
    assert found.cost < 0.8 * found.likely_cost
    pays = found.probability * (85 - found.age) - (1 - found.probability) * 15
    sure = np.abs(pays) > 1e-6
    assert np.array_equal(found.treated[sure], pays[sure] > 0)


def test_what_is_accepted_is_right_more_often(run):
    found = run("Rejecting uncertain rows")
    assert found.right[found.accepted].mean() > found.right.mean() + 0.08
    assert found.accepted.mean() > 0.65
    assert found.gate.confusion_[:, 1].sum() >= 0.7 - 1e-9


def test_odds_are_equalized_in_training_and_nearer_on_new_rows(run):
    found = run("Fairness: equalized odds")
    assert found.model.constraint_violation_ <= 1e-9
    assert found.difference < found.likely_difference - 0.1
    assert found.accuracy > found.likely_accuracy - 0.05


def test_odds_are_nearer_without_groups_in_predict(run):
    found = run("Fairness without knowing")
    assert found.difference < found.likely_difference - 0.1
    assert found.accuracy > found.likely_accuracy - 0.06


def test_small_groups_are_named_and_stay_within_their_bounds(run):
    found = run("Ten groups")
    assert "too small" in str(found.caught[0].message)
    assert len(found.model.groups_) == 10
    # Nothing is left of the slack: in training the recalls are equal.
    assert found.model.constraint_violation_ <= 1e-9 - 0.05
    assert (np.abs(found.recalls - found.everyone) <= found.bounds).all()


def test_macro_f1_gains_from_a_threshold_for_each_label(run):
    found = run("Many labels")
    assert found.score > found.likely_score + 0.01
    assert found.model.thresholds_.shape == (26,)


def test_the_worst_class_is_found_more_often_for_little_accuracy(run):
    found = run("Trading accuracy")
    C = found.model.certified_confusions_[0]
    assert (np.diag(C) >= 0.4 * C.sum(axis=1) - 1e-9).all()
    assert found.worst > found.likely_worst + 0.2
    assert found.accuracy > found.likely_accuracy - 0.05

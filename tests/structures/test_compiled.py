"""Oracles of one's own, compiled against the declarations that ship with the package."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from _options import placed
from _seeds import new_rng, new_seed

import sklearn_structsvm
from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM
from sklearn_structsvm._utils._matrix.features import as_features
from sklearn_structsvm.structures import (
    ChainStructure,
    MulticlassStructure,
    MultilabelStructure,
    check_structure,
)
from sklearn_structsvm.structures._chain import ChainOracle

# To compile takes a while.
pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[2] / "doc" / "guide"
SOURCES = (
    GUIDE / "at_most.pyx",
    GUIDE / "own_steps.pyx",
    Path(__file__).with_name("compiled_zoo.pyx"),
)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """The modules of `SOURCES`, by the command that the guide names."""
    pytest.importorskip("Cython", reason="kernels are compiled with Cython")
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cl")[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"kernels are compiled with {compiler}, which is not here")
    folder = tmp_path_factory.mktemp("compiled")
    for source in SOURCES:
        shutil.copy(source, folder)
    names = [source.name for source in SOURCES]
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "-i", "-q", *names]
    flags = f"-O0 -I{Path(sklearn_structsvm.__file__).parent}"
    environment = os.environ | {"CFLAGS": flags}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    modules = {}
    for source in SOURCES:
        library = folder / (source.stem + sysconfig.get_config_var("EXT_SUFFIX"))
        spec = importlib.util.spec_from_file_location(source.stem, library)
        modules[source.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[source.stem])
    return modules


class AtMost(MultilabelStructure):
    """That of the guide."""

    module = None

    def __init__(self, most=2, normalize_loss=False, label_costs=None):
        super().__init__(normalize_loss, label_costs)
        self.most = most

    def make_oracle(self, X, y):
        Y = np.ascontiguousarray(y, dtype=np.int8)
        return self.module.AtMostOracle(
            as_features(X), Y, self.label_costs_, self.bias_, self.most
        )

    def decode_batch(self, X, w, n_threads=1):
        anything = np.zeros((X.shape[0], len(self.classes_)))
        labels = self.make_oracle(X, anything).decode(w, 0.0, n_threads)
        return labels.reshape(anything.shape)

    def labelings(self, x):
        return [y for y in super().labelings(x) if y.sum() <= self.most]


def few_labels(n=30, k=5, most=2):
    rng = new_rng()
    X = rng.standard_normal((n, 4))
    order = np.argsort(rng.random((n, k)), axis=1)
    return X, (order < rng.integers(most + 1, size=(n, 1))).astype(int)


def test_the_steps_of_the_guide_arrive_at_the_optimum(compiled, monkeypatch, capsys):
    """Its loop prints the status and the gaps."""
    monkeypatch.setitem(sys.modules, "own_steps", compiled["own_steps"])
    page = (GUIDE / "own_step.rst").read_text(encoding="utf-8")
    (block,) = re.findall(r"code-block:: python\n\n((?: {3}.*\n|\n)+)", page)
    names = {}
    exec(textwrap.dedent(block), names)
    assert capsys.readouterr().out.startswith("converged")
    history = names["result"].history
    X, y = names["X"], names["y"]
    model = BCFWClassifier("chain", C=1 / 40, tol=1e-6, random_state=new_seed())
    least = model.fit(X, y).dual_objective_
    assert history["dual_objective"][-1] <= model.objective_
    assert least <= history["objective"][-1] <= least + 0.01 + 1e-6


def test_the_oracle_of_the_guide_passes_and_trains_to_the_optimum(compiled):
    AtMost.module = compiled["at_most"]
    X, Y = few_labels()
    check_structure(AtMost(), X, Y, random_state=new_seed())
    check_structure(
        AtMost(most=1, normalize_loss=True), X, Y.clip(max=Y.cumsum(axis=1) == 1)
    )
    options = {"step": "pairwise", "tol": 1e-4, "random_state": 0}
    model = placed(BCFWClassifier)(AtMost(), **options).fit(X, Y)
    labelings = np.array([y for y in product((0, 1), repeat=5) if sum(y) <= 2])
    scores = model.decision_function(X) @ labelings.T
    truths = (model.decision_function(X) * Y).sum(axis=1, keepdims=True)
    losses = (labelings != Y[:, np.newaxis]).sum(axis=2)
    hinge = (losses + scores - truths).max(axis=1).mean()
    w = np.append(model.coef_, model.intercept_)
    assert model.objective_ == pytest.approx(w @ w / 60 + hinge, abs=1e-9)
    assert 0 <= model.dual_gap_ <= 1e-4
    np.testing.assert_array_equal(model.predict(X), labelings[scores.argmax(axis=1)])
    threads = placed(BCFWClassifier)(AtMost(), n_jobs=2, **options)
    np.testing.assert_array_equal(threads.fit(X, Y).coef_, model.coef_)


def test_a_restricted_oracle_does_not_inherit_the_candidates_of_its_parent(compiled):
    AtMost.module = compiled["at_most"]
    X, Y = few_labels()
    oracle = AtMost().fit(X, Y).make_oracle(X, Y)
    assert not oracle.has_candidates and oracle.thread_safe
    assert MultilabelStructure().fit(X, Y).make_oracle(X, Y).has_candidates
    assert not AtMost.has_constrained_decode
    for search in ("exact", "angular"):
        model = SlackRescaledSSVM(
            AtMost(), solver_options={"search": search}, random_state=0
        )
        with pytest.raises(ValueError, match=f"search='{search}' needs a structure with"):
            model.fit(X, Y)
    model = SlackRescaledSSVM(
        AtMost(), solver_options={"search": "bisecting"}, tol=0.5, random_state=0
    )
    assert model.fit(X, Y).dual_gap_ <= 0.5


def test_a_subclass_in_python_claims_nothing_either():
    class Quiet(ChainOracle):
        pass

    X, y = [np.ones((2, 1))], [[0, 1]]
    structure = ChainStructure().fit(X, y)
    oracle = structure.make_oracle(X, y)
    assert oracle.has_candidates and oracle.has_marginals and oracle.thread_safe
    rows, offsets = np.ones((2, 1)), np.array([0, 2])
    quiet = Quiet(
        as_features(rows), offsets, np.array([0, 1], dtype=np.intc),
        structure.label_costs_, bias=True, first=True, last=True, transition=True,
        normalize=True,
    )  # fmt: skip
    assert not (quiet.has_candidates or quiet.has_marginals or quiet.thread_safe)


class Reference(MulticlassStructure):
    """All in Python; only the first `n_allowed` classes are chosen."""

    n_allowed = None

    def decode(self, x, w):
        return self._best(x, w, 0.0)

    def loss_augmented_decode(self, x, y_true, w, lam=1.0):
        return self._best(x, w, lam * (self.classes_ != y_true))

    def _best(self, x, w, losses):
        values = self.decision_function(np.reshape(x, (1, -1)), w)[0] + losses
        return self.classes_[values[: self.n_allowed].argmax()]

    def labelings(self, x):
        return self.classes_[: self.n_allowed]


class Compiled(Reference):
    """Of which `oracle` is made."""

    module = None

    def __init__(self, oracle="Minimal", label_costs=None):
        super().__init__(label_costs)
        self.oracle = oracle

    def make_oracle(self, X, y):
        return getattr(self.module, self.oracle)(X, self._encode(y), len(self.classes_))


def classes():
    return new_rng().standard_normal((9, 3)), np.arange(9) % 3


@pytest.mark.parametrize(
    "oracle", ["Minimal", "WithCandidates", "WithAngles", "WithMarginals"]
)
def test_an_oracle_from_nothing_but_the_list_of_the_guide_passes(compiled, oracle):
    Compiled.module = compiled["compiled_zoo"]
    X, y = classes()
    for trial in range(3):
        check_structure(Compiled(oracle), X, y, random_state=new_seed(trial))
    options = {"fit_intercept": False, "tol": 1e-5, "step": "pairwise"}
    mine, theirs = (
        placed(BCFWClassifier)(structure, **options, random_state=0).fit(X, y)
        for structure in (Compiled(oracle), MulticlassStructure())
    )
    assert abs(mine.objective_ - theirs.objective_) <= 2e-5
    bounds = {"coef_bounds": (-0.1, 0.1)} | options
    mine, theirs = (
        placed(BCFWClassifier)(structure, **bounds, random_state=0).fit(X, y)
        for structure in (Compiled(oracle), MulticlassStructure())
    )
    assert abs(mine.coef_).max() <= 0.1
    assert abs(mine.objective_ - theirs.objective_) <= 2e-5


BROKEN = {
    "OfAnotherTruth": "score of the true labeling by .* is .* and should be 0",
    "WithoutLoss": "max_oracle of WithoutLoss of Compiled disagrees .* lam = ",
    "OfOtherScores": "(score|loss) of the labels .* from max_oracle at lam = ",
    "OfAnotherLoss": "loss of the labels .* is 2 for example ., and should be 1",
    "OfAnotherNorm": "squared norm of the labels",
    "OfAnotherImage": "product with itself of the labels",
    "WithoutTheBlock": "distance of a direction from the sum of its parts",
    "WithTheFirstAlone": "distance of a direction from the sum of its parts",
    "Transposed": "score of the labels .* from max_oracle",
    "WithoutMoves": "block_score after a move",
    "WithoutProjection": "number of wrong coordinates of project",
    "WithoutScaling": "block_score once halved",
    "WithoutRestoring": "block_score once restored",
    "BoundedBelow": "upper_bound by BoundedBelow of Compiled",
    "WithOneCandidate": "candidates of WithOneCandidate of Compiled lack the best",
    "WithOtherCandidates": "(score|loss) of the labels .* from candidates",
    "WithoutTheLast": "max_oracle of WithoutTheLast of Compiled disagrees",
    "WithLooseAngles": "constrained_oracle of WithLooseAngles .* ignores strict_alpha",
    "WithoutValues": "n_values of WithoutValues of Compiled is not set",
    "Unfinished": "Unfinished must define true_labels",
}


@pytest.mark.parametrize(("oracle", "message"), BROKEN.items(), ids=BROKEN)
def test_a_broken_oracle_is_caught(compiled, oracle, message):
    Compiled.module = compiled["compiled_zoo"]
    with pytest.raises((ValueError, NotImplementedError), match=message):
        check_structure(Compiled(oracle), *classes(), random_state=new_seed())


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        ("WithSumsForMeans", "soft maximum of soft_oracle by WithSumsForMeans"),
        ("WithColdMarginals", "mean (score|loss) of soft_oracle by WithColdMarginals"),
    ],
)
def test_soft_maxima_are_held_against_all_labelings(compiled, oracle, message):
    Compiled.module = compiled["compiled_zoo"]
    options = {"labelings": lambda x: range(3), "random_state": new_seed()}
    check_structure(Compiled("WithMarginals"), *classes(), **options)
    with pytest.raises(ValueError, match=message):
        check_structure(Compiled(oracle), *classes(), **options)


def test_candidates_that_know_nothing_of_a_restriction_are_caught(compiled):
    Compiled.module = compiled["compiled_zoo"]

    class Restricted(Compiled):
        n_allowed = 2

    X, y = classes()
    X, y = X[y < 2], y[y < 2]
    right = Restricted("Minimal").fit(X, y, classes=[0, 1])
    check_structure(right, X, y, random_state=new_seed())
    wrong = Restricted("WithoutTheLast").fit(X, y, classes=[0, 1, 2])
    message = "candidates of WithoutTheLast of Restricted are not those that max_oracle"
    for labelings in (None, lambda x: None):
        with pytest.raises(ValueError, match=f"{message}.* not claim has_candidates"):
            check_structure(wrong, X, y, random_state=new_seed(), labelings=labelings)

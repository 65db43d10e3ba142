"""What a user writes, as `mypy --strict` sees it; `make lint` runs it over this file.

Where nothing is wrong, a checker must find nothing; where something is, it must say so,
or the ``type: ignore`` of that line is an error itself. All of it runs as well, so that
the types which are stated are those that come out.
"""

from collections.abc import Iterable
from typing import Any, assert_type

import numpy as np
import pytest
from _seeds import new_rng, new_seed
from numpy.typing import NDArray

from sklearn_structsvm import (
    BCFWClassifier,
    BCFWClassifierCV,
    BMRMClassifier,
    ComplexMetricClassifier,
    ConformalClassifier,
    CRFClassifier,
    CRFClassifierCV,
    MultilabelMetricClassifier,
    PragamClassifier,
    SlackRescaledSSVM,
    SubLBFGSClassifier,
    __version__,
    bcfw_path,
    crf_path,
)
from sklearn_structsvm._contract._oracle import BlockOracle
from sklearn_structsvm.confusion import (
    Cells,
    ConfusionMetric,
    Constraint,
    check_gradient,
    check_metric,
    get_metric,
)
from sklearn_structsvm.confusion.lmo import LMO
from sklearn_structsvm.datasets import (
    chunking_attributes,
    make_chains,
    make_multilabel,
    make_poses,
    make_segmentation,
)
from sklearn_structsvm.metrics import (
    Churn,
    DemographicParity,
    FBeta,
    GMean,
    MetricBound,
    Recall,
    confusion_tensor,
    demographic_parity_difference,
    entity_f1_score,
    g_mean_score,
    micro_f1_score,
    token_accuracy_score,
    token_log_loss,
)
from sklearn_structsvm.preprocessing import SequenceTransformer, split_sequences
from sklearn_structsvm.solvers.blocks.path import RegularizationPath
from sklearn_structsvm.solvers.blocks.slack_search import (
    SlackSearchResult,
    find_most_violating,
)
from sklearn_structsvm.solvers.confusion.mixture import InfeasibleConstraintError
from sklearn_structsvm.structures import (
    ChainStructure,
    GraphStructure,
    HierarchicalStructure,
    MulticlassStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
    PictorialStructure,
    Structure,
    TreeStructure,
    check_structure,
    grid_edges,
)

Vector = NDArray[np.float64]


def rows(n_classes: int) -> tuple[Vector, NDArray[np.int64]]:
    rng = new_rng()
    y = np.arange(60) % n_classes
    return rng.normal(size=(60, 4)) + 3 * y[:, np.newaxis], y


def is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def test_the_estimator_is_what_fit_returns_and_tells_what_it_learned() -> None:
    X, y = make_chains(n_samples=8, random_state=new_seed())
    assert_type(X, list[Any])
    assert_type(y, list[np.ndarray])
    model = BCFWClassifier(
        ChainStructure(transitions=None), C=1, step="fw", tol=0.1, random_state=0
    ).fit(X, y, sample_weight=[1.0] * len(y))
    assert_type(model, BCFWClassifier)
    assert_type(model.coef_, np.ndarray)
    assert_type(model.dual_gap_, float)
    assert_type(model.objective_, float)
    assert_type(model.n_iter_, int)
    assert_type(model.history_, dict[str, np.ndarray])
    assert_type(model.structure_, Structure)
    assert_type(model.predict(X), np.ndarray)
    assert_type(model.score(X, y), float)
    labelings, scores = model.predict_k_best(X, 2)
    assert_type(labelings, np.ndarray)
    assert is_array(labelings) and is_array(scores) and is_array(model.max_marginals(X))
    assert isinstance(model.dual_gap_, float) and isinstance(model.n_iter_, int)
    assert isinstance(model.structure_, Structure) and is_array(model.coef_)
    assert all(map(is_array, model.history_.values()))
    assert isinstance(model.score(X, y), float) and isinstance(__version__, str)


def test_probabilities_of_sequences_are_arrays() -> None:
    X, y = make_chains(n_samples=8, random_state=new_seed())
    options = {"decoding": "mbr"}
    model = CRFClassifier("chain", solver="lbfgs", tol=0.1, solver_options=options)
    model.fit(X, y)
    assert_type(model, CRFClassifier)
    assert_type(model.predict_proba(X), np.ndarray)
    assert_type(model.log_likelihood(X, y), np.ndarray)
    assert_type(token_log_loss(y, model.predict_proba(X), labels=model.classes_), float)
    assert_type(token_accuracy_score(y, model.predict(X)), float)
    for found in (
        model.predict(X), model.predict_proba(X), model.predict_log_proba(X),
        model.log_likelihood(X, y), model.entropy(X),
    ):  # fmt: skip
        assert is_array(found)
    chosen = CRFClassifierCV("chain", Cs=[0.1, 1.0], cv=2, tol=0.1).fit(X, y)
    assert_type(chosen, CRFClassifierCV)
    assert_type(chosen.C_, float)
    assert isinstance(chosen.C_, float) and is_array(chosen.scores_path_)


def test_every_estimator_of_rows_keeps_its_type() -> None:
    X, y = rows(2)
    assert_type(SubLBFGSClassifier(loss="roc_auc", tol=0.1).fit(X, y), SubLBFGSClassifier)
    batch = SubLBFGSClassifier(loss="logistic", penalty="l1", tol=0.1).fit(X, y)
    assert_type(batch.decision_function(X), np.ndarray)
    assert is_array(batch.decision_function(X))
    assert_type(BMRMClassifier(loss=FBeta(beta=2.0), tol=0.1).fit(X, y), BMRMClassifier)
    assert_type(PragamClassifier(loss="hinge", tol=0.1).fit(X, y), PragamClassifier)
    chosen = BCFWClassifierCV("binary", Cs=np.array([0.1, 1.0]), cv=2).fit(X, y)
    assert_type(chosen, BCFWClassifierCV)
    assert_type(chosen.Cs_, np.ndarray)
    slack = SlackRescaledSSVM(
        "multiclass", solver_options={"search": "exact"}, class_weight={0: 2}, tol=0.1
    )
    assert_type(slack.fit(X, y), SlackRescaledSSVM)
    assert_type(slack.n_queries_, int)
    assert isinstance(slack.n_queries_, int)


def test_the_path_and_the_search_give_results_with_fields() -> None:
    X, y = rows(2)
    path = bcfw_path(X, y, structure="binary", eps=0.5, random_state=0)
    assert_type(path, RegularizationPath)
    assert_type(path.coef(1.0), np.ndarray)
    assert_type(path.end, float)
    assert is_array(path.coef(path.end + 1.0)) and isinstance(path.end, float)
    assert_type(crf_path(X, y, Cs=2, l1_ratio=0.5).n_nonzeros, np.ndarray)
    X, Y = make_multilabel(n_samples=3, random_state=new_seed())
    structure = MultilabelStructure().fit(X, Y)
    assert_type(structure, MultilabelStructure)
    oracle = structure.make_oracle(X, Y)
    assert_type(oracle, BlockOracle)
    assert_type(oracle.n_weights, int)
    assert_type(oracle.relative_cost, float)
    found = find_most_violating(oracle, 0, np.zeros(oracle.n_weights), search="angular")
    assert_type(found, SlackSearchResult)
    assert_type(found.bound, float)
    assert isinstance(oracle, BlockOracle) and isinstance(oracle.n_weights, int)
    assert isinstance(found.bound, float) and isinstance(oracle.relative_cost, float)
    assert is_array(oracle.decode(np.zeros(oracle.n_weights), lam=1.0))


def test_metrics_and_constraints_are_functions_and_make_scorers() -> None:
    X, y = rows(3)
    assert_type(GMean()(y, y), float)
    assert_type(g_mean_score(y, y), float)
    assert_type(micro_f1_score(y, y, zero_division=0.0), float)
    assert_type(GMean().positive_label([0, 1]), Any)
    C, cells = confusion_tensor(y, y, sensitive_features=y % 2)
    assert_type(cells, Cells)
    assert_type(cells.shape, tuple[int, int, int])
    groups = y % 2
    gap = demographic_parity_difference(
        y == 0, y == 1, sensitive_features=groups, pos_label=True
    )
    assert_type(gap, float)
    model = ComplexMetricClassifier(
        metric="g_mean",
        constraints=[Recall(at_least=0.1, label=0), MetricBound("zero_one", at_most=0.9)],
        solver_options={"solver": "column_generation"},
        cv=2,
        tol=0.1,
    ).fit(X, y)
    assert_type(model, ComplexMetricClassifier)
    assert_type(model.predict_proba(X), np.ndarray)
    assert_type(model.objective_, float)
    assert_type(FBeta(pos_label=1).scorer()(model, X, y), float)
    assert_type(model.score(X, y), float)
    assert isinstance(GMean().scorer(response="predict_proba")(model, X, y), float)
    assert isinstance(g_mean_score(y, y), float) and isinstance(gap, float)
    assert is_array(model.predict_proba(X)) and isinstance(model.objective_, float)
    assert isinstance(Churn(model, 0.1), Constraint)
    assert isinstance(DemographicParity(slack=0.1, bound="ratio"), Constraint)
    assert isinstance(get_metric("micro_f1", [0, 1, 2]), ConfusionMetric)
    assert issubclass(InfeasibleConstraintError, ValueError)
    assert cells.n_groups == 2 and is_array(C)


def test_the_multilabel_classifier_keeps_its_type() -> None:
    X, Y = make_multilabel(n_samples=60, random_state=new_seed())
    model = MultilabelMetricClassifier(metric="f1", average="micro", cv=2).fit(X, Y)
    assert_type(model, MultilabelMetricClassifier)
    assert_type(model.score(X, Y), float)
    assert isinstance(model.score(X, Y), float) and is_array(model.thresholds_)


def test_sets_keep_their_types() -> None:
    X, y = make_chains(n_samples=60, random_state=new_seed())
    model = ConformalClassifier(CRFClassifier(), confidence_level=0.5, cv=0.5).fit(X, y)
    assert_type(model, ConformalClassifier)
    assert is_array(model.predict_set(X)) and is_array(model.thresholds_)
    assert isinstance(model.set_report(X, y)["coverage"], float)


class BetterOfTwo(Structure):
    """A structure of one's own: which of two items is the better one."""

    def __init__(self, cost: float = 1.0) -> None:
        self.cost = cost

    def joint_feature(self, x: Vector, y: int) -> Vector:
        return np.asarray(x[y], dtype=np.float64)

    def loss(self, y_true: int, y: int) -> float:
        return self.cost * (y_true != y)

    def decode(self, x: Vector, w: Vector) -> int:
        return int(np.argmax(x @ w))

    def loss_augmented_decode(
        self, x: Vector, y_true: int, w: Vector, lam: float = 1.0
    ) -> int:
        return int(np.argmax(x @ w + lam * self.cost * (np.arange(2) != y_true)))

    def labelings(self, x: Vector) -> Iterable[int]:
        return range(2)


class WorstSquare(ConfusionMetric):
    convex = True

    def value(self, C: Vector) -> float:
        return float(max((1.0 - C.diagonal() / C.sum(axis=1)) ** 2))


class FewLast(Constraint):
    def __init__(self, at_most: float = 0.5) -> None:
        self.at_most = at_most

    def linear(self, cells: Cells) -> tuple[Vector, Vector]:
        G = np.zeros((1, *cells.shape))
        G[..., -1] = 1.0
        return G, np.array([-self.at_most])


class AlwaysTheSame(LMO):
    """An oracle of one's own: it knows the classifiers that are constant."""

    exact = True

    def __call__(self, L: Vector) -> tuple[Vector, int]:
        tensors = [self.count(np.full(len(self.y_), j)) for j in range(self.n_classes_)]
        best = int(np.argmin([np.vdot(L, C) for C in tensors]))
        return tensors[best], best

    def predict(
        self, handle: int, X: Vector, cells: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        return np.full(len(X), handle)


def test_a_users_own_parts_are_subclasses_that_a_checker_accepts() -> None:
    rng = new_rng()
    X = [rng.normal(size=(2, 3)) for _ in range(10)]
    y = [int(x[1, 0] > x[0, 0]) for x in X]
    structure = BetterOfTwo(cost=2.0)
    check_structure(structure, X, y, random_state=0)
    assert_type(structure.fit(X, y), BetterOfTwo)
    assert is_array(BCFWClassifier(structure, random_state=0).fit(X, y).predict(X))
    check_metric(WorstSquare(), n_trials=3)
    check_gradient(WorstSquare(), np.full((2, 2), 0.25))
    assert_type(WorstSquare()(y, y), float)
    Z, labels = rows(2)
    model = ComplexMetricClassifier(
        metric=WorstSquare(),
        constraints=FewLast(0.6),
        solver_options={"lmo": AlwaysTheSame()},
        tol=0.1,
    ).fit(Z, labels)
    assert_type(model.dual_gap_, float)
    assert isinstance(
        FewLast().violation(np.full((1, 2, 2), 0.25), Cells.single([0.5, 0.5])), float
    )


def test_structures_are_made_from_what_their_signatures_say() -> None:
    edges = grid_edges((2, 2), connectivity=8)
    assert_type(edges, np.ndarray)
    made: list[Structure] = [
        ChainStructure(transitions="bio"),
        TreeStructure(root_bias=False),
        GraphStructure(transition=False, inference="messages"),
        HierarchicalStructure([[0, 1], [0, 2]], inference="tree"),
        MulticlassStructure(label_costs=[[0, 1], [1, 0]]),
        PairwiseMultilabelStructure(pairs="tree"),
        PictorialStructure([-1, 0], cost="missed", reference=(0, 1)),
    ]
    for structure in made:
        again = type(structure)(**structure.get_params(deep=False))
        assert repr(again) == repr(structure)
    assert is_array(edges)


def test_sequences_are_made_of_rows_and_tokens() -> None:
    X = [[{"word": "the"}, {"word": "cat"}], [{"word": "dog"}]]
    assert_type(SequenceTransformer().fit_transform(X), list[Any])
    names = SequenceTransformer().fit(X).get_feature_names_out()
    assert_type(names, np.ndarray)
    assert_type(split_sequences(np.eye(3), [0, 0, 1]), list[Any])
    assert is_array(names) and len(split_sequences(np.eye(3), [0, 0, 1])) == 2
    attributes = chunking_attributes([("the", "DT"), ("cat", "NN")])
    assert_type(attributes, list[list[str]])
    assert isinstance(attributes[0][0], str)
    assert isinstance(entity_f1_score([["B-NP", "O"]], [["B-NP", "O"]]), float)
    assert len(make_segmentation(n_samples=2, shape=(4, 4)).X) == 2
    assert len(make_poses(n_samples=2, shape=(8, 8), random_state=0).X) == 2


def test_displays_are_what_their_constructors_return() -> None:
    from matplotlib import pyplot as plt

    from sklearn_structsvm.plotting import ConvergenceDisplay, RegularizationPathDisplay

    X, y = rows(2)
    model = BCFWClassifier(random_state=0).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model, x="n_iter", label="a")
    assert_type(display, ConvergenceDisplay)
    assert_type(display.plot(), ConvergenceDisplay)
    assert isinstance(display.ax_.get_xlabel(), str)
    path = bcfw_path(X, y, structure="binary", eps=0.5, random_state=0)
    drawn = RegularizationPathDisplay.from_path(path, kind="norm")
    assert_type(drawn, RegularizationPathDisplay)
    plt.close("all")


def test_what_fit_would_refuse_a_checker_refuses() -> None:
    X, y = rows(2)
    for model in (
        BCFWClassifier(step="newton"),  # type: ignore[arg-type]
        BCFWClassifier("sequence"),  # type: ignore[arg-type]
        CRFClassifier(C="1.0"),  # type: ignore[arg-type]
        SlackRescaledSSVM(solver=None),  # type: ignore[arg-type]
        SubLBFGSClassifier(penalty="l3"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError):
            model.fit(X, y)
    with pytest.raises(TypeError):
        BCFWClassifier(cost=1.0)  # type: ignore[call-arg]

"""CRFClassifier against CRFsuite at the same objective, where that is installed."""

import numpy as np
import pytest
from _seeds import new_seed

from sklearn_structsvm import CRFClassifier
from sklearn_structsvm.datasets import make_chains
from sklearn_structsvm.structures import ChainStructure

pycrfsuite = pytest.importorskip("pycrfsuite")

C2 = 0.3
STRUCTURE = ChainStructure(bias=False, first_bias=False, last_bias=False)


def chains(form):
    X, y = make_chains(
        40, n_features=6, n_classes=4, max_length=7, random_state=new_seed()
    )
    if form == "attributes":
        X = [(x > 0.3).astype(float) for x in X]
    X[0][:] = 1.0  # so that no attribute is unknown
    return X, y


def train_crfsuite(X, y, path, c1, c2):
    """Its items, its tagger, and its weights as ours."""
    params = {"c1": c1, "c2": c2, "epsilon": 1e-10, "delta": 1e-14}
    params |= {"max_iterations": 5000, "feature.possible_states": 1}
    params |= {"feature.possible_transitions": 1}
    # Of numbers it takes the sum for how often a feature occurs with a label.
    params["feature.minfreq"] = -1e9
    trainer = pycrfsuite.Trainer("lbfgs", params, verbose=False)
    items = [
        pycrfsuite.ItemSequence(
            [{str(j): v for j, v in enumerate(row.tolist()) if v} for row in x]
        )
        for x in X
    ]
    for item, labels in zip(items, y, strict=True):
        trainer.append(item, list(map(str, labels)))
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    info = tagger.info()
    names = list(map(str, np.unique(np.concatenate(y))))
    # What is zero is not in its model.
    state = [info.state_features.get((str(j), b), 0.0) for j in range(6) for b in names]
    transition = [info.transitions.get((a, b), 0.0) for a in names for b in names]
    return items, tagger, np.array(state + transition)


@pytest.fixture(scope="module", params=["attributes", "numbers"])
def trained(request, tmp_path_factory):
    """Sentences, CRFsuite's tagger of them, its weights as ours, and our model."""
    X, y = chains(request.param)
    path = str(tmp_path_factory.mktemp("crfsuite") / "model")
    items, tagger, weights = train_crfsuite(X, y, path, 0.0, C2)
    model = CRFClassifier(STRUCTURE, C=0.5 / C2, tol=1e-11, max_iter=5000, random_state=0)
    model.fit(X, y)
    yield X, y, items, tagger, weights, model
    tagger.close()


def test_the_minimum_is_that_of_crfsuite(trained):
    X, y, _, _, weights, model = trained
    np.testing.assert_allclose(model.coef_, weights, rtol=0.0, atol=1e-4)
    other = CRFClassifier(model.structure, C=model.C, solver="lbfgs", tol=1e-11)
    np.testing.assert_allclose(other.fit(X, y).coef_, weights, rtol=0.0, atol=1e-4)
    # By its own weights, rounded as they are, nothing is gained on ours.
    log_sums = model.structure_.log_probabilities(X, y, weights).sum()
    objective = (C2 * weights @ weights - log_sums) / len(X)
    # Ours has λ = 1 / (C n).
    own = model.objective_
    assert own - model.dual_gap_ <= objective <= own + 1e-7


@pytest.mark.parametrize("form", ["attributes", "numbers"])
@pytest.mark.parametrize("c1", [0.2, 1.5])
def test_the_value_of_an_elastic_net_is_that_of_crfsuite(form, c1, tmp_path):
    X, y = chains(form)
    _, tagger, weights = train_crfsuite(X, y, str(tmp_path / "model"), c1, C2)
    tagger.close()
    C = 1.0 / (c1 + 2.0 * C2)
    model = CRFClassifier(STRUCTURE, C=C, l1_ratio=c1 * C, tol=1e-8, random_state=0)
    model.set_params(max_iter=5000).fit(X, y)
    log_sums = model.structure_.log_probabilities(X, y, weights).sum()
    penalty = c1 * np.abs(weights).sum() + C2 * weights @ weights
    objective = (penalty - log_sums) / len(X)
    assert model.dual_gap_ <= 1e-8
    assert objective >= model.dual_objective_ - 1e-12
    assert objective == pytest.approx(model.objective_, rel=1e-6)


def test_probabilities_and_taggings_are_those_of_crfsuite(trained):
    X, y, items, tagger, _, model = trained
    likelihoods = np.exp(model.log_likelihood(X, y))
    predicted, proba = model.predict(X), model.predict_proba(X)
    for i, item in enumerate(items):
        tags = tagger.tag(item)
        own = list(map(str, predicted[i]))
        assert tagger.probability(own) == pytest.approx(
            tagger.probability(tags), rel=1e-4
        )
        assert tagger.probability(list(map(str, y[i]))) == pytest.approx(
            likelihoods[i], rel=1e-3
        )
        marginals = [
            [tagger.marginal(str(c), t) for c in model.classes_] for t in range(len(tags))
        ]
        np.testing.assert_allclose(proba[i], marginals, atol=1e-4)

"""The files of the page "On top of a network": log Z, marginals, and a layer of torch."""

import importlib
from itertools import product

import numpy as np
import pytest
from _seeds import new_rng
from chain_sums import chain_sums
from scipy.special import logsumexp, softmax

LENGTHS = 1, 4, 2


def draw(k=3, seed=0, dtype=np.float64):
    """Scores of the chains one after another, and those of ends and transitions."""
    rng = new_rng(seed)
    shapes = (sum(LENGTHS), k), (k,), (k,), (k, k)
    return [(2.0 * rng.standard_normal(shape)).astype(dtype) for shape in shapes]


def enumerated(scores, first, last, transition):
    """What `chain_sums` returns, from all labelings written out."""
    k = len(first)
    found = [0.0, np.zeros_like(scores), np.zeros(k), np.zeros(k), np.zeros((k, k))]
    for end, T in zip(np.cumsum(LENGTHS), LENGTHS, strict=True):
        labelings = np.array([*product(range(k), repeat=T)])
        rows = np.arange(end - T, end)
        totals = scores[rows, labelings].sum(axis=1)
        totals += first[labelings[:, 0]] + last[labelings[:, -1]]
        totals += transition[labelings[:, :-1], labelings[:, 1:]].sum(axis=1)
        found[0] += logsumexp(totals)
        for labels, p in zip(labelings, softmax(totals), strict=True):
            found[1][rows, labels] += p
            found[2][labels[0]] += p
            found[3][labels[-1]] += p
            np.add.at(found[4], (labels[:-1], labels[1:]), p)
    return found


@pytest.mark.parametrize("k", [2, 3])
def test_the_sums_are_those_of_all_labelings(k):
    scores, *weights = draw(k)
    found = chain_sums(scores, LENGTHS, *weights)
    for one, other in zip(found, enumerated(scores, *weights), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_float32_scores_are_summed_in_float64():
    scores, *weights = draw(dtype=np.float32)
    exact = chain_sums(scores.astype(float), LENGTHS, *weights)
    for one, other in zip(chain_sums(scores, LENGTHS, *weights), exact, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def layer(torch):
    return importlib.import_module("crf_layer")


def as_batch(torch, scores, labels):
    """Logits with padding and ignored positions in between, and labels with -100."""
    width, k = 2 * max(LENGTHS) + 1, scores.shape[1]
    logits = torch.full((len(LENGTHS), width, k), 7.0, dtype=scores.dtype)
    found = torch.full((len(LENGTHS), width), -100)
    ends = np.cumsum(LENGTHS)
    for i, (T, end) in enumerate(zip(LENGTHS, ends, strict=True)):
        logits[i, 1 : 2 * T : 2] = scores[end - T : end]
        found[i, 1 : 2 * T : 2] = labels[end - T : end]
    return logits, found


OURS = "first", "last", "transition"
THEIRS = "start_transitions", "end_transitions", "transitions"


def set_weights(torch, crf, names, weights):
    for name, value in zip(names, weights, strict=True):
        setattr(crf, name, torch.nn.Parameter(torch.from_numpy(value)))
    return crf


def test_the_gradient_of_the_layer_is_that_of_differences(torch, layer):
    tensors = [torch.from_numpy(a).requires_grad_() for a in draw()]
    lengths = torch.tensor(LENGTHS)

    def log_z(scores, *weights):
        return 3.0 * layer.ChainLogZ.apply(scores, lengths, *weights)

    assert torch.autograd.gradcheck(log_z, tensors)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-10), (np.float32, 1e-5)])
def test_the_layer_agrees_with_pytorch_crf(torch, layer, dtype, tol):
    torchcrf = pytest.importorskip("torchcrf")
    scores, *weights = draw(4, dtype=dtype)
    labels = new_rng(1).integers(4, size=len(scores))
    ours = set_weights(torch, layer.ChainCRF(4), OURS, weights)
    logits, y = as_batch(torch, torch.from_numpy(scores), torch.from_numpy(labels))
    logits.requires_grad_()
    loss = ours(logits, y)
    loss.backward()

    theirs = torchcrf.CRF(4, batch_first=True)
    set_weights(torch, theirs, THEIRS, weights)
    padded = torch.zeros(len(LENGTHS), max(LENGTHS), 4, dtype=logits.dtype)
    tags = torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.long)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    padded[mask], tags[mask] = torch.from_numpy(scores), torch.from_numpy(labels)
    padded.requires_grad_()
    other = -theirs(padded, tags, mask=mask)
    other.backward()

    # Gradients are marginals, less one at the true labels.
    torch.testing.assert_close(loss, other, rtol=tol, atol=tol)
    pairs = [(logits.grad[y != -100], padded.grad[mask])]
    for name, their_name in zip(OURS, THEIRS, strict=True):
        pairs.append((getattr(ours, name).grad, getattr(theirs, their_name).grad))
    for one, another in pairs:
        torch.testing.assert_close(one, another, rtol=0.0, atol=tol)
    assert not logits.grad[y == -100].any()


def test_a_network_learns_through_the_layer(torch, layer):
    rng = new_rng(2)
    labels = torch.from_numpy(np.cumsum(rng.random((20, 12)) < 0.2, axis=1) % 2)
    noise = torch.from_numpy(rng.standard_normal((20, 12)))
    rows = torch.stack([labels + noise, torch.ones_like(noise)], dim=2).float()
    network, crf = torch.nn.Linear(2, 2), layer.ChainCRF(2)
    torch.nn.init.zeros_(network.weight)
    torch.nn.init.zeros_(network.bias)
    optimizer = torch.optim.SGD([*network.parameters(), *crf.parameters()], lr=1e-3)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = crf(network(rows), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(labels.numel() * np.log(2.0), rel=1e-5)
    assert losses[-1] < 0.9 * losses[0]
    assert crf.transition[0, 0] > crf.transition[0, 1]

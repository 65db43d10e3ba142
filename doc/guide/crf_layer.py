"""A linear-chain CRF as the last layer of a network."""

import torch
from chain_sums import chain_sums
from torch.autograd.function import once_differentiable


class ChainLogZ(torch.autograd.Function):
    """Sum of log Z over all chains; its gradient consists of the marginals."""

    @staticmethod
    def forward(ctx, scores, lengths, first, last, transition):
        tensors = [scores, first, last, transition]
        scores, *others = (tensor.detach().cpu().numpy() for tensor in tensors)
        log_z, *marginals = chain_sums(scores, lengths.tolist(), *others)
        pairs = zip(marginals, tensors, strict=True)
        ctx.save_for_backward(*(torch.from_numpy(m).to(tensor) for m, tensor in pairs))
        return tensors[0].new_tensor(log_z)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        nodes, *others = (grad * marginals for marginals in ctx.saved_tensors)
        return nodes, None, *others


class ChainCRF(torch.nn.Module):
    """Negative log-likelihood of labels, given a batch of logits."""

    def __init__(self, k):
        super().__init__()
        self.first = torch.nn.Parameter(torch.zeros(k))
        self.last = torch.nn.Parameter(torch.zeros(k))
        self.transition = torch.nn.Parameter(torch.zeros(k, k))

    def forward(self, logits, labels):
        """Sum over the batch; positions with the label -100 are left out."""
        known = labels != -100
        scores, y, lengths = logits[known], labels[known], known.sum(dim=1)
        lengths = lengths[lengths > 0]
        ends = lengths.cumsum(0)
        inner = torch.ones_like(y, dtype=torch.bool)
        inner[ends - lengths] = False
        at = inner.nonzero().ravel()
        truth = scores.gather(1, y[:, None]).sum() + self.first[y[~inner]].sum()
        truth = truth + self.last[y[ends - 1]].sum()
        truth = truth + self.transition[y[at - 1], y[at]].sum()
        weights = self.first, self.last, self.transition
        return ChainLogZ.apply(scores, lengths, *weights) - truth

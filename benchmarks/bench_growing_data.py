"""Passes of warm and cold fits after examples were added, to the same duality gap."""

import argparse
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits

from sklearn_structsvm import BCFWClassifier, CRFClassifier
from sklearn_structsvm.datasets import load_ocr_letters

GROWTHS = 0.01, 0.1, 0.5
TOLS = 1e-2, 1e-3


def problems():
    """Names, models and data."""
    words, labels = load_ocr_letters(return_X_y=True)
    words, labels = np.array(words, dtype=object), np.array(labels, dtype=object)
    classes = np.unique(np.concatenate(list(labels)))
    rows, digits = load_digits(return_X_y=True)
    chains = {
        "OCR words, C=1": BCFWClassifier(C=1.0, solver_options={"classes": classes}),
        "OCR words, C=10": BCFWClassifier(C=10.0, solver_options={"classes": classes}),
        "OCR words, C=.1, pairwise": BCFWClassifier(
            C=0.1, step="pairwise", solver_options={"classes": classes}
        ),
        "OCR words, CRF, C=1": CRFClassifier(C=1.0, solver_options={"classes": classes}),
    }
    for name, model in chains.items():
        yield name, model, words, labels
    yield "digits, C=1", BCFWClassifier(C=1.0), rows / 16.0, digits


def passes(model, X, y, growth, tol, seed, interval):
    """Passes of a fit that continues, and of one from scratch."""
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    n = round(len(y) / (1.0 + growth))
    model = clone(model).set_params(
        tol=tol,
        max_iter=10**4,
        random_state=seed,
        solver_options__gap_check_interval=interval,
    )
    warm = clone(model).set_params(warm_start=True).fit(X[:n], y[:n]).fit(X, y)
    return warm.n_iter_, model.fit(X, y).n_iter_


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the names of the data")
    parser.add_argument("--interval", type=int, default=10, help="of the gap checks")
    args = parser.parse_args()
    warnings.simplefilter("error")
    print("| data | gap | +1 % | +10 % | +50 % |")
    print("| --- | --- | --- | --- | --- |")
    for name, model, X, y in problems():
        if args.only not in name:
            continue
        for tol in TOLS:
            cells = []
            for growth in GROWTHS:
                found = [
                    passes(model, X, y, growth, tol, seed, args.interval)
                    for seed in range(args.seeds)
                ]
                warm, cold = np.mean(found, axis=0)
                cells.append(f"{warm:.0f} / {cold:.0f} ({warm / cold:.2f})")
            print(f"| {name} | {tol:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

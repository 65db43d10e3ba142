"""What `make demo` runs: reading handwritten words, end to end.

Trains a chain on the words that ship with the package, with a certificate of how far
from the optimum it is; compares it with a classifier that reads letter by letter;
draws the convergence; and searches over C by cross-validation on whole words.
"""

import warnings
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.svm import LinearSVC

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.metrics import token_accuracy_score
from sklearn_structsvm.plotting import ConvergenceDisplay
from sklearn_structsvm.structures import ChainStructure

PLOT = Path("demo_convergence.png")

matplotlib.use("Agg")


def with_progress_bar(model):
    """The model with scikit-learn's progress bar where there is one (from 1.9)."""
    try:
        from sklearn.callback import ProgressBar
    except ImportError:
        return model.set_params(verbose=1)
    return model.set_callbacks(ProgressBar())


def main():
    words, letters = load_ocr_letters(return_X_y=True)
    # The fold holds few distinct words, equal ones side by side: shuffled, so that
    # train and test part have words in common, as in the usual split of this data.
    X_train, X_test, y_train, y_test = train_test_split(
        words, letters, test_size=0.3, random_state=0
    )
    print(
        f"{len(X_train)} words to train on, {len(X_test)} held out, "
        f"{words[0].shape[1]} pixels a letter.\n"
    )

    chain = BCFWClassifier(ChainStructure(), C=0.1, tol=1e-3, random_state=0)
    with_progress_bar(chain).fit(X_train, y_train)
    print(
        f"\nChain: objective {chain.objective_:.5f}, at most {chain.dual_gap_:.1e} above "
        f"the optimum (certified), after {chain.n_iter_} passes, "
        f"{chain.history_['seconds'][-1]:.1f} s."
    )

    letter_by_letter = LinearSVC(C=0.01, random_state=0)
    letter_by_letter.fit(np.concatenate(X_train), np.concatenate(y_train))
    error = 1.0 - token_accuracy_score(y_test, chain.predict(X_test))
    unstructured = 1.0 - letter_by_letter.score(
        np.concatenate(X_test), np.concatenate(y_test)
    )
    print(f"Letter error on held-out words: {error:.3f} by the chain,")
    print(
        f"                                {unstructured:.3f} by LinearSVC, "
        "letter by letter."
    )

    display = ConvergenceDisplay.from_estimator(chain)
    display.figure_.savefig(PLOT, dpi=150)
    print(f"Its convergence is drawn in {PLOT}.\n")

    print("Choosing C by 5-fold cross-validation on words:")
    search = GridSearchCV(
        BCFWClassifier(ChainStructure(), max_iter=50, tol=0.01, random_state=0),
        {"C": [0.003, 0.01, 0.03, 0.1, 0.3]},
        cv=KFold(5, shuffle=True, random_state=0),
    )
    with warnings.catch_warnings():
        # Fifty passes rank the candidates; the last fit is certified above.
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(words, letters)
    for C, mean, spread in zip(
        search.cv_results_["param_C"],
        search.cv_results_["mean_test_score"],
        search.cv_results_["std_test_score"],
        strict=True,
    ):
        chosen = "  <- chosen" if search.best_params_["C"] == C else ""
        print(f"  C={C:<6} letter accuracy {mean:.3f} +/- {spread:.3f}{chosen}")


if __name__ == "__main__":
    main()

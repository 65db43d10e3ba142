"""Primal and dual objective of one fit, and the gap between them."""

import matplotlib.pyplot as plt

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.plotting import ConvergenceDisplay

X, y = load_ocr_letters(return_X_y=True)
model = BCFWClassifier(
    C=0.02,
    tol=0.002,
    solver_options={"acceleration": False, "gap_check_interval": 1},
    random_state=0,
).fit(X, y)

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
ConvergenceDisplay.from_estimator(model, x="n_iter", y="objective", ax=left, name=None)
left.set(yscale="linear", ylim=(0, 1))
passes, objective, dual = (
    model.history_[key] for key in ("n_iter", "objective", "dual_objective")
)
at = 3
left.annotate(
    "",
    xy=(passes[at], dual[at]),
    xytext=(passes[at], objective[at]),
    arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0},
)
left.text(passes[at] + 0.5, (objective[at] + dual[at]) / 2, "gap", va="center")
lines = left.lines[:2]
left.legend(lines, ["objective at the weights", "dual objective"], loc="upper right")
left.set_title("the optimum lies in the band", fontsize="medium")

ConvergenceDisplay.from_estimator(model, x="n_iter", ax=right, name=None)
right.get_legend().remove()
right.axhline(model.tol, color="k", linestyle=":")
right.text(0, 1.15 * model.tol, f"tol = {model.tol}")
right.set_title("its height is the gap", fontsize="medium")

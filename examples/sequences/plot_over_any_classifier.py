"""
A structure over any classifier
===============================

A classifier that labels single rows flickers: each row is judged without its neighbors.
You will train boosting on readings of a simulated sensor, put a chain on top of it in one
line, and look at the labels before and after. The chain is learned from out-of-fold
scores, and its fit has a certificate.
"""

# %%
# A sensor that is worn
# ---------------------
# A person sits, lies, walks or stands for a while. Each row is the mean and the spread of
# a window of accelerations, and some windows are far off.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from sklearn_structsvm import StackedStructureClassifier
from sklearn_structsvm.plotting import SegmentsDisplay

ACTIVITIES = np.array(["lie", "sit", "stand", "walk"])
MEANS = np.array([[0.1, 0.2, 0.1], [0.6, 0.8, 0.2], [0.8, 1.0, 0.3], [0.8, 1.0, 1.1]])
rng = np.random.default_rng(0)


def day(n_parts=12):
    """Readings and activities of one person."""
    codes = np.repeat(rng.integers(4, size=n_parts), rng.integers(5, 60, size=n_parts))
    readings = MEANS[codes] + 0.35 * rng.standard_t(3, size=(len(codes), 3))
    return readings, ACTIVITIES[codes]


X, y = zip(*(day() for _ in range(40)), strict=True)
X_train, X_test, y_train, y_test = X[:20], X[20:], y[:20], y[20:]

# %%
# One line more
# -------------

boosting = HistGradientBoostingClassifier(max_iter=50, random_state=0)
model = StackedStructureClassifier(boosting).fit(X_train, y_train)

alone = model.estimator_.predict(np.vstack(X_test))
alone = np.split(alone, np.cumsum([len(x) for x in X_test])[:-1])
context = model.predict(X_test)

# %%
# Before and after
# ----------------
# Labels of the first person. The number of changes is what flickers. Below is how
# probable the label is.


def changes(labels):
    return int((labels[1:] != labels[:-1]).sum())


SegmentsDisplay.from_estimator(model, X_test[0], y_test[0])
plt.show()

for name, labels in {"true": y_test, "alone": alone, "with a chain": context}.items():
    print(f"{name}: {changes(labels[0])} changes")

# %%
# Over all persons held out:

truth = np.concatenate(y_test)
for name, labelings in [("boosting alone", alone), ("with a chain", context)]:
    error = np.mean(np.concatenate(list(labelings)) != truth)
    ratio = sum(map(changes, labelings)) / sum(map(changes, y_test))
    print(f"{name}: error {error:.3f}, {ratio:.1f} times the true changes")

# %%
# What was learned
# ----------------
# The trust in the scores, and which activity follows which. The certificate is that of
# these weights: no others are better by more than the gap, for these scores.

final = model.final_estimator_
parts = final.structure_.weight_parts(final.coef_)
print(f"duality gap {final.dual_gap_:.1g} after {final.n_iter_} passes")
print(f"scale of the scores {parts['emission'].item():.2f}")

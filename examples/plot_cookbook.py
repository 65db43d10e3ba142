"""
Cookbook: decisions that people have to take
============================================

Ten questions, and for each the lines that answer it. All run on real data that ship with
scikit-learn and with this package, so that the page works without a network: put your own
``X`` and ``y`` in their place. Each recipe needs the first lines below, and none of the
other recipes.
"""

# %%
# The data
# --------
# Handwritten letters, 4617 of them, cut out of words; some letters are rare. Patients
# with diabetes: does the disease advance much in a year? Sex is kept apart from the other
# columns. Digits, of which only some pixels are shown, or it would be too easy. Half of
# the rows are held out. What is printed and drawn below is of these, unless it says
# otherwise.

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score
from sklearn.model_selection import (
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler

from sklearn_structsvm import ComplexMetricClassifier, MultilabelMetricClassifier
from sklearn_structsvm.datasets import load_ocr_letters
from sklearn_structsvm.metrics import (
    Coverage,
    EqualizedOdds,
    EqualOpportunity,
    FBeta,
    Precision,
    Recall,
    equalized_odds_difference,
    expected_cost_score,
    g_mean_score,
    min_recall_score,
)
from sklearn_structsvm.plotting import (
    AchievableSetDisplay,
    ThresholdDisplay,
    TradeoffDisplay,
)

half = {"test_size": 0.5, "random_state": 0}
words, texts = load_ocr_letters(return_X_y=True)
images, letters = np.concatenate(words), np.concatenate(texts)
place = np.concatenate([np.arange(len(text)) for text in texts])  # in the word
split = train_test_split(images, letters, place, stratify=letters, **half)
images, images_test, letters, letters_test, place, place_test = split

table, advance = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
sex, table = table["sex"].map({1.0: "one", 2.0: "other"}), table.drop(columns="sex")
advanced = (advance > 140).to_numpy()
split = train_test_split(table, advanced, sex, stratify=advanced, **half)
patients, patients_test, worse, worse_test, group, group_test = split

pixels, digits = load_digits(return_X_y=True)
split = train_test_split(pixels[:, 18:46] / 16, digits, stratify=digits, **half)
pixels, pixels_test, digits, digits_test = split

reader = LogisticRegression(C=0.1)
clinic = make_pipeline(StandardScaler(), LogisticRegression())

# %%
# Classes are unbalanced, and none may be given up: the G-mean
# ------------------------------------------------------------
# The G-mean is the geometric mean of the classes' recalls: it is 0 if one class is never
# found. No resampling is needed, for any number of classes.

model = ComplexMetricClassifier(reader, metric="g_mean").fit(images, letters)
predicted = model.predict(images_test)
score = g_mean_score(letters_test, predicted)

# %%
# Recalls of the letters, the rarest on the left, beside what they are where the most
# probable letter is predicted.

likely = model.estimator_.predict(images_test)
likely_score = g_mean_score(letters_test, likely)
print(f"G-mean of the most probable letters {likely_score:.3f}, best {score:.3f}")
names, counts = np.unique(letters, return_counts=True)
names = names[np.argsort(counts)]
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for name, labels in (("most probable", likely), ("best G-mean", predicted)):
    recalls = recall_score(letters_test, labels, labels=names, average=None)
    ax.plot(names, recalls, "o" if name == "best G-mean" else "x", label=name)
ax.set(xlabel="letter", ylabel="recall")
ax.legend(fontsize="small")
plt.show()

# %%
# Something rare is to be found, such as fraud: F1, with labels of any kind
# -------------------------------------------------------------------------
# One letter of ninety is an x. Labels are strings, so ``pos_label`` says which of them is
# the rare one. With folds for ``cv`` the threshold is chosen by rows that the classifier
# was not fitted to. Payments with frauds are ``fetch_openml("creditcard", version=1)``.

y, y_test = (np.where(part == "x", "x", "other") for part in (letters, letters_test))
model = ComplexMetricClassifier(reader, metric=FBeta(pos_label="x"), cv=5).fit(images, y)
score = f1_score(y_test, model.predict(images_test), pos_label="x")

# %%
# The small marks below are the thresholds that each fold alone would lead to: their
# spread says how well the threshold is known.

likely_score = f1_score(y_test, model.estimator_.predict(images_test), pos_label="x")
print(f"F1 at .5: {likely_score:.3f}; at {model.threshold_:.3f}: {score:.3f}")
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ThresholdDisplay.from_estimator(model, images_test, y_test, ax=ax)
plt.show()

# %%
# The most recall at a precision of at least .9
# ---------------------------------------------
# One rate is the metric, another one is bounded. In training the bound is met exactly; on
# new rows up to chance, so ask for somewhat more than you need. If no classifier meets
# it, an error says how close one comes, or a warning that nothing is predicted any more.

y, y_test = digits == 3, digits_test == 3
model = ComplexMetricClassifier(
    reader, metric="recall", constraints=Precision(at_least=0.9), cv=5
).fit(pixels, y)
predicted = model.predict(pixels_test)
precision, recall = precision_score(y_test, predicted), recall_score(y_test, predicted)

# %%
# Where the precision is too low, the background is grey.

likely = model.estimator_.predict(pixels_test)
likely_precision = precision_score(y_test, likely)
likely_recall = recall_score(y_test, likely)
print(f"at .5:        precision {likely_precision:.3f}, recall {likely_recall:.3f}")
print(f"most recall:  precision {precision:.3f}, recall {recall:.3f}")
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ThresholdDisplay.from_estimator(model, pixels_test, y_test, ax=ax)
plt.show()

# %%
# Mistakes cost something else in each row
# ----------------------------------------
# A case that is missed costs the patient the years until 85; a treatment that was not
# needed costs 15. ``costs[r, i, j]`` is what it costs to predict class j for row r if its
# class is i. Such costs are known of new patients too, so ``predict`` takes them as well.
# Costs that are known in hindsight only have shape (n, 2): see :ref:`guide-costs`. Loans
# with their amounts are ``fetch_openml("credit-g", version=1)``.

costs, costs_test = np.zeros((len(worse), 2, 2)), np.zeros((len(worse_test), 2, 2))
costs[:, 0, 1] = costs_test[:, 0, 1] = 15
costs[:, 1, 0] = 85 - patients["age"]
costs_test[:, 1, 0] = 85 - patients_test["age"]
model = ComplexMetricClassifier(clinic, metric="expected_cost")
model.fit(patients, worse, costs=costs)
treated = model.predict(patients_test, costs=costs_test)
cost = expected_cost_score(worse_test, treated, costs=costs_test)

# %%
# The younger the patient, the smaller the probability from which on it pays to treat.

likely = model.estimator_.predict(patients_test)
likely_cost = expected_cost_score(worse_test, likely, costs=costs_test)
print(f"cost of a patient: treated at .5 {likely_cost:.2f}, by costs {cost:.2f}")
age = patients_test["age"].to_numpy()
probability = model.estimator_.predict_proba(patients_test)[:, 1]
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for rows, name, marker in ((treated, "treated", "o"), (~treated, "not treated", "x")):
    ax.scatter(age[rows], probability[rows], 15, marker=marker, label=name)
ages = np.sort(age)
ax.plot(ages, 15 / (15 + 85 - ages), "k--", label="both cost the same")
ax.set(xlabel="age", ylabel="probability of a bad course")
ax.legend(fontsize="small")
plt.show()

# %%
# Leave the least sure rows to a person
# -------------------------------------
# Of held-out rows it is known whether the reader is right. To tell that from its two
# largest probabilities is a problem of two classes. What one wants to accept is what has
# the highest precision for "right" while at least 70% of the rows are covered.

P = cross_val_predict(reader, images, letters, method="predict_proba")
is_right = np.unique(letters)[P.argmax(axis=1)] == letters
sure = np.sort(P, axis=1)[:, -2:]
gate = ComplexMetricClassifier(metric="precision", constraints=Coverage(at_least=0.7))
gate.fit(sure, is_right)
P_test = reader.fit(images, letters).predict_proba(images_test)
accepted = gate.predict(np.sort(P_test, axis=1)[:, -2:])

# %%
# What it costs to cover more, cross-validated in the training half. The level is a
# parameter of the constraint, and its name that of ``get_params``, as in
# ``GridSearchCV``.

right = np.unique(letters)[P_test.argmax(axis=1)] == letters_test
print(f"right: {right.mean():.1%} of all, {right[accepted].mean():.1%} of those accepted")
print(f"accepted: {accepted.mean():.1%}")
fig, axes = plt.subplots(2, 1, figsize=(6, 4), sharex=True, layout="constrained")
TradeoffDisplay.from_estimator(
    gate,
    sure,
    is_right,
    param_name="constraints__at_least",
    param_range=[0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
    score_name="Right, if accepted",
    ax=axes,
)
plt.show()

# %%
# Groups are to be treated alike: equalised odds
# ----------------------------------------------
# Of the patients who get worse, as large a share is to be found in either group, and of
# the others as small a share alarmed. The rule has thresholds for each group, so
# ``predict`` needs the groups. ``fetch_openml("adult", version=2)`` is a larger set, with
# columns ``sex`` and ``race``.

odds = EqualizedOdds(slack=0.05, reference="groups")
model = ComplexMetricClassifier(clinic, metric="zero_one", constraints=odds)
model.fit(patients, worse, sensitive_features=group)
predicted = model.predict(patients_test, sensitive_features=group_test)
difference = equalized_odds_difference(
    worse_test, predicted, sensitive_features=group_test
)

# %%
# In training the odds differ by .05 at most; here it is 221 patients, and up to chance.
# Drawn are the recalls of both classes that can be had in training, and shaded what the
# constraint leaves of them.

likely = model.estimator_.predict(patients_test)
likely_difference = equalized_odds_difference(
    worse_test, likely, sensitive_features=group_test
)
accuracy = accuracy_score(worse_test, predicted)
likely_accuracy = accuracy_score(worse_test, likely)
print(
    f"most probable   {likely_accuracy:.1%} right, odds differ by {likely_difference:.3f}"
)
print(f"equalised odds  {accuracy:.1%} right, odds differ by {difference:.3f}")
fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
AchievableSetDisplay.from_estimator(
    model, patients, worse, sensitive_features=group, path=False, ax=ax
)
plt.show()

# %%
# The group is not known when predicting
# --------------------------------------
# With ``group_blind=True`` groups are needed in ``fit`` only: the rule sees what a row
# says of group and label together. So it works with whatever calls ``predict(X)``, such
# as ``cross_val_predict`` and ``GridSearchCV``.

odds = EqualizedOdds(slack=0.05, reference="groups")
model = ComplexMetricClassifier(
    clinic, metric="zero_one", constraints=odds, group_blind=True
)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
params = {"sensitive_features": sex}
predicted = cross_val_predict(model, table, advanced, cv=folds, params=params)
difference = equalized_odds_difference(advanced, predicted, sensitive_features=sex)

# %%
# How often the groups are predicted to get worse, of those who do and those who do not.

likely = cross_val_predict(clinic, table, advanced, cv=folds)
likely_difference = equalized_odds_difference(advanced, likely, sensitive_features=sex)
accuracy = accuracy_score(advanced, predicted)
likely_accuracy = accuracy_score(advanced, likely)
print(
    f"most probable   {likely_accuracy:.1%} right, odds differ by {likely_difference:.3f}"
)
print(f"equalised odds  {accuracy:.1%} right, odds differ by {difference:.3f}")
fig, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True, layout="constrained")
bars = ["recall", "false alarms"]
for ax, labels, title in zip(
    axes, (likely, predicted), ("most probable", "equalised odds"), strict=True
):
    for shift, value in ((-0.2, "one"), (0.2, "other")):
        rates = [labels[(sex == value) & (advanced == truth)].mean() for truth in (1, 0)]
        ax.bar(np.arange(2) + shift, rates, width=0.38, label=f"sex: {value}")
    ax.set_xticks(np.arange(2), bars)
    ax.set_title(title)
axes[0].set_ylabel("rate")
axes[1].legend(fontsize="small")
plt.show()

# %%
# Ten groups, some of them small
# ------------------------------
# Is a letter a vowel, and is that seen as well wherever in the word it stands? In
# training, each place can be brought within .05 of all. But what a recall of some
# fifty examples is on new rows, is not known so well. ``constraint_confidence`` reckons
# with that: it tightens the constraints by what their groups may be off, and warns where
# that is more than the slack.

y, y_test = np.isin(letters, list("aeiou")), np.isin(letters_test, list("aeiou"))
tenth, tenth_test = np.minimum(place, 9), np.minimum(place_test, 9)
model = ComplexMetricClassifier(
    reader, constraints=EqualOpportunity(slack=0.05), constraint_confidence=0.95, cv=5
)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", UserWarning)
    model.fit(images, y, sensitive_features=tenth)
predicted = model.predict(images_test, sensitive_features=tenth_test)

# %%
# The grey bars are how far the recall of each place may be off that of all, by a bound
# that holds with a probability of .95. So much slack could be promised. To promise less,
# join groups, or get more data.

print(textwrap.fill(str(caught[0].message), 88))
everyone = predicted[y_test].mean()
recalls = np.array([predicted[y_test & (tenth_test == a)].mean() for a in range(10)])
bounds = np.array([model.constraint_bounds_[0][a] for a in range(10)])
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.bar(range(10), 2 * bounds, bottom=everyone - bounds, color="0.9", label="may be off")
ax.axhline(everyone, color="0.4", linewidth=0.8, label="all places")
ax.plot(range(10), recalls, "o", label="this place")
ax.set(xlabel="place in the word (9: or later)", ylabel="recall of vowels", ylim=(0, 1))
ax.set_xticks(range(10))
ax.legend(fontsize="small", ncols=3)
plt.show()

# %%
# Many labels: macro-F1
# ---------------------
# Which letters are in a word, by the sum of their images? Each word has several of the 26
# labels. Above one half, rare labels are hardly ever predicted; each label gets the
# threshold that is best for it.

Y = MultiLabelBinarizer().fit_transform(texts)
sums = np.array([word.sum(axis=0) for word in words])
sums, sums_test, Y, Y_test = train_test_split(sums, Y, **half)
inner = OneVsRestClassifier(LogisticRegression(C=0.1, max_iter=1000))
model = MultilabelMetricClassifier(inner, metric="f1", average="macro", cv=5)
predicted = model.fit(sums, Y).predict(sums_test)
score = f1_score(Y_test, predicted, average="macro")

# %%
# Letters above the line gain.

likely = model.estimator_.predict(sums_test)
likely_score = f1_score(Y_test, likely, average="macro")
print(f"macro-F1 at .5: {likely_score:.3f}; with a threshold for each: {score:.3f}")
fig, ax = plt.subplots(figsize=(4, 4), layout="constrained")
by_label = [f1_score(Y_test, labels, average=None) for labels in (likely, predicted)]
for x, y, name in zip(*by_label, "abcdefghijklmnopqrstuvwxyz", strict=True):
    ax.text(x, y, name, ha="center", va="center")
ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
ax.set(xlabel="F1 at one half", ylabel="F1 at its threshold")
plt.show()

# %%
# Give up some accuracy for the class that fares worst
# ----------------------------------------------------
# Digits are to be told by one row of their pixels, and one of them is hardly ever found.
# ``Recall(at_least=0.4)`` holds for all ten, while as few as possible are wrong.
# ``metric="min_max"`` goes all the way: no other rule has a higher worst recall.

row, row_test = pixels[:, 6:14], pixels_test[:, 6:14]
model = ComplexMetricClassifier(metric="zero_one", constraints=Recall(at_least=0.4))
predicted = model.fit(row, digits).predict(row_test)
accuracy = accuracy_score(digits_test, predicted)
worst = min_recall_score(digits_test, predicted)

# %%
# Which digits gain, and which pay for it.

likely = model.estimator_.predict(row_test)
likely_accuracy = accuracy_score(digits_test, likely)
likely_worst = min_recall_score(digits_test, likely)
print(f"most probable: {likely_accuracy:.1%} right, worst recall {likely_worst:.3f}")
print(f"at least .4:   {accuracy:.1%} right, worst recall {worst:.3f}")
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, labels, marker in (("most probable", likely, "x"), ("≥ .4", predicted, "o")):
    ax.plot(recall_score(digits_test, labels, average=None), marker, label=name)
ax.axhline(0.4, color="0.6", linewidth=0.8)
ax.set(xlabel="digit", ylabel="recall", ylim=(0, 1))
ax.set_xticks(range(10))
ax.legend(fontsize="small", ncols=2)
plt.show()

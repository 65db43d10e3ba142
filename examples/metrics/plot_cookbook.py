"""
Cookbook: thresholds, costs, fairness, many labels
==================================================

.. index:: ! threshold, ! F1, ! imbalanced classes

Ten decision problems, each solved in a few lines, with the improvement that they bring:
the recall at a precision of 0.9 rises from 0.60 to 0.77, the cost of a patient falls
from 8.4 to 5.4. All run on real data that ship with scikit-learn and with this package,
so put your own ``X`` and ``y`` in their place. Each recipe needs the first lines below,
and none of the other recipes.
"""

# %%
# The data
# --------
# We use three data sets. The first has handwritten letters cut out of words; some
# letters are rare. The second has patients with diabetes, and the question is whether
# the disease progresses a lot within a year; sex is kept separate from the other
# columns. The third has digits, of which we show only some pixels, because they would
# be too easy otherwise.
#
# Half of the rows are held out. All results and figures below are for these rows,
# unless stated otherwise.

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
    EqualizedOdds,
    EqualOpportunity,
    FBeta,
    Precision,
    Recall,
    SelectionRate,
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
# Imbalanced classes, none of which may be ignored: the G-mean
# ------------------------------------------------------------
# The G-mean is the geometric mean of the classes' recalls, so it is 0 if one class is
# never found. It works for any number of classes and needs no resampling.

model = ComplexMetricClassifier(reader, metric="g_mean").fit(images, letters)
predicted = model.predict(images_test)
score = g_mean_score(letters_test, predicted)

# %%
# The plot shows the recall of each letter, with the rarest letters on the left, for the
# best G-mean and for the most probable letter.

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
# Finding a rare class, such as fraud: F1 with labels of any kind
# ---------------------------------------------------------------
# One letter in ninety is an x. Labels are strings, so ``pos_label`` says which one is
# the rare class. With ``cv``, the threshold is chosen on rows that the classifier was
# not fitted to. For real fraud data, try ``fetch_openml("creditcard", version=1)``.

y, y_test = (np.where(part == "x", "x", "other") for part in (letters, letters_test))
model = ComplexMetricClassifier(reader, metric=FBeta(pos_label="x"), cv=5).fit(images, y)
score = f1_score(y_test, model.predict(images_test), pos_label="x")

# %%
# The small marks are the thresholds that each fold alone would give. Their spread shows
# how well the threshold is determined.

likely_score = f1_score(y_test, model.estimator_.predict(images_test), pos_label="x")
print(f"F1 at .5: {likely_score:.3f}; at {model.threshold_:.3f}: {score:.3f}")
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ThresholdDisplay.from_estimator(model, images_test, y_test, ax=ax)
plt.show()

# %%
# The highest recall with a precision of at least 0.9
# ---------------------------------------------------
# One rate is the metric, another is a constraint. The training data meet the constraint
# exactly. New rows meet it up to chance, so ask for a little more than you need. If no
# classifier meets the constraint, an error says how close one comes, or a warning says
# that the class is never predicted.

y, y_test = digits == 3, digits_test == 3
model = ComplexMetricClassifier(
    reader, metric="recall", constraints=Precision(at_least=0.9), cv=5
).fit(pixels, y)
predicted = model.predict(pixels_test)
precision, recall = precision_score(y_test, predicted), recall_score(y_test, predicted)

# %%
# The gray background marks thresholds with too low a precision.

likely = model.estimator_.predict(pixels_test)
likely_precision = precision_score(y_test, likely)
likely_recall = recall_score(y_test, likely)
print(f"at .5:        precision {likely_precision:.3f}, recall {likely_recall:.3f}")
print(f"most recall:  precision {precision:.3f}, recall {recall:.3f}")
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ThresholdDisplay.from_estimator(model, pixels_test, y_test, ax=ax)
plt.show()

# %%
# Costs that differ from row to row
# ---------------------------------
# A missed case costs the patient the years until age 85. An unnecessary treatment costs
# 15. ``costs[r, i, j]`` is the cost of predicting class j for row r if its class is i.
# These costs are also known for new patients, so ``predict`` takes them as well. Costs
# that are known only in hindsight have the shape (n, 2): see :ref:`guide-costs`. For
# loans with their amounts, try ``fetch_openml("credit-g", version=1)``.

costs, costs_test = np.zeros((len(worse), 2, 2)), np.zeros((len(worse_test), 2, 2))
costs[:, 0, 1] = costs_test[:, 0, 1] = 15
costs[:, 1, 0] = 85 - patients["age"]
costs_test[:, 1, 0] = 85 - patients_test["age"]
model = ComplexMetricClassifier(clinic, metric="expected_cost")
model.fit(patients, worse, costs=costs)
treated = model.predict(patients_test, costs=costs_test)
cost = expected_cost_score(worse_test, treated, costs=costs_test)

# %%
# The younger the patient, the lower the probability at which treatment pays off.

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
fig.legend(loc="outside upper center", ncols=3)
plt.show()

# %%
# Rejecting uncertain rows: leave them to a person
# ------------------------------------------------
# For held-out rows we know whether the reader is right. Predicting this from its two
# largest probabilities is a binary classification problem. Of all rules that accept at
# least 70% of the rows, we take the one whose accepted rows are right most often.

P = cross_val_predict(reader, images, letters, method="predict_proba")
is_right = np.unique(letters)[P.argmax(axis=1)] == letters
sure = np.sort(P, axis=1)[:, -2:]
gate = ComplexMetricClassifier(
    metric="precision", constraints=SelectionRate(at_least=0.7)
)
gate.fit(sure, is_right)
P_test = reader.fit(images, letters).predict_proba(images_test)
accepted = gate.predict(np.sort(P_test, axis=1)[:, -2:])

# %%
# The plot shows the accuracy for each share of accepted rows, cross-validated on the
# training half. This share is a parameter of the constraint, and has the same name in
# ``get_params`` and ``GridSearchCV``.

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
# Fairness: equalized odds
# ------------------------
# In both groups, the same share of the patients who get worse should be found, and the
# same share of the others should be alarmed. The rule has thresholds for each group, so
# ``predict`` needs the groups. For a larger data set, try ``fetch_openml("adult",
# version=2)``, with the columns ``sex`` and ``race``.

odds = EqualizedOdds(slack=0.05, reference="groups")
model = ComplexMetricClassifier(clinic, metric="accuracy", constraints=odds)
model.fit(patients, worse, sensitive_features=group)
predicted = model.predict(patients_test, sensitive_features=group_test)
difference = equalized_odds_difference(
    worse_test, predicted, sensitive_features=group_test
)

# %%
# In training, the odds differ by at most 0.05. Here they may differ more by chance,
# with 221 patients. The plot shows the recalls of both classes that can be achieved in
# training. The shaded part satisfies the constraint.

likely = model.estimator_.predict(patients_test)
likely_difference = equalized_odds_difference(
    worse_test, likely, sensitive_features=group_test
)
accuracy = accuracy_score(worse_test, predicted)
likely_accuracy = accuracy_score(worse_test, likely)
print(f"{len(worse_test)} patients")
print(
    f"most probable   {likely_accuracy:.1%} right, odds differ by {likely_difference:.3f}"
)
print(f"equalized odds  {accuracy:.1%} right, odds differ by {difference:.3f}")
fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
AchievableSetDisplay.from_estimator(
    model, patients, worse, sensitive_features=group, path=False, ax=ax
)
plt.show()

# %%
# Fairness without knowing the group at prediction time
# -----------------------------------------------------
# With ``group_blind=True``, only ``fit`` needs the groups. The rule uses what a row
# says about group and label together. So it works with everything that calls
# ``predict(X)``, such as ``cross_val_predict`` and ``GridSearchCV``.

odds = EqualizedOdds(slack=0.05, reference="groups")
model = ComplexMetricClassifier(
    clinic, metric="accuracy", constraints=odds, group_blind=True
)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
params = {"sensitive_features": sex}
predicted = cross_val_predict(model, table, advanced, cv=folds, params=params)
difference = equalized_odds_difference(advanced, predicted, sensitive_features=sex)

# %%
# The plot shows how often each group is predicted to get worse, separately for those
# who do and those who do not.

likely = cross_val_predict(clinic, table, advanced, cv=folds)
likely_difference = equalized_odds_difference(advanced, likely, sensitive_features=sex)
accuracy = accuracy_score(advanced, predicted)
likely_accuracy = accuracy_score(advanced, likely)
print(
    f"most probable   {likely_accuracy:.1%} right, odds differ by {likely_difference:.3f}"
)
print(f"equalized odds  {accuracy:.1%} right, odds differ by {difference:.3f}")
bars = ["recall", "false alarms"]
for labels, title in ((likely, "most probable"), (predicted, "equalized odds")):
    fig, ax = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    for shift, value in ((-0.2, "one"), (0.2, "other")):
        rates = [labels[(sex == value) & (advanced == truth)].mean() for truth in (1, 0)]
        ax.bar(np.arange(2) + shift, rates, width=0.38, label=f"sex: {value}")
    ax.set_xticks(np.arange(2), bars)
    ax.set(title=title, ylabel="rate", ylim=(0, 1))
    ax.legend(fontsize="small")
plt.show()

# %%
# Ten groups, some of them small
# ------------------------------
# Is a letter a vowel, and is this recognized equally well at every position in the
# word? In training, the recall at each position can be brought within 0.05 of the
# overall recall. But the recall on new rows cannot be known that precisely from about
# fifty examples. ``constraint_confidence`` accounts for this. With so few there are none
# to hold out: the option ``constraint_calibration="uniform"`` tightens each constraint by
# the possible estimation error of its groups, and warns if this exceeds the slack.

y, y_test = np.isin(letters, list("aeiou")), np.isin(letters_test, list("aeiou"))
tenth, tenth_test = np.minimum(place, 9), np.minimum(place_test, 9)
parity = EqualOpportunity(slack=0.05, reference="overall")
model = ComplexMetricClassifier(reader, constraints=parity, constraint_confidence=0.95)
model.set_params(solver_options__constraint_calibration="uniform")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", UserWarning)
    model.fit(images, y, sensitive_features=tenth)
predicted = model.predict(images_test, sensitive_features=tenth_test)

# %%
# The gray bars show how far the recall of each position may differ from the overall
# recall, by a bound that holds with a probability of 0.95. This is the slack that you
# can promise. To promise less, merge groups or get more data.

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
# Which letters does a word contain, given the sum of their images? Each word has
# several of these labels. With a threshold of one half, rare labels are hardly ever
# predicted. Here each label gets its optimal threshold.

Y = MultiLabelBinarizer().fit_transform(texts)
sums = np.array([word.sum(axis=0) for word in words])
sums, sums_test, Y, Y_test = train_test_split(sums, Y, **half)
inner = OneVsRestClassifier(LogisticRegression(C=0.1, max_iter=1000))
model = MultilabelMetricClassifier(inner, metric="f1", average="macro", cv=5)
predicted = model.fit(sums, Y).predict(sums_test)
score = f1_score(Y_test, predicted, average="macro")

# %%
# The plot shows the F1 of each letter, rarest first.

likely = model.estimator_.predict(sums_test)
likely_score = f1_score(Y_test, likely, average="macro")
print(f"macro-F1 at .5: {likely_score:.3f}; with a threshold for each: {score:.3f}")
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
order = Y.sum(axis=0).argsort()
names = np.array(list("abcdefghijklmnopqrstuvwxyz"))[order]
for marker, labels, name in (
    ("x", likely, "at one half"),
    ("o", predicted, "at its threshold"),
):
    f1 = f1_score(Y_test, labels, average=None)[order]
    ax.plot(names, f1, marker, label=name)
ax.set(xlabel="letter", ylabel="F1")
ax.legend()
plt.show()

# %%
# Trading accuracy for the worst class
# ------------------------------------
# The task is to recognize digits from a single row of pixels. One of the digits is
# hardly ever found. ``Recall(at_least=0.4)`` applies to all ten classes, and the error
# rate is minimized under this constraint. ``metric="min_recall"`` goes further: it
# maximizes the worst recall.

row, row_test = pixels[:, 6:14], pixels_test[:, 6:14]
model = ComplexMetricClassifier(metric="accuracy", constraints=Recall(at_least=0.4))
predicted = model.fit(row, digits).predict(row_test)
accuracy = accuracy_score(digits_test, predicted)
worst = min_recall_score(digits_test, predicted)

# %%
# The plot shows which digits improve and which get worse.

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
# sphinx_gallery_thumbnail_number = 4

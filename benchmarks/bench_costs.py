"""Costs of each example beside empulse, on the data that it ships: churn and credit.

Mean cost on the test part (the less, the better; of three splits of 70 to 30), relative
to that of the best of the two constant decisions, and CPU seconds of fit and predict
together. All costs of new customers are known, so each classifier may use them when it
predicts. One logistic regression behind a StandardScaler is inside our classifier and
CSThresholdClassifier, which calibrates it by folds first.

Needs empulse and pandas in the interpreter that runs it, and does nothing without them.
"""

import warnings
from importlib.util import find_spec
from time import process_time

from _common import make_parser, np, print_table
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_structsvm import ComplexMetricClassifier
from sklearn_structsvm.metrics import expected_cost_score

SETS = {
    "churn": "load_churn_tv_subscriptions",
    "credit, PAKDD": "load_credit_scoring_pakdd",
    "credit, VUB": "load_vub_credit_scoring",
}
LOSS_GIVEN_DEFAULT = 0.75  # empulse's default


def load(name):
    """X, y and the costs (n, 2, 2) of [label, prediction]."""
    from empulse import datasets

    found = getattr(datasets, SETS[name])(backend="pandas")
    y = np.asarray(found.target).astype(int)
    given, costs = found.instance_costs, np.zeros((len(y), 2, 2))
    costs[:, 0, 1] = given["fp_cost"]
    if "fn_cost" in given:
        costs[:, 1, 0], costs[:, 1, 1] = given["fn_cost"], given["tp_cost"]
        costs[:, 0, 0] = given["tn_cost"]
    else:
        costs[:, 1, 0] = LOSS_GIVEN_DEFAULT * given["cl"]
    words = found.data.select_dtypes(exclude="number").columns
    to_numbers = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), list(words)),
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    return to_numbers.fit_transform(found.data).astype(float), y, costs


def as_keywords(costs):
    return {
        "tn_cost": costs[:, 0, 0], "fp_cost": costs[:, 0, 1],
        "fn_cost": costs[:, 1, 0], "tp_cost": costs[:, 1, 1],
    }  # fmt: skip


def ours(X, y, costs, X_test, costs_test, *, known):
    model = ComplexMetricClassifier(
        LogisticRegression(max_iter=1000), metric="expected_cost", cv=None
    )
    if known:
        return model.fit(X, y, costs=costs).predict(X_test, costs=costs_test)
    return model.fit(X, y, costs=costs[np.arange(len(y)), y]).predict(X_test)


def theirs(kind, with_costs):
    def run(X, y, costs, X_test, costs_test):
        from empulse import models

        if kind == "CSThresholdClassifier":
            model = models.CSThresholdClassifier(LogisticRegression(max_iter=1000))
        else:
            model = getattr(models, kind)()
        model.fit(X, y, **as_keywords(costs))
        told = as_keywords(costs_test) if with_costs else {}
        return model.predict(X_test, **told)

    return run


METHODS = {
    "ours, costs known when predicting": lambda *data: ours(*data, known=True),
    "ours, by features": lambda *data: ours(*data, known=False),
    "CSThresholdClassifier": theirs("CSThresholdClassifier", True),
    "CSLogitClassifier": theirs("CSLogitClassifier", False),
    "CSTreeClassifier": theirs("CSTreeClassifier", False),
    "CSForestClassifier": theirs("CSForestClassifier", False),
}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--splits", type=int, default=3)
    args = parser.parse_args()
    if find_spec("empulse") is None:
        print("[skipped: empulse is not installed]")
        return
    rows = []
    for name in SETS:
        X, y, costs = load(name)
        found = {}
        for seed in range(args.splits):
            train, test = train_test_split(
                np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y
            )
            scaler = StandardScaler().fit(X[train])
            parts = [scaler.transform(X[rows]) for rows in (train, test)]
            data = parts[0], y[train], costs[train], parts[1], costs[test]
            constant = min(
                expected_cost_score(y[test], np.full(len(test), j), costs=costs[test],
                                    labels=[0, 1])
                for j in (0, 1)
            )  # fmt: skip
            for method, run in METHODS.items():
                start = process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    guess = np.asarray(run(*data)).astype(int)
                seconds = process_time() - start
                cost = expected_cost_score(
                    y[test], guess, costs=costs[test], labels=[0, 1]
                )
                found.setdefault(method, []).append((cost / constant, seconds))
        for method, values in found.items():
            cost, seconds = np.mean(values, axis=0)[0], np.median(values, axis=0)[1]
            rows.append([name, method, f"{cost:.3f}", f"{seconds:.2f}"])
    print_table(["set", "classifier", "cost / constant", "CPU s"], rows)


if __name__ == "__main__":
    main()

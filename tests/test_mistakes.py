"""Mistakes that strangers make, as they typed them, and words of the answers.

An answer says what was given, where, and what to write instead. It names no class and no
module that nobody typed.
"""

import inspect
import pickle
import re
from io import StringIO

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from _seeds import new_rng
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import sklearn_structsvm as st
from sklearn_structsvm import (
    confusion,
    datasets,
    metrics,
    plotting,
    preprocessing,
    structures,
)
from sklearn_structsvm._utils.compat import StrOptions
from sklearn_structsvm._utils.mistakes import meant, with_plain_calls
from sklearn_structsvm._utils.scorers import SCORERS
from sklearn_structsvm._utils.tags import SCHEMES
from sklearn_structsvm.callbacks import EarlyStopping
from sklearn_structsvm.export import export_tagger
from sklearn_structsvm.inspection import check_data, explain, top_features
from sklearn_structsvm.solvers.confusion.named import SOLVERS
from sklearn_structsvm.structures import ChainStructure, grid_edges

# Base classes, paths of modules, and what Python prints of objects without a name.
UNTYPED = re.compile(
    r"RateConstraint|GroupParity|TokenVectorizer|Mixin|__init__|<class|object at 0x"
    r"|np\.(str|int|float)\w+\(|sklearn_structsvm\.(?!metrics|preprocessing|structures\.MISSING)"
)

# Later ones come first where names are the same.
MODULES = structures, confusion, datasets, plotting, preprocessing, metrics, st


def things():
    """What the calls name, for one seed."""
    rng = new_rng()
    rows = rng.standard_normal((60, 5))
    label = np.arange(60) % 2
    rows[:, 0] += 2.0 * label
    items = [rng.standard_normal((n, 3)) for n in (4, 2, 3, 4, 3, 2, 4, 3)]
    chains = [(x[:, 0] > 0).astype(int) for x in items]
    chains[0][:2] = 0, 1
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    sentences = [["the", "cat"], ["it"], ["a", "dog", "barks"]] * 2
    words = pd.DataFrame({"sentence": [0, 0, 1], "word": ["the", "cat", "it"]})
    chain = st.CRFClassifier("chain", tol=0.1).fit(items, chains)
    return {k: v for module in MODULES for k, v in vars(module).items()} | {
        "F": rows, "l": label, "g": np.array(["m", "f"])[np.arange(60) // 2 % 2],
        "names": np.where(label, "good", "bad"), "three": np.arange(60) % 3,
        "Y": (rng.random((60, 3)) < 0.5).astype(int), "X": items, "y": chains,
        "S": sentences, "tags": [["DET", "NOUN"], ["PRON"], ["DET", "NOUN", "VERB"]] * 2,
        "G": [(rng.standard_normal((4, 2)), edges)] * 4, "graph_y": [[0, 1, 0, 1]] * 4,
        "edges": edges, "words": words, "chain": chain, "dicts": [[{"w": "a"}]] * 6,
        "table": pd.DataFrame(rows[:, :2], columns=["age", "income"]).assign(sex="f"),
        "T": (T := pd.DataFrame(rows, columns=list("abcde"))), "T2": T[list("bacde")],
        "few": np.where(np.arange(60) < 9, "lost", "won"),
        "dates": pd.DataFrame({"day": pd.date_range("2026-01-01", periods=60)}),
        "fair": ComplexMetric(constraints=metrics.EqualOpportunity(slack=0.9)),
        "CM": ComplexMetric, "CRF": st.CRFClassifier, "SVM": st.BCFWClassifier,
        "Stacked": st.StackedStructureClassifier(LogisticRegression(), cv=2),
        "bad": ["O", "I-X", "O", "B-X"], "metrics": metrics,
        "cross_val_score": cross_val_score, "StringIO": StringIO,
        "GroupKFold": GroupKFold, "np": np, "pd": pd, "sparse": sparse,
        "datasets": datasets, "pickle": pickle,
        "sklearn": sklearn.metrics,
        "explain": explain, "top_features": top_features, "grid_edges": grid_edges,
        "LogisticRegression": LogisticRegression, "LinearRegression": LinearRegression,
        "LinearSVC": LinearSVC, "StandardScaler": StandardScaler,
        "GridSearchCV": GridSearchCV, "make_pipeline": make_pipeline,
        "ChainStructure": ChainStructure, "export_tagger": export_tagger,
        "EarlyStopping": EarlyStopping, "check_data": check_data,
        "tagger": make_pipeline(preprocessing.SequenceTransformer(),
                                st.CRFClassifier("chain", tol=0.1)),
    }  # fmt: skip


ComplexMetric = st.ComplexMetricClassifier

# The call, the type of its error or warning, and words that must occur, between "&".
MISTAKES = [
    # Values that are misspelt, or of another library.
    ("CRF('chian').fit(X, y)", ValueError, "structure & CRFClassifier & mean 'chain'?"),
    ("CRF('Chain').fit(X, y)", ValueError, "mean 'chain'?"),
    ("CRF(ChainStructure).fit(X, y)", ValueError, "write ChainStructure()"),
    ("CRF(None).fit(X, y)", ValueError, "one of 'auto', 'binary' & Got None"),
    ("CRF('chain', solver='L-BFGS').fit(X, y)", ValueError, "mean 'lbfgs'?"),
    ("CRF('chain', solver_options={'decoding': 'viterbi'}).fit(X, y)", ValueError,
     "one of 'map', 'mbr'"),
    ("PragamClassifier('hinge').fit(F, l)", ValueError, "'structure' & Got 'hinge'"),
    ("bcfw_path(F, l, step='pair-wise')", ValueError, "bcfw_path & mean 'pairwise'?"),
    ("CM(metric='gmean').fit(F, l)", ValueError, "metric='gmean' & mean 'g_mean'?"),
    ("CM(metric='roc_auc').fit(F, l)", ValueError, "probabilities & 'balanced_accuracy'"),
    ("CM('f1').fit(F, l)", ValueError, "'estimator' & Got 'f1'"),
    ("MultilabelMetricClassifier('f1').fit(F, Y)", ValueError, "'estimator' & Got 'f1'"),
    ("CRFClassifierCV('chain', refit='1se').fit(X, y)", ValueError, "'one_standard_err"),
    ("CRFClassifierCV('chain', scoring='tokenacc').fit(X, y)", ValueError,
     "scoring='tokenacc' is unknown & mean 'token_accuracy'?"),
    ("BCFWClassifierCV('chain', scoring='f1').fit(X, y)", ValueError,
     "scoring='f1' & sequences & 'token_accuracy'"),
    ("CRF(ChainStructure(transitions='boi')).fit(X, y)", ValueError, "mean 'bio'?"),
    ("split_sequences(words, 'sentense')", ValueError, "mean 'sentence'?"),
    ("EarlyStopping(validation_fraction=20)", ValueError, "Stopping must & write 0.2"),
    ("convert_tags(tags, 'BIO', 'bioes')", ValueError, "source & mean 'bio'?"),
    ("top_features(chain, 2)", ValueError, "one of the classes [0, 1]; got 2"),
    # Parameters that are misspelt, of another estimator or another library.
    ("CRF(c1=0.1)", TypeError, "CRFClassifier has no parameter 'c1' & C, l1_ratio"),
    ("CRF('chain', max_iterations=100)", TypeError, "mean 'max_iter'?"),
    ("CRFClassifierCV('chain', C=1.0)", TypeError, "no parameter 'C' & mean 'Cs'?"),
    ("SubLBFGSClassifier(structure='chain')", TypeError, "no parameter 'structure'"),
    ("CM(constraint=EqualOpportunity())", TypeError, "mean 'constraints'?"),
    ("CM(LogisticRegression(), 'f1', (), 'plugin')", TypeError,
     "only estimator, metric, constraints by position & randomized="),
    ("StackedStructureClassifier()", TypeError, "needs the argument 'estimator'"),
    ("EqualOpportunity(tol=0.1)", TypeError, "EqualOpportunity has no & slack"),
    ("Recall(at_leest=0.9)", TypeError, "Recall has no & mean 'at_least'?"),
    ("Recall(0.9)", TypeError, "Recall takes nothing by position & Recall(at_least="),
    ("ChainStructure(biass=False)", TypeError, "ChainStructure & mean 'bias'?"),
    ("WordFeatures(windows=2)", TypeError, "WordFeatures & mean 'window'?"),
    ("bcfw_path(X, y, Cs=[1.0])", TypeError, "bcfw_path has no parameter 'Cs'"),
    ("crf_path(X)", TypeError, "crf_path needs the argument 'y'"),
    ("chain.predict(X, min_len=2)", TypeError, "CRFClassifier.predict has no parameter "
     "'min_len' & mean 'min_length'?"),
    ("chain.score(X, y, min_length=2)", TypeError, "CRFClassifier.score & It has X, y"),
    ("chain.score(X)", TypeError, "CRFClassifier.score needs the argument 'y'"),
    ("chain.predict(X, X=X)", TypeError, "CRFClassifier.predict got 'X' twice"),
    ("MultilabelMetricClassifier().predict(F, 3)", TypeError, "only X by position."),
    ("chain.predict(X, 3)", TypeError, "predict takes only X by position & allowed=..."),
    ("chain.fit(X, y, C=3)", TypeError, "CRFClassifier.fit & write CRFClassifier(C=...)"),
    ("CRF.fit(X, y)", TypeError, "fit is a method of objects & parentheses"),
    ("fair.fit(F, l, sensitive_features=g).score(F)", TypeError,
     "ComplexMetricClassifier.score needs the argument 'y'"),
    ("SequenceTransformer().transform(S, scale=1)", TypeError, "no parameter 'scale'"),
    ("SequenceTransformer().fit_transform(S, scale=1)", TypeError,
     "Parameters of fit need a transformer; got ['scale']"),
    ("SequenceTransformer().fit(iter(S), scale=1)", TypeError, "need a transformer"),
    ("CRFClassifierCV('chain').fit(X)", TypeError, "CRFClassifierCV.fit needs & 'y'"),
    ("datasets.read_conll('a.conll', n_sentences=3)", TypeError,
     "read_conll has no parameter 'n_sentences'. It has file, columns"),
    ("entity_f1_score(tags, tags, averages='macro')", TypeError, "mean 'average'?"),
    ("g_mean_score(l, l, weights=l)", TypeError, "g_mean_score & It has y_true, y_pred"),
    ("ThresholdDisplay.from_estimator(fair, F)", TypeError,
     "ThresholdDisplay.from_estimator needs the argument 'y'"),
    ("CRF('chain', max_tim=3)", TypeError, "CRFClassifier has no & mean 'max_time'?"),
    ("CRF('chain', max_time=3)", TypeError, "write solver_options={'max_time': 3}"),
    ("CRF().set_params(max_time=3)", ValueError, "write solver_options={'max_time': 3}"),
    ("CRF(solver_options={'maxtime': 3}).fit(F, l)", ValueError, "mean 'max_time'?"),
    ("CRF(solver_options={'C': 1}).fit(F, l)", ValueError, "parameter of & write C=1"),
    ("CRF(solver_options={'sampling': 'gaps'}).fit(F, l)", ValueError,
     "'sampling' & solver_options of CRFClassifier & mean 'gap'?"),
    ("CRF().set_params(struct='chain')", ValueError, "CRFClassifier & mean 'structure'?"),
    ("GridSearchCV(SVM(), {'c': [1, 2]}).fit(F, l)", ValueError, "'c' & mean 'C'?"),
    ("GridSearchCV(fair, {'slack': [0.1]}).fit(F, l)", ValueError,
     "mean 'constraints__slack'?"),
    ("CM(solver_options={'stepp': 1}).fit(F, l)", ValueError, "'stepp' & solver_options"),
    ("fair.fit(F, l, sensitive_feature=g)", TypeError, "mean 'sensitive_features'?"),
    ("fair.fit(F, l, sensitive_features=g).predict(F, sensitive_feature=g)", TypeError,
     "predict got & mean 'sensitive_features'?"),
    ("CM(LogisticRegression()).fit(F, l).predict(F, threshold=0.3)", TypeError,
     "predict has no parameter 'threshold' & LogisticRegression & It has X, sens"),
    ("CM(LogisticRegression()).fit(F, l, epochs=3)", TypeError, "fit has no parameter"),
    ("MultilabelMetricClassifier().fit(F, Y).score(F, Y, sample_weights=l)", TypeError,
     "score got & mean 'sample_weight'?"),
    ("fair.fit(F, l, groups=g)", TypeError, "sensitive_features"),
    # Metrics and constraints.
    ("CM(metric=GMean).fit(F, l)", TypeError, "write GMean()"),
    ("CM(metric=None).fit(F, l)", TypeError, "'f1' & FBeta(beta=2) & got None"),
    ("CM(metric=np.mean).fit(F, l)", TypeError,
     "metric=mean must be a score of (y_true, y_pred) & labels 0, 1; & 'f1'"),
    ("CM(metric=max).fit(F, l)", TypeError, "metric=max must be a score & it fails"),
    ("CM(metric=sklearn.f1_score).fit(F, names)", TypeError,
     "pos_label=1 & make_scorer(f1_score, ...)"),
    ("CM(metric=sklearn.zero_one_loss).fit(F, l)", ValueError,
     "is a loss. Pass make_scorer(zero_one_loss, greater_is_better=False)"),
    ("CRFClassifierCV('chain', scoring='entity_f1').fit(X, y)", ValueError,
     "needs tags & y contains 0 & 'token_accuracy'"),
    ("CRFClassifierCV('chain', scoring=entity_f1_score).fit(X, y)", ValueError,
     "write scoring='entity_f1'"),
    ("CRFClassifierCV('chain', scoring=g_mean_score).fit(X, y)", ValueError,
     "make_scorer(g_mean_score)"),
    ("CRFClassifierCV('chain', scoring=GMean).fit(X, y)", ValueError,
     "write scoring=GMean().scorer()"),
    ("CRFClassifierCV('chain', scoring=np.mean).fit(X, y)", TypeError,
     "a name, such as 'token_accuracy' & (estimator, X, y)"),
    ("LinearLoss(np.eye(2), pos_label=1)", TypeError, "LinearLoss({(label, prediction)"),
    ("CM(metric=EqualOpportunity()).fit(F, l)", TypeError,
     "write constraints=EqualOpportunity(slack=0.05)"),
    ("CM(constraints='equal_oportunity').fit(F, l)", TypeError,
     "Write EqualOpportunity(slack=0.05)"),
    ("CM(constraints=EqualOpportunity).fit(F, l)", TypeError,
     "the class EqualOpportunity. Write EqualOpportunity(slack=0.05)"),
    ("CM(constraints={'recall': 0.9}).fit(F, l)", TypeError, "Recall(at_least=0.9)"),
    ("CM(constraints=demographic_parity_difference).fit(F, l)", TypeError,
     "Write DemographicParity(slack=0.05)"),
    ("CM(constraints=GMean()).fit(F, l)", TypeError, "MetricBound(GMean(), at_most=...)"),
    ("CM(constraints=[0.1]).fit(F, l)", TypeError, "got 0.1 & EqualOpportunity"),
    ("CM(constraints=EqualOpportunity()).fit(F, l)", ValueError,
     "EqualOpportunity(slack=0.05) & pass sensitive_features to fit"),
    ("CM(constraints=Recall(at_least=0.5, pos_label='god')).fit(F, names)", ValueError,
     "pos_label='god' & mean 'good'?"),
    ("CM(metric=FBeta(pos_label='1')).fit(F, l)", ValueError, "[0, 1] & mean 1?"),
    ("CM(constraints=Recall(at_least=90, pos_label=1)).fit(F, l)", ValueError,
     "got 90 & write 0.9"),
    ("CM(constraints=EqualOpportunity(slack=5)).fit(F, l, sensitive_features=g)",
     ValueError, "got 5 & write 0.05"),
    ("CM(constraints=Recall(pos_label=1)).fit(F, l)", ValueError, "needs at_least"),
    ("CM(constraints=[Recall(at_least=0.9, pos_label=1), SelectionRate(at_most=0.1, "
     "pos_label=1)]).fit(F, l)", ValueError,
     "No classifier meets Recall(at_least=0.9 & SelectionRate(at_most=0.1"),
    ("CM(constraints=Recall(at_least=0.5, pos_label=1, group='male')).fit(F, l, "
     "sensitive_features=g)", ValueError, "group='male' & ['f', 'm']"),
    ("CM(constraints=EqualOpportunity(bound='diff')).fit(F, l, sensitive_features=g)",
     ValueError, "bound must be one of 'difference', 'ratio'"),
    ("CM(constraint_confidence=95).fit(F, l)", ValueError, "Got 95 & write 0.95"),
    ("ConformalClassifier(confidence_level=90).fit(F, l)", ValueError, "write 0.9"),
    ("fair.fit(F, l, sensitive_features='sex')", TypeError, "X['sex'] & ['sex']"),
    ("fair.fit(F, l, sensitive_features=g[:50])", ValueError, "50 rows, but X has 60"),
    ("fair.fit(F, l, sensitive_features=F[:, 0])", ValueError, "60 groups & bin them"),
    ("fair.fit(F, l, sensitive_features=np.where(l, np.nan, 1.0))", ValueError,
     "sensitive_features has missing values"),
    ("fair.fit(F, l, sensitive_features=g).predict(F)", ValueError,
     "pass sensitive_features"),
    ("fair.fit(F, l, sensitive_features=g).predict(F, sensitive_features=l)", ValueError,
     "sensitive_features contains 0 & 'f', 'm'"),
    ("fairness_report(CM().fit(F, l), F, l)", TypeError, "sensitive_features"),
    ("ConformalClassifier(condition='group').fit(F, l)", ValueError,
     "pass sensitive_features to fit"),
    ("CM().fit(F, l, g)", ValueError, "'m'. Pass groups by name: fit(X, y, sensitive_"),
    ("CRFClassifierCV('chain').fit(X, y, ['a'] * 8)", ValueError, "y, groups=...)."),
    ("SVM(class_weight={'godo': 2}).fit(F, names)", ValueError, "'godo' & mean 'good'?"),
    ("Stacked.fit(X, [np.full(len(v), 7) for v in y])", ValueError, "one label only, 7"),
    ("CM(metric='f1').fit(F, few)", ValueError, "rarest & pos_label='lost'."),
    ("CM(constraints=Recall(at_least=0.5)).fit(F, few)", ValueError, "pos_label='lost'"),
    # The wrong estimator for the job, or one that is not fitted.
    ("CM(LinearSVC()).fit(F, l)", TypeError, "predict_proba & CalibratedClassifierCV"),
    ("CM(LinearRegression()).fit(F, l)", TypeError, "predict_proba & LinearRegression()"),
    ("CM().fit(X, y)", ValueError, "one label per row & CRFClassifier"),
    ("CM().fit(F, Y)", ValueError, "y[0] has 3 & MultilabelMetricClassifier"),
    ("CM().fit(F, F[:, 0])", ValueError, "continuous"),
    ("CM().fit(F, np.zeros(60))", ValueError, "only one class, [0.0]"),
    ("MultilabelMetricClassifier().fit(F, l)", ValueError, "ComplexMetricClassifier"),
    ("MultilabelMetricClassifier(LogisticRegression()).fit(F, Y)", ValueError,
     "LogisticRegression takes one label per row & y has 3 & OneVsRestClassifier(Logistic"
     " & MultiOutputClassifier(Logistic"),
    ("MultilabelMetricClassifier(make_pipeline(StandardScaler(), LogisticRegression()), "
     "cv=None).fit(F, Y)", ValueError, "Pipeline & OneVsRestClassifier(Pipeline(...))"),
    ("SubLBFGSClassifier().fit(X, y)", ValueError, "one row of X & BCFWClassifier"),
    ("SubLBFGSClassifier('roc_auc').fit(F, three)", ValueError, "two classes"),
    ("SubLBFGSClassifier('precision_at_k').fit(F, l)", ValueError, "requires k"),
    ("SVM('binary').fit(F, three)", ValueError, "3 classes & structure='auto'"),
    ("SVM('multilabel').fit(F, l)", ValueError, "structure='auto'"),
    ("SVM('multiclass').fit(X, y)", ValueError, "structure='chain'"),
    ("CRF('chain').fit(F, l)", ValueError, "structure='auto'"),
    ("CRF('chain').fit(G, graph_y)", ValueError, "GraphStructure()"),
    ("StackedStructureClassifier(CRF(), LogisticRegression()).fit(X, y)", TypeError,
     "final_estimator & CRFClassifier('chain') & got LogisticRegression()"),
    ("cross_val_predict_proba(SVM('chain'), X, y)", TypeError,
     "predict_proba & CRFClassifier"),
    ("explain(SVM(tol=0.1).fit(F, l), F[0])", TypeError, "ChainStructure"),
    ("ThresholdDisplay.from_estimator(CM().fit(F, three), F, three)", ValueError,
     "two classes; got 3"),
    ("CRF('chain').predict(X)", NotFittedError, "CRFClassifier & not fitted"),
    ("explain(CRF('chain'), X[0])", NotFittedError, "not fitted"),
    ("export_tagger(chain, 'tagger.pkl')", ValueError, "'.npz'"),
    # Wrong order, forgotten arguments, wrong lengths.
    ("CM().fit(l, F)", ValueError, "swapped & fit(X, y)"),
    ("SVM().fit(l, F)", ValueError, "swapped & fit(X, y)"),
    ("CRF('chain').fit(y, X)", ValueError, "swapped & fit(X, y)"),
    ("ConformalClassifier().fit(l, F)", ValueError, "swapped & fit(X, y)"),
    ("StackedStructureClassifier(LogisticRegression()).fit(y, X)", ValueError,
     "swapped & fit(X, y)"),
    ("MultilabelMetricClassifier().fit(l, F)", ValueError, "swapped & fit(X, y)"),
    ("MultilabelMetricClassifier().fit(Y, F)", ValueError, "swapped & fit(X, y)"),
    ("fairness_report(fair.fit(F, l, sensitive_features=g), l, F, sensitive_features=g)",
     ValueError, "swapped & fairness_report(estimator, X, y)"),
    ("CRF('chain').fit(X)", TypeError, "'y'"),
    ("CRF('chain').fit(X, None)", ValueError, "requires y"),
    ("check_data(y, X)", ValueError, "swapped & fit(X, y)"),
    ("CRFClassifierCV('chain', cv=50).fit(X, y)", ValueError, "cv=50 needs at least as "
     "many examples"),
    ("CRFClassifierCV('chain').fit(X[:3], y[:3])", ValueError, "cv=5 needs at least as "),
    ("StackedStructureClassifier(LogisticRegression(), cv=9).fit(X, y)", ValueError,
     "cv=9 needs as many labeled items, and there are 8"),
    ("cross_val_predict_proba(CRF('chain'), X, y, cv=9)", ValueError, "cv=9 needs"),
    ("CM(cv=31).fit(F, l)", ValueError, "cv=31 cannot be greater & members in each"),
    ("MultilabelMetricClassifier(cv=100).fit(F, Y)", ValueError, "cv=100 needs at least"),
    ("CRF('chain').fit(X, y[:-1])", ValueError, "same length; got 8 and 7"),
    ("CRF('chain').fit(X, [v[1:] for v in y])", ValueError,
     "y[0] has 3 labels for the 4 positions of X[0]"),
    ("CRF('chain').fit(X, np.concatenate(y))", ValueError, "list of labels for X[0]"),
    ("CRF('chain').fit(X, y, sample_weight=[1.0, 2.0])", ValueError,
     "sample_weight & (8,) & (2,)"),
    ("CRF('chain').fit(X, y, sample_weight=[np.ones(len(v)) for v in y])", ValueError,
     "one number for each & sample_weight[0] & (4,) & pairs (labels, weights)"),
    ("SVM().fit(F, l, sample_weight='balanced')", ValueError,
     "got 'balanced' & class_weight"),
    ("SVM().fit(F, l, sample_weight=-np.ones(60))", ValueError,
     "sample_weight[0] & -1.0"),
    ("entity_f1_score(tags, tags[:-1])", ValueError, "6 sequences but y_pred has 5"),
    ("expected_cost_score(l, l, costs=[[0, 1]])", ValueError, "costs & (60, 2)"),
    ("CM(metric='expected_cost').fit(F, l)", ValueError, "pass costs to fit"),
    # Wrong containers, shapes and scales.
    ("CRF('chain').fit(X[0], y[0])", ValueError, "use [X]"),
    ("chain.predict(X[0])", ValueError, "use [X]"),
    ("chain.predict([x[:, :2] for x in X])", ValueError,
     "X[0] has 2 features & 3 in fit"),
    ("CRF('chain').fit([x[:, 0] for x in X], y)", ValueError, "X[0] must be 2-D"),
    ("CRF('chain').fit([X[0], X[1][:, :2]], y[:2])", ValueError, "X[1] has 2 features"),
    ("CRF('chain').fit((x for x in X), y)", ValueError, "pass list(X)"),
    ("CRF('chain').fit(S, tags)", ValueError, "X[0][0] is 'the' & WordFeatures()"),
    ("CRF('chain').fit(words[['sentence']], words['word'])", ValueError,
     "DataFrame & split_sequences"),
    ("CRF('chain').fit([x * np.nan for x in X], y)", ValueError, "X[0] contains NaN"),
    ("CRF('chain').fit(X, [v + 0.5 for v in y])", ValueError, "y[0] & floating-point"),
    ("CRF('chain').fit(X, X)", ValueError, "y[0] must be a 1-D array of labels"),
    ("tagger.fit(['the cat', 'it'], tags[:2])", TypeError, "[x.split() for x in X]"),
    ("tagger.fit(S, ['DET NOUN'] * 6)", ValueError, "[labels.split() for labels in y]"),
    ("tagger.fit(S, sum(tags, []))", ValueError,
     "y[0] is 'DET' & list of labels for X[0]"),
    ("tagger.fit(words[['word']], tags)", TypeError, "DataFrame & split_sequences"),
    ("tagger.fit(S, tags).predict(['the', 'cat'])", TypeError, "use [sequence]"),
    ("tagger.fit(S, [['DET', 1], *tags[1:]])", ValueError, "Make all of them strings"),
    ("tagger.fit([[{'w': None}]] * 6, tags)", ValueError, "X[0][0] has None as 'w'"),
    ("SequenceTransformer().fit(X)", TypeError, "SequenceTransformer(StandardScaler())"),
    ("SequenceTransformer(StandardScaler()).fit(dicts)", TypeError, "{'w': 'a'}"),
    ("WordFeatures().fit(['the cat'])", TypeError, "[x.split() for x in X]"),
    ("entity_f1_score(['B-X', 'O'], ['B-X', 'O'])", ValueError, "pass [y_true]"),
    ("entity_f1_score(['B-X O'], ['B-X O'])", ValueError, ".split()"),
    ("entity_f1_score(y, y)", ValueError, "y_true[0][0] & 'B-NP'"),
    ("token_accuracy_score(l, l)", ValueError, "pass [y_true]"),
    ("g_mean_score(tags, tags)", ValueError, "token_accuracy_score"),
    ("token_log_loss([['a']], [np.ones((1, 1))], labels={'a'})", ValueError,
     "labels & order"),
    ("explain(chain, X)", ValueError, "takes one, such as X[0]"),
    ("SVM('graph').fit([x for x, _ in G], graph_y)", ValueError, "(features, edges)"),
    ("SVM('graph').fit([(x, e.T) for x, e in G], graph_y)", ValueError, "edges.T"),
    ("SVM('graph').fit([(x, np.eye(4)) for x, _ in G], graph_y)", ValueError,
     "np.argwhere"),
    ("SVM('graph').fit([(x, e + 1) for x, e in G], graph_y)", ValueError,
     "X[0][1] has the edge (3, 4) & 0 to 3"),
    ("SVM('tree').fit(G, graph_y)", ValueError, "parents & structure='graph'"),
    ("SVM('tree').fit([(x, [1, 2, 3, 0]) for x, _ in G], graph_y)", ValueError, "cycle"),
    ("SVM('multilabel').fit(F, [['a'], ['b', 'c']] * 30)", ValueError,
     "MultiLabelBinarizer"),
    ("MultilabelMetricClassifier().fit(F, [{'a'}] * 60)", ValueError,
     "MultiLabelBinarizer"),
    ("MultilabelMetricClassifier().fit(F, 3 * Y)", ValueError, "0 and 1 only; got 3"),
    ("SVM().fit(table, l)", ValueError, "Column 'sex' & OneHotEncoder"),
    ("CM().fit(table, l)", ValueError, "Column 'sex' & OneHotEncoder"),
    ("CRF('chain').fit([table[:4]] * 2, [[0, 1] * 2] * 2)", ValueError,
     "Column 'sex' of X[0] & SequenceTransformer(make_column_transformer("),
    ("Stacked.fit(X, [1] * 8)", ValueError,
     "y[0] is 1, but must be a list of labels, one for each row of X[0]"),
    ("Stacked.fit(X, ['ab'] * 8)", ValueError, "y[0] is one string & .split()"),
    ("CRF('chain').fit(X, [1] * 8)", ValueError, "y[0] is 1 & each position of X[0]"),
    ("Stacked.fit(S, tags)", ValueError, "X[0][0] is 'the' & make_pipeline(WordFeat"),
    ("Stacked.fit(dicts, [[0], [1]] * 3)", ValueError, "X[0][0] is {'w': 'a'} & Sequen"),
    ("Stacked.fit([table[:4]] * 4, [[0, 1] * 2] * 4)", ValueError, "Column 'sex' & One"),
    ("Stacked.fit([dates[:4].assign(n=1.0)] * 4, [[0, 1] * 2] * 4)", ValueError,
     "Column 'day' & dt.total_seconds()"),
    ("CM(LinearRegression()).fit(F, l)", TypeError, "It is a regressor"),
    ("MultilabelMetricClassifier(LinearRegression()).fit(F, Y)", TypeError,
     "It is a regressor"),
    ("StackedStructureClassifier(LinearRegression()).fit(X, y)", TypeError,
     "It is a regressor"),
    ("ConformalClassifier(LinearRegression()).fit(F, l)", TypeError, "It is a regressor"),
    ("CM(LinearRegression(), solver_options={'lmo': 'weighted'}).fit(F, l)", TypeError,
     "It is a regressor"),
    ("ConformalClassifier(cv=5).fit(F, [1] + [0] * 59)", ValueError,
     "Only the class [0] is left for training"),
    ("CM(LogisticRegression(), cv='prefit').fit(F, l)", NotFittedError,
     "cv='prefit' & LogisticRegression is not fitted"),
    ("MultilabelMetricClassifier(LogisticRegression(), cv='prefit').fit(F, Y)",
     NotFittedError, "cv='prefit'"),
    ("StackedStructureClassifier(LogisticRegression(), cv='prefit').fit(X, y)",
     NotFittedError, "cv='prefit'"),
    ("ConformalClassifier(LogisticRegression(), cv='prefit').fit(F, l)", NotFittedError,
     "cv='prefit'"),
    ("cross_val_score(fair, F, l, error_score='raise')", ValueError,
     "params={'sensitive_features': ...} & enable_metadata_routing=True"),
    ("fair.fit(F, l, sensitive_features=g).predict(F)", ValueError,
     "params={'sensitive_features': ...}"),
    ("SegmentsDisplay.from_estimator(chain, X[0], times=list(dates['day'][:4]))",
     ValueError, "times & np.asarray(times, 'datetime64[ms]').astype(float)"),
    ("segment_f1_score([[None, 1]], [[1, 1]])", ValueError,
     "y_true, y_pred = ([[b for & MISSING"),
    ("datasets.read_conll(['a O', '# id = 7', 'b O'])", ValueError,
     "line 2 has 4 & not line.startswith('# ')"),
    ("CRF(ChainStructure(transitions='bio')).fit(X, [bad[: len(x)] for x in X])",
     ValueError, "convert_tags(y, 'bio', 'bio', repair=True)"),
    ("convert_tags([bad], 'bio', 'bioes')", ValueError, "repair=True"),
    ("SVM().fit(dates, l)", ValueError, "Column 'day' & dates & dt.total_seconds()"),
    ("WindowFeatures(time='day').fit([dates])", ValueError, "Column 'day' & dates"),
    ("SVM(C='1').fit(F, l)", ValueError, "'C' & Got '1'"),
    ("SVM(C=0).fit(F, l)", ValueError, "'C' & (0.0, inf) & Got 0"),
    ("grid_edges(3)", ValueError, "(rows, columns)"),
    ("datasets.read_conll('nothing.conll')", FileNotFoundError, "nothing.conll"),
    ("CM().fit(T, l).predict(T.iloc[3])", ValueError, "for one row write X.loc[[3]]."),
    ("SVM().fit(T, l).score(T.iloc[3], l[:1])", ValueError, "row write X.loc[[3]]."),
    ("SVM().fit(T['a'], l)", ValueError, "for one column X[['a']]"),
    ("CM().fit(T, l).predict(T2)", ValueError, "Write X[model.feature_names_in_]."),
    ("Stacked.fit([T[:6]] * 3, [l[:6]] * 3).predict([T2])", ValueError,
     "Write [x[model.feature_names_in_] for x in X]."),
    ("CRF('chain').fit([T[:6]] * 3, [l[:6]] * 3).predict([T2])", ValueError,
     "X[0] has its columns in another order: write [x[list(model.feature_names_in_)] f"),
    ("StackedStructureClassifier(LogisticRegression(), SVM('graph')).fit([(T[:4], edges)]"
     " * 6, [[0, 1, 0, 1]] * 6).predict([(T2[:4], edges)])", ValueError,
     "Write [(x[model.feature_names_in_], edges) for x, edges in X]."),
    ("CM(pos_label='bad')", TypeError, "write metric=FBeta(pos_label=...)"),
    ("CM(scoring='f1')", TypeError, "write metric=..."),
    ("linked_items(words, [('cat', 'it')], id='word', y=words.word)", TypeError,
     "y is the name of a column; got a Series."),
    ("SVM().fit(F, pd.DataFrame(Y, columns=list('abc'))).score(F, pd.DataFrame(Y, "
     "columns=list('abd')))", ValueError,
     "y lacks label 'c' and has the unknown label 'd'"),
    ("CRF('chain').fit([T[:6], T2[:6]], [l[:6]] * 2)", ValueError, "x[list(X[0])] for"),
    ("top_features(0, chain)", TypeError, "write top_features(estimator, label)"),
    ("export_tagger('tagger.npz', chain)", TypeError, "write export_tagger(model, path)"),
    ("ThresholdDisplay.from_estimator(F, l, fair)", TypeError,
     "ThresholdDisplay.from_estimator(estimator, X, y)."),
    ("datasets.read_conll('a O\\nb O\\n')", ValueError, "text & splitlines()"),
    ("datasets.read_conll(b'a O')", ValueError, "text & splitlines()"),
    ("datasets.write_conll(S, tags, 'a.conll')", TypeError, "write_conll(file, X, y)"),
    ("WindowFeatures().fit([pd.DataFrame({'kind': pd.Categorical([3, 4])})])", ValueError,
     "'kind' & no mean & SequenceTransformer(make_column_transformer((OneHotEncoder("),
    ("SVM().fit(table.assign(id=[f'c{i}' for i in range(60)]), l)", ValueError,
     "Column 'id' of X holds identifiers & drop(columns=['id']) & ['sex'])"),
    ("CM(metric='expected_cost').fit(F, l, costs=np.tile(1 - np.eye(2), "
     "(60, 1, 1))).rule_", AttributeError, "There is no rule_ & predict(X, costs=...)"),
    # Taken, with a warning.
    ("tagger.fit(tags, S)", UserWarning, "4 different words & X and y are not swapped"),
    ("datasets.write_conll(StringIO(), tags, S)", UserWarning, "are not swapped"),
    ("CM(constraint_confidence=0.9).fit(F, l)", UserWarning, "nothing & Recall("),
    ("Stacked.fit(X, y, groups=range(8))", UserWarning, "write cv=GroupKFold(2)"),
    ("CRFClassifierCV('chain', cv=GroupKFold(2)).fit(X, y, groups=range(8))",
     UserWarning, "Each example has a group of its own"),
    ("CRFClassifierCV(Cs=[1e-4, 1e-3], cv=2, scoring='neg_log_loss').fit(F, l)",
     UserWarning, "at an end of Cs & add 0.01, 0.1, 1."),
    ("CM().fit(T, pd.Series(l)[::-1])", UserWarning, "write y.loc[X.index], or y.to_"),
    ("fair.fit(T, l, sensitive_features=pd.Series(g)[::-1])", UserWarning,
     "sensitive_features has the index of X in another order"),
    ("SVM().fit(T, l).score(T, pd.Series(l)[::-1])", UserWarning, "write y.loc[X.index]"),
    ("SVM('chain', tol=0.1).fit([F[:3], F[4:7]], np.array([[0, 1, 0], [1, -1, -1]]))",
     UserWarning, "-1 is only at their ends & y[i][y[i] != -1]"),
    ("CRF('chain', tol=0.1).fit(X, [[None, *v[1:]] for v in y])", UserWarning,
     "None or NaN & y[0][0] & MISSING"),
    ("chain.score(X, [v + 5 for v in y])", UserWarning, "5, 6 & count as wrong"),
    ("chain.score(X, [list(map(str, v)) for v in y])", UserWarning, "'0' & mean "),
    ("CM().fit(F, l, costs=np.ones((60, 2)))", UserWarning, "ExpectedCost() & ignored"),
    ("CM(metric='accuracy', constraints=metrics.Precision(at_least=1.0)).fit(0 * F, "
     "np.arange(60) < 5)", UserWarning, "Precision(at_least=1.0) says nothing about"),
    ("datasets.read_conll('a O|b B-X|a O|b B-X||a O|c I-X|d BX|c I-X'.split('|'))",
     UserWarning, "in 'bio' (I-X in line 7, BX in line 8)"),
    ("make_pipeline(WordFeatures(), CRF('chain', tol=1.0)).fit([['O', 'X']] * 15, "
     "[[f'w{i}', f'v{i}'] for i in range(15)])", UserWarning, "X and y are not swapped"),
    ("CM(metric=LinearLoss(pd.DataFrame([[0, 1], [9, 0]]))).fit(0 * F, l)", UserWarning,
     "metric=LinearLoss(costs=[[0, 1], [9, 0]]) and the"),
    ("CM().fit(F, l, sensitive_features=g)", UserWarning,
     "EqualOpportunity(slack=0.05) & ignored"),
    ("SVM(max_iter=1).fit(F * [1, 1e4, 1, 1, 1], l)", ConvergenceWarning,
     "StandardScaler & column 1"),
    ("pickle.loads(pickle.dumps(chain).replace(__version__.encode(), b'0.0.9'))",
     UserWarning, "saved by & 0.0.9"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "choices", "choice"),
    [("chian", ["chain", "tree"], "chain"), ("L-BFGS", ["dual", "lbfgs"], "lbfgs"),
     ("-1", [-1, 1], -1), ("1", [-1, 1], 1), ("C", ["Cs", "cv"], "Cs"),
     ("labels", ["label"], "label"), ("C", ["cv"], None), ("-", ["s"], None),
     ("saga", ["dual", "newton"], None), ("", ["a"], None), (2, [1, 3], None)],
)  # fmt: skip
def test_what_was_meant_is_found_or_nothing_is(given, choices, choice):
    words = "" if choice is None else f" Did you mean {choice!r}?"
    assert meant(given, choices) == words


def test_errors_within_a_call_that_fits_stay_as_they_are():
    @with_plain_calls
    def call(first, /, second, *others, third=None, **more):
        raise TypeError("of its own")

    for args, given in (((1, 2), {}), ((1, 2, 3), {"other": 4}), ((1,), {"second": 2})):
        with pytest.raises(TypeError, match="of its own"):
            call(*args, **given)
    with pytest.raises(TypeError, match="call needs the argument 'second'"):
        call(1, third=3)


@pytest.fixture(scope="module")
def names():
    return things()


@pytest.mark.parametrize(
    ("call", "kind", "words"), MISTAKES, ids=[call for call, *_ in MISTAKES]
)
def test_a_mistake_gets_an_answer_that_helps(names, call, kind, words):
    catch = pytest.warns if issubclass(kind, Warning) else pytest.raises
    with catch(kind) as caught:
        eval(call, names)
    answer = str(caught[-1].message if catch is pytest.warns else caught.value)
    for part in words.split(" & "):
        assert part in answer
    assert not UNTYPED.search(answer)


# How a name is given to what takes one, by the start of the taker's own name.
CALLS = {
    "uncertainty": "{name}(chain, X, {given})",
    "entity_": "{name}(tags, tags, {given})",
    "demographic_|equal": "{name}(l, l, sensitive_features=g, {given})",
    "Jaccard|MacroF1": "CM(metric={name}({given})).fit(F, l)",
    "Equal|Demographic|PredictiveP":
        "CM(constraints={name}({given})).fit(F, l, sensitive_features=g)",
    "Hierarchical": "SVM({name}([(0, 1), (0, 2)], {given})).fit(F, Y)",
    "PairwiseM": "SVM({name}({given})).fit(F, Y)",
    "Pictorial": "SVM({name}([-1], {given})).fit(X, y)",
    "GraphS": "SVM({name}({given})).fit(G, graph_y)",
    "ChainS|TreeS": "SVM({name}({given})).fit(X, y)",
    "chunking_": "{name}([], {given})",
    "fetch_|make_": "{name}({given})",
    "ConvergenceDisplay": "ConvergenceDisplay.from_estimator(chain).plot({given})",
    "RegularizationPathDisplay.f": "{name}(chain, {given})",
    "RegularizationPathDisplay":
        "{name}(param_range=[1.0], values=[[1.0]], {given}).plot()",
    "Stacked": "{name}(LogisticRegression(), {given}).fit(X, y)",
    "bcfw_path|crf_path": "{name}(F, l, {given})",
    "": "{name}({given}).fit(F, l)",
}  # fmt: skip
# Where a name of a register is given.
REGISTERS = {
    "CM(metric={}).fit(F, l)": metrics.METRICS,
    "CRFClassifierCV('chain', scoring={}).fit(X, y)": SCORERS,
    "CRF(ChainStructure(transitions={})).fit(X, y)": SCHEMES,
    "convert_tags(tags, {}, 'bio')": SCHEMES,
    "entity_f1_score(tags, tags, scheme={})": SCHEMES,
}
DOCUMENTED = re.compile(r"^ *(\w+) : [^\n]*?\{((?:['\"][\w-]+['\"](?:, )?)+)\}", re.M)


def checked(table):
    """The names that a table of valid values has for each parameter."""
    lists = {name: own for name, own in table.items() if isinstance(own, list)}
    for name, allowed in lists.items():
        if names := [one.options for one in allowed if isinstance(one, StrOptions)]:
            yield name, names[0]


def optional(table):
    return checked({name: option.allowed for name, option in table.items()})


def takers():
    """What is public and takes parameters by its own name, methods included."""
    names = {name: vars(module)[name] for module in MODULES for name in module.__all__}
    for name, thing in sorted(names.items()):
        yield name, thing
        for own, method in vars(thing).items() if isinstance(thing, type) else ():
            # That of `set_output` is scikit-learn's.
            if own[0] != "_" and own != "set_output":
                yield f"{name}.{own}", method


def named_values():
    """Calls with a place for a name, and the names that belong there."""
    yield from REGISTERS.items()
    for solver, kinds in SOLVERS.items():
        for option, names in optional(kinds[0].OPTIONS):
            options = f"solver_options={{{{'solver': {solver!r}, {option!r}: {{}}}}}}"
            yield f"CM(metric='f1', {options}).fit(F, l)", names
    for taker, thing in takers():
        doc = inspect.getdoc(thing) or ""
        doc = re.split(r"^(?:Attributes|Returns)\n---", doc, flags=re.M)[0]
        table = getattr(thing, "_option_table", {})
        found = {name: re.findall(r"[\w-]+", v) for name, v in DOCUMENTED.findall(doc)}
        for own in ("_parameter_constraints", "_skl_parameter_constraints"):
            found |= checked(getattr(thing, own, {}))
        found = {name: own for name, own in found.items() if name not in table}
        places = {f"{name}={{}}": own for name, own in found.items()}
        for option, own in optional(table):
            places[f"solver_options={{{{{option!r}: {{}}}}}}"] = own
        call = next(own for start, own in CALLS.items() if re.match(start, taker))
        for given, own in places.items():
            yield call.format(name=taker, given=given), own


@pytest.mark.parametrize(("call", "known"), [*named_values()])
def test_a_name_with_two_letters_swapped_is_recognized(names, call, known):
    for name in known:
        # A letter twice where swapped ones might be another name, or the same.
        same = len(name) < 4 or name[-2] == name[-1]
        wrong = name + name[-1] if same else name[:-2] + name[-1] + name[-2]
        with pytest.raises(ValueError, match=re.escape(f"mean '{name}'?")) as caught:
            eval(call.format(repr(wrong)), names)
        assert not UNTYPED.search(str(caught.value))

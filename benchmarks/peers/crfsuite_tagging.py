"""CRFsuite tags the sentences of a JSON file; run where python-crfsuite is installed.

Prints a JSON line: CPU seconds from attributes and from `ItemSequence`, one sentence
after another, each the least of several rounds.
"""

import json
import os
import sys
import tempfile
from time import process_time

import pycrfsuite


def seconds(tagger, sentences, rounds=3):
    """CPU seconds of the fastest round."""
    taken = []
    for _ in range(rounds):
        start = process_time()
        for sentence in sentences:
            tagger.tag(sentence)
        taken.append(process_time() - start)
    return min(taken)


with open(sys.argv[1], encoding="utf8") as file:
    X, y, X_test = json.load(file)
# What the weights are is all one to the tagger, but for those that are 0.
trainer = pycrfsuite.Trainer("lbfgs", {"max_iterations": 3}, verbose=False)
trainer.set("feature.possible_transitions", 1)
for sentence, tags in zip(X, y, strict=True):
    trainer.append(sentence, tags)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model")
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    facts = {"tokens": seconds(tagger, X_test)}
    facts["features"] = seconds(tagger, list(map(pycrfsuite.ItemSequence, X_test)))
    tagger.close()
print(json.dumps(facts))

"""CRFsuite on tokens of a JSON file; run where python-crfsuite is installed.

Prints a JSON line: tags of the test sentences, and CPU seconds of training and tagging.
"""

import json
import os
import sys
import tempfile
from time import process_time

import pycrfsuite

with open(sys.argv[1], encoding="utf8") as file:
    X, y, X_test, params = json.load(file)
trainer = pycrfsuite.Trainer("lbfgs", params, verbose=False)
for tokens, tags in zip(X, y, strict=True):
    trainer.append(tokens, tags)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model")
    start = process_time()
    trainer.train(path)
    facts = {"train": process_time() - start}
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    start = process_time()
    facts["tags"] = [tagger.tag(tokens) for tokens in X_test]
    facts["tag"] = process_time() - start
    tagger.close()
print(json.dumps(facts))

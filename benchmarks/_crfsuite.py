"""Train CRFsuite and predict with it in a process of its own."""

import json
import tempfile
from pathlib import Path

from _common import HERE, np, run_lines

# name: algorithm of CRFsuite, its parameters
SETTINGS = {
    "lbfgs, c2=1": ("lbfgs", {"c2": 1.0}),
    "lbfgs, c2=0.1": ("lbfgs", {"c2": 0.1}),
    "lbfgs, c2=0.01": ("lbfgs", {"c2": 0.01}),
    "l2sgd, c2=1": ("l2sgd", {"c2": 1.0}),
    "l2sgd, c2=0.1": ("l2sgd", {"c2": 0.1}),
    "averaged perceptron": ("ap", {}),
    "passive aggressive": ("pa", {}),
    "arow": ("arow", {}),
}


def run_crfsuite(python, setting, paths, classes, lengths, biases=False, chaine=False):
    """Return facts about the training, and the labels predicted for the test items.

    `setting` is a name of `SETTINGS`, or an algorithm and its parameters. With `chaine`
    the interpreter has chaine, which trains in place of CRFsuite.
    """
    is_named = isinstance(setting, str)
    algorithm, params = SETTINGS[setting] if is_named else setting
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "labels.npy")
        command = [python, HERE / "peers" / "crfsuite_chains.py"]
        command += [paths["train"], paths["test"], output]
        command += ["--algorithm", algorithm, "--params", json.dumps(params)]
        command += ["--biases"] * biases + ["--chaine"] * chaine
        facts = run_lines(command)[0]
        labels = np.load(output)
    return facts, np.split(classes[labels], np.cumsum(lengths)[:-1])

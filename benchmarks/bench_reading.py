"""From tokens to features: SequenceTransformer beside CRFsuite's own reading.

The training sentences of CoNLL-2000, each token with its 19 attributes, and those of UD
EWT with theirs, as a list of strings and as a dict. Each reading runs in a process of
its own, which has the tokens before the clock starts: CPU seconds of ``fit_transform``,
and by how much the peak of memory grew (on Linux). CRFSUITE_PYTHON names an interpreter
that has python-crfsuite, whose reading is ``Trainer.append`` of all sentences.
"""

import json
import sys
import tempfile
from pathlib import Path
from time import process_time

from _common import (
    HERE,
    data_file,
    make_parser,
    np,
    peak_megabytes,
    peer_python,
    print_table,
    run_lines,
)
from _tagging import PARTS, attributes, read_sentences
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_structsvm.datasets import chunking_attributes, fetch_conll2000
from sklearn_structsvm.preprocessing import SequenceTransformer

# Of dicts and of lists of strings.
READERS = {
    "dicts": {"default": None, "FeatureHasher": FeatureHasher()},
    "strings": {
        "default": None,
        "CountVectorizer": CountVectorizer(analyzer=list),
        "FeatureHasher": FeatureHasher(input_type="string"),
    },
}


def read(path, form, name):
    """The child process."""
    with open(path, encoding="utf8") as file:
        X, _ = json.load(file)
    resident = int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
    transformer = SequenceTransformer(READERS[form][name])
    start = process_time()
    transformer.fit_transform(X)
    seconds = process_time() - start
    facts = {"seconds": seconds, "grown_mb": peak_megabytes() - resident / 2**10}
    print(json.dumps(facts))


def load(name, data_home):
    """Attributes of the tokens of each sentence, as strings, and their tags; or None."""
    if name == "conll2000":
        text = fetch_conll2000(data_home=data_home)
        tags = [labels.tolist() for labels in text.target]
        return [chunking_attributes(tokens) for tokens in text.tokens], tags
    path = data_file(data_home, "ud_ewt", f"{PARTS[0]}.tsv.gz")
    if path is None:
        return None
    sentences, tags = read_sentences(path)
    strings = [
        [[*attributes(words, i)] for i in range(len(words))] for words in sentences
    ]
    return strings, [labels.tolist() for labels in tags]


def as_dict(token):
    """Make an entry of ``name=value``, and a flag of all else."""
    parts = (name.partition("=") for name in token)
    return {name: value if sign else 1.0 for name, sign, value in parts}


def rows_of(form, X, tags, python, repeats):
    """Rows of the table: medians of the repetitions, each with all readers in turn."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokens.json")
        path.write_text(json.dumps([X, tags]), encoding="utf8")
        commands = {
            f"SequenceTransformer, {name}": [sys.executable, __file__, "--child"]
            + [path, form, name]
            for name in READERS[form]
        }
        if python:
            peer = HERE / "peers" / "crfsuite_reading.py"
            commands["CRFsuite"] = [python, peer, path]
        runs = {name: [] for name in commands}
        for _ in range(repeats):
            for name, command in commands.items():
                runs[name] += run_lines(command)
    medians = {
        name: [np.median([run[key] for run in own]) for key in own[0]]
        for name, own in runs.items()
    }
    own = medians["SequenceTransformer, default"][0]
    return [[form, name, *m, m[0] / own] for name, m in medians.items()]


def main():
    parser = make_parser(__doc__)
    names = ["conll2000", "ud_ewt"]
    parser.add_argument("--problems", nargs="+", choices=names, default=names)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    python = peer_python("CRFSUITE_PYTHON", "pycrfsuite")
    for problem in args.problems:
        data = load(problem, args.data)
        if data is None:
            continue
        strings, tags = data
        dicts = [[as_dict(token) for token in tokens] for tokens in strings]
        rows = []
        for form, X in {"strings": strings, "dicts": dicts}.items():
            rows += rows_of(form, X, tags, python, args.repeats)
        n_tokens = sum(map(len, strings))
        print(f"{problem}: {len(strings)} sentences, {n_tokens} tokens\n")
        print_table(["tokens", "", "CPU s", "MB more", "times our default"], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(read(*sys.argv[2:]))
    sys.exit(main())

"""Part-of-speech tagging of English web text, each word a row of its attributes."""

import gzip

from _common import data_file, np, sparse

PARTS = ("train", "test")


def load_ewt(data_home):
    """Return X, y, X_test, y_test of UD EWT; print what is missing and return None.

    They are read from ud_ewt/train.tsv.gz and test.tsv.gz: a word a line, its form and
    tag first, and a blank line after each sentence.
    """
    paths = [data_file(data_home, "ud_ewt", f"{part}.tsv.gz") for part in PARTS]
    if None in paths:
        return None
    columns, data = {}, []
    for path in paths:
        sentences, tags = read_sentences(path)
        X = [rows_of(words, columns, path is paths[0]) for words in sentences]
        data.append((X, tags))
    (X, y), (X_test, y_test) = (
        ([as_csr(rows, len(columns)) for rows in X], tags) for X, tags in data
    )
    return X, y, X_test, y_test


def read_sentences(path):
    sentences, tags = [[]], [[]]
    with gzip.open(path, "rt", encoding="utf8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) < 2:
                sentences.append([])
                tags.append([])
                continue
            sentences[-1].append(fields[0])
            tags[-1].append(fields[1])
    kept = [i for i, words in enumerate(sentences) if words]
    return [sentences[i] for i in kept], [np.array(tags[i]) for i in kept]


def attributes(words, i):
    """List attributes of a word and of its neighbors."""
    word, lower = words[i], words[i].lower()
    names = ["bias", f"word={lower}"]
    names += [f"suffix={lower[-size:]}" for size in (1, 2, 3)]
    names += [f"prefix={lower[:size]}" for size in (1, 2, 3)]
    checks = {
        "capital": word[0].isupper(),
        "digit": any(letter.isdigit() for letter in word),
        "hyphen": "-" in word,
        "first": i == 0,
    }
    names += [name for name, holds in checks.items() if holds]
    for step in (-2, -1, 1, 2):
        inside = 0 <= i + step < len(words)
        names.append(f"{step}={words[i + step].lower() if inside else ''}")
    if i > 0:
        names.append(f"pair={words[i - 1].lower()} {lower}")
    return dict.fromkeys(names)


def rows_of(words, columns, is_training):
    """Return the columns of each word's attributes; only training adds new columns."""
    rows = []
    for i in range(len(words)):
        names = attributes(words, i)
        if is_training:
            places = [columns.setdefault(name, len(columns)) for name in names]
        else:
            places = [columns[name] for name in names if name in columns]
        rows.append(sorted(places))
    return rows


def as_csr(rows, n_columns):
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.concatenate(rows)
    return sparse.csr_array(
        (np.ones(len(indices)), indices, indptr), shape=(len(rows), n_columns)
    )

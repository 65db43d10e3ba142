"""Slack beside margin rescaling: Tables 2 and 3 and Figure 4 of the paper.

Each rescaling takes its own C, the one of the best accuracy on held-out examples, and is
then judged on the test examples. Accuracy is that of an example, |Y and Y'| / |Y or Y'|
of the true and the predicted labels (1 where there are none), averaged; the paper does
not say what its Acc is. Label loss is the share of wrong labels. F1 is over all labels
(micro), the mean over the labels (macro), or the mean over the examples, which may be
what the paper calls MaF1. Objectives and gaps are of lambda/2 |w|^2 + mean hinge, with
the number of wrong labels as loss.

yeast: 14 labels with a potential for each pair, by enumeration.
reuters: Reuters-21578 with its 50 most frequent topics (the paper: RCV1 with its own),
    labels independent of one another.
roof: the same with a potential for each pair, over the relaxation, on the first
    --roof-train documents.
hierarchy: generated in the size of the paper's set from SWIKI-2011, 156 nodes with 123
    leaves, 17944 features, 750 + 250 + 750 examples. It is not that set: what carries
    over is the size, not the accuracy.
figure: objective and test accuracy on yeast against seconds, by solver and search, at
    one lambda; writes figures/slack_convergence.png and a CSV file in results/.
"""

import csv
import sys
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from _common import (
    HERE,
    fit_quietly,
    load_reuters,
    load_yeast,
    make_axes,
    make_parser,
    np,
    print_table,
    save_figure,
    sparse,
)
from sklearn.metrics import f1_score, hamming_loss, jaccard_score
from sklearn.model_selection import train_test_split

from sklearn_structsvm import SlackRescaledSSVM
from sklearn_structsvm.datasets import make_hierarchical
from sklearn_structsvm.solvers.blocks._bcfw import BlockFrankWolfe
from sklearn_structsvm.solvers.blocks._slack_oracle import SlackOracle
from sklearn_structsvm.solvers.blocks.bcfw import run_bcfw, start_bcfw
from sklearn_structsvm.solvers.blocks.cutting_plane import run_cutting_plane
from sklearn_structsvm.solvers.blocks.sgd import run_sgd
from sklearn_structsvm.solvers.loop import History
from sklearn_structsvm.structures import (
    HierarchicalStructure,
    MultilabelStructure,
    PairwiseMultilabelStructure,
)

RESCALINGS = ("slack", "margin")
# Passes of BCFW and SGD between two points of the figure, and points of a line.
CHECK_EVERY = 2
MAX_POINTS = 40


@dataclass
class Task:
    """Data of one table; `final` is what the chosen model is trained on."""

    title: str
    structure: object
    train: tuple
    held_out: tuple
    final: tuple
    test: tuple
    Cs: list


def accuracy(Y, predicted):
    return jaccard_score(Y, predicted, average="samples", zero_division=1.0)


def train(task, rescaling, C, data, args):
    model = SlackRescaledSSVM(
        task.structure,
        rescaling=rescaling,
        C=C,
        step="pairwise",
        # Of the fits that run out of time, the average predicts better.
        solver_options={"average": True, "max_time": args.max_time},
        tol=args.tol,
        max_iter=args.passes,
        random_state=0,
    )
    return fit_quietly(model, *data)


def compare(task, args):
    """The table of one data set."""
    rows = []
    for rescaling in RESCALINGS:
        start = perf_counter()
        X, Y = task.held_out
        scores = [
            accuracy(Y, train(task, rescaling, C, task.train, args).predict(X))
            for C in task.Cs
        ]
        C = task.Cs[int(np.argmax(scores))]
        choosing = perf_counter() - start
        start = perf_counter()
        model = train(task, rescaling, C, task.final, args)
        seconds = perf_counter() - start
        X, Y = task.test
        predicted = model.predict(X)
        rows.append(
            [
                rescaling,
                f"{C:g}",
                accuracy(Y, predicted),
                hamming_loss(Y, predicted),
                f1_score(Y, predicted, average="micro", zero_division=0.0),
                f1_score(Y, predicted, average="macro", zero_division=0.0),
                f1_score(Y, predicted, average="samples", zero_division=1.0),
                seconds,
                model.dual_gap_ / model.objective_,
                choosing,
            ]
        )
    n, k = task.final[1].shape
    print(f"{task.title}: {k} labels, {n} training and {len(task.test[1])} test examples")
    print(f"C of {', '.join(f'{C:g}' for C in task.Cs)}\n")
    header = ["", "C", "accuracy", "label loss", "micro F1", "macro F1", "F1"]
    header += ["s to train", "gap / objective", "s to choose C"]
    print_table(header, rows)


def held_out_task(title, structure, data, Cs):
    """A fifth of the training examples is held out for C."""
    X, Y, X_test, Y_test = data
    parts = train_test_split(X, Y, test_size=0.2, random_state=0)
    return Task(title, structure, parts[::2], parts[1::2], (X, Y), (X_test, Y_test), Cs)


def yeast_task(args):
    data = load_yeast(args.data)
    if data is None:
        return None
    structure = PairwiseMultilabelStructure(inference="enumerate")
    return held_out_task("yeast, pairwise, by enumeration", structure, data, args.Cs)


def reuters_task(args):
    data = load_reuters(args.data, args.topics)
    if data is None:
        return None
    structure = MultilabelStructure()
    return held_out_task("reuters, independent", structure, data, args.text_Cs)


def roof_task(args):
    data = load_reuters(args.data, args.topics)
    if data is None:
        return None
    X, Y, X_test, Y_test = data
    X, Y = X[: args.roof_train], Y[: args.roof_train]
    columns = np.flatnonzero(np.ravel(abs(X).sum(axis=0)))
    structure = PairwiseMultilabelStructure(args.roof_pairs, inference="roof")
    data = X[:, columns], Y, X_test[:, columns], Y_test
    return held_out_task("reuters, pairwise, relaxed", structure, data, args.text_Cs)


def hierarchy_task(args):
    X, Y, edges = make_hierarchical(
        1750,
        n_features=17944,
        n_nodes=156,
        n_leaves=123,
        n_labels=args.n_labels,
        class_sep=args.class_sep,
        sparse=True,
        n_active=100,
        random_state=0,
    )
    # Documents of unit length, as is usual for text.
    lengths = np.sqrt(np.ravel(X.multiply(X).sum(axis=1)))
    X = sparse.csr_array(sparse.diags_array(1.0 / lengths) @ X)
    parts = [(X[a:b], Y[a:b]) for a, b in ((0, 750), (750, 1000), (1000, 1750))]
    return Task(
        "hierarchy, 156 nodes",
        HierarchicalStructure(edges),
        parts[0],
        parts[1],
        parts[0],
        parts[2],
        args.text_Cs,
    )


def snapshots(run, history):
    """Weights at the checks of a run, a dict of seconds to them."""
    seen = {}

    def note(n_iter, row, ends):
        if history.rows[-1]["seconds"] not in seen:
            seen[history.rows[-1]["seconds"]] = history.solution.copy()

    run(on_pass=note, history=history)
    return seen


def thinned(seen):
    """At most MAX_POINTS of them, evenly in the logarithm of time."""
    seconds = np.array(list(seen))
    wanted = np.geomspace(seconds[0], seconds[-1], MAX_POINTS)
    chosen = np.unique(np.abs(seconds[:, np.newaxis] - wanted).argmin(axis=0))
    return {float(seconds[i]): seen[seconds[i]] for i in chosen}


def solver_runs(make_oracle, p, lam, max_time):
    """(name, runner) of each line of the figure."""
    limits = {"tol": 0.0, "max_iter": 10**6, "max_time": max_time}

    def bcfw(average, **report):
        oracle = SlackOracle(make_oracle(), "angular")
        kind = {"step": "pairwise", "cache": False, "average": average}
        iterate, _, _ = start_bcfw(oracle, p, lam, **kind)
        options = limits | {"gap_check_interval": CHECK_EVERY, "rng": 0}
        run_bcfw(iterate, average=average, **options, **report)

    def sgd(search, **report):
        oracle = SlackOracle(make_oracle(), search)
        options = limits | {"gap_check_interval": CHECK_EVERY, "rng": 0}
        run_sgd(oracle, p, lam, **options, **report)

    def planes(search, form, **report):
        oracle = SlackOracle(make_oracle(), search)
        run_cutting_plane(oracle, p, lam, form=form, **limits, **report)

    yield "BCFW, angular", partial(bcfw, False)
    yield "averaged BCFW, angular", partial(bcfw, True)
    yield "SGD, angular", partial(sgd, "angular")
    yield "SGD, bisecting", partial(sgd, "bisecting")
    yield "n-slack planes, angular", partial(planes, "angular", "n-slack")
    yield "n-slack planes, Sarawagi", partial(planes, "sarawagi", "n-slack")
    yield "one-slack planes, angular", partial(planes, "angular", "one-slack")


def converge(args):
    """Figure 4: lines of (seconds, objective, accuracy), and their table."""
    data = load_yeast(args.data)
    if data is None:
        return
    X, Y, X_test, Y_test = data
    n = len(Y)
    lam = args.lam
    p = np.full(n, 1.0 / n)
    structure = PairwiseMultilabelStructure(inference="enumerate")
    structure.fit(X, Y, bias=1.0)
    make_oracle = partial(structure.make_oracle, X, Y)
    judge = BlockFrankWolfe(SlackOracle(make_oracle(), "exact"), p, lam)
    lines, last = {}, {}
    for name, run in solver_runs(make_oracle, p, lam, args.figure_time):
        history = History()
        seen = thinned(snapshots(run, history))
        lines[name] = np.array(
            [
                [
                    seconds,
                    # The solver's own objective has its search's bounds in it.
                    0.5 * lam * w.dot(w) + judge.hinge(w),
                    accuracy(Y_test, structure.decode_batch(X_test, w)),
                ]
                for seconds, w in seen.items()
            ]
        )
        last[name] = history.rows[-1]
    best = min(line[:, 1].min() for line in lines.values())
    rows = []
    for name, line in lines.items():
        excess = line[:, 1] / best - 1.0
        row = [name]
        for share in (0.1, 0.01):
            at = np.flatnonzero(excess <= share)
            row.append(line[at[0], 0] if len(at) else np.inf)
        row += [line[-1, 1], last[name]["dual_gap"], line[-1, 2]]
        rows.append([*row, last[name]["n_oracle_calls"] / n])
    print(f"yeast, pairwise, by enumeration, lambda = {lam:.3g}, objective {best:.5g}\n")
    header = ["", "s to within 10 %", "1 %", "last objective", "its certified gap"]
    print_table([*header, "test accuracy", "searches / n"], rows)
    write_csv(lines, HERE / args.csv)
    plot(lines, best, HERE / args.figure)


def write_csv(lines, path):
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["run", "seconds", "objective", "test accuracy"])
        for name, line in lines.items():
            writer.writerows([name, *row] for row in line.tolist())


def plot(lines, best, path):
    """Objective above the best one, and test accuracy, against seconds."""
    figure, axes = make_axes(1, 2)
    left, right = axes[0]
    for name, line in lines.items():
        seconds, objective, score = line.T
        style = {
            "linestyle": "-" if name.endswith("angular") else "--",
            "linewidth": 1.3,
        }
        left.loglog(seconds, objective / best - 1.0, label=name, **style)
        right.semilogx(seconds, score, **style)
    left.set(xlabel="seconds", ylabel="excess objective")
    right.set(xlabel="seconds", ylabel="test accuracy")
    save_figure(figure, axes, path)


TASKS = {
    "yeast": yeast_task,
    "reuters": reuters_task,
    "roof": roof_task,
    "hierarchy": hierarchy_task,
}


def main():
    parser = make_parser(__doc__)
    parts = [*TASKS, "figure"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument(
        "--Cs", type=float, nargs="+", default=[0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
    )
    parser.add_argument(
        "--text-Cs", type=float, nargs="+", default=[0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
    )
    parser.add_argument("--tol", type=float, default=0.01)
    parser.add_argument("--passes", type=int, default=100, help="of a fit, at most")
    parser.add_argument("--max-time", type=float, default=15.0, help="of a fit")
    parser.add_argument("--topics", type=int, default=50, help="of reuters")
    parser.add_argument("--roof-train", type=int, default=1500)
    parser.add_argument("--roof-pairs", default="tree", choices=["all", "tree"])
    parser.add_argument("--n-labels", type=float, default=2.0, help="of hierarchy")
    parser.add_argument("--class-sep", type=float, default=2.0, help="of hierarchy")
    parser.add_argument("--lam", type=float, default=0.01, help="of the figure")
    parser.add_argument("--figure-time", type=float, default=10.0, help="of a run")
    parser.add_argument("--figure", default="figures/slack_convergence.png")
    parser.add_argument("--csv", default="results/slack_convergence.csv")
    args = parser.parse_args()
    for part in args.parts:
        if part == "figure":
            converge(args)
        elif task := TASKS[part](args):
            compare(task, args)


if __name__ == "__main__":
    sys.exit(main())

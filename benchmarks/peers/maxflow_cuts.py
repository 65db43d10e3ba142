"""PyMaxflow on saved graphs of two labels; run by an interpreter that has PyMaxflow.

Maximizes Σ_v q_v y_v - Σ_e s_e [y_u differs from y_v] on each graph. Prints a JSON line:
milliseconds of all graphs, median over repeats, of building them and of the flow alone,
and the sum of the values found.
"""

import argparse
import json
from time import process_time

import maxflow
import numpy as np


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--repeats", type=int, default=11)
    args = parser.parse_args()
    with np.load(args.path) as saved:
        q, edges, s = (saved[name] for name in ("q", "edges", "s"))
        offsets, edge_offsets = saved["offsets"], saved["edge_offsets"]
    graphs = [
        (q[a:b], edges[c:d], s[c:d])
        for a, b, c, d in zip(
            offsets[:-1], offsets[1:], edge_offsets[:-1], edge_offsets[1:], strict=True
        )
    ]
    rows = []
    for _ in range(args.repeats):
        building = flowing = value = 0.0
        for scores, pairs, strength in graphs:
            start = process_time()
            graph = maxflow.GraphFloat(len(scores), len(pairs))
            nodes = graph.add_grid_nodes(len(scores))
            first, second = (np.ascontiguousarray(end) for end in pairs.T)
            graph.add_edges(first, second, strength, strength)
            graph.add_grid_tedges(nodes, np.maximum(scores, 0), np.maximum(-scores, 0))
            built = process_time()
            graph.maxflow()
            labels = 1 - graph.get_grid_segments(nodes)
            building += built - start
            flowing += process_time() - built
            value += scores @ labels - strength @ (labels[first] != labels[second])
        rows.append([1e3 * building, 1e3 * flowing])
    building, flowing = np.median(rows, axis=0)
    print(json.dumps({"building": building, "flow": flowing, "value": value}))


if __name__ == "__main__":
    main()

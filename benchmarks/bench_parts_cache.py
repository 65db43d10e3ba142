"""What a cache saves where the oracle is costly: joints of the Leeds Sports Poses.

The eight variants of the paper's figures, and the library's default, on pictorial
structures: 14 joints on a grid, with maps of scores generated around them, as the
images are not available. A map has a blob at the joint (half as high where it is hidden),
one at the same joint of the other side, blobs anywhere, and noise. With several types,
those of a part are clusters of its displacements from its parent. The loss is that of
the paper, its radius the distance of the left shoulder and the right hip; "found" is
the share of the joints of test images within a fifth of it, by the last weights of the
default.

A pass is n calls of the oracle, those of the gap checks included. Seconds are of the
processor, as are those of the calls in the first table.
"""

import sys
from itertools import product
from time import perf_counter, process_time

from _common import (
    HERE,
    data_file,
    fit_quietly,
    make_parser,
    np,
    print_table,
    reached,
)
from bench_variants import DEFAULT, VARIANTS, plot, run, table_rows
from scipy.ndimage import gaussian_filter
from sklearn.cluster import KMeans

from sklearn_structsvm import BCFWClassifier
from sklearn_structsvm.structures import PictorialStructure

# Ankles, knees and hips; wrists, elbows and shoulders; neck and head.
PARENTS = [1, 2, 8, 9, 3, 4, 7, 8, 12, 12, 9, 10, -1, 12]
OTHER_SIDE = [5, 4, 3, 2, 1, 0, 11, 10, 9, 8, 7, 6, 12, 13]
TORSO = (9, 2)
MARGIN, BLUR, NOISE, N_CLUTTER = 0.15, 1.0, 0.25, 3


def load_joints(data_home):
    """Columns and rows of 14 joints of 2000 people, and whether each is hidden."""
    path = data_file(data_home, "lsp_joints", "joints.npz")
    if path is None:
        return None
    with np.load(path) as data:
        joints = data["lsp"].astype(np.float64)
    return joints[:, :, :2], joints[:, :, 2] != 0.0


def on_a_grid(places, size):
    """Rows and columns of joints, each person scaled to the grid with a margin."""
    low, high = places.min(axis=1, keepdims=True), places.max(axis=1, keepdims=True)
    longest = (high - low).max(axis=2, keepdims=True) * (1.0 + 2.0 * MARGIN)
    scaled = (places - (low + high) / 2.0) / longest + 0.5
    return np.clip((size * scaled).astype(int), 0, size - 1)[:, :, ::-1]


def maps_of(joints, is_hidden, size, rng):
    """Generate scores of each position, as a detector of each joint might give."""
    maps = np.zeros((len(joints), size, size))
    clutter = rng.integers(size, size=(len(joints), N_CLUTTER, 2))
    for part, own in enumerate(maps):
        for at in clutter[part]:
            own[tuple(at)] += rng.uniform(0.5, 1.0)
        own[tuple(joints[OTHER_SIDE[part]])] += rng.uniform(0.5, 1.0)
        own[tuple(joints[part])] += 0.5 if is_hidden[part] else 1.0
        own[:] = gaussian_filter(own, BLUR, mode="constant") * 2.0 * np.pi * BLUR**2
    return (maps + NOISE * rng.normal(size=maps.shape))[..., np.newaxis]


def with_types(joints, n_types, n_train):
    """Rows, columns and, with several types, the types of the joints."""
    if n_types == 1:
        return joints
    types = np.zeros(joints.shape[:2], dtype=int)
    for part, parent in enumerate(PARENTS):
        if parent >= 0:
            steps = (joints[:, part] - joints[:, parent]).astype(float)
            clusters = KMeans(n_types, n_init=4, random_state=0).fit(steps[:n_train])
            types[:, part] = clusters.predict(steps)
    return np.dstack([joints, types])


def structure_of(n_types, radius=1.0):
    return PictorialStructure(PARENTS, n_types, radius=radius, reference=TORSO)


def call_rows(sizes, types, repeats=5):
    """A call of the oracle on 4 random images, for one grid and number of types."""
    rng = np.random.default_rng(0)
    for size, n_types in product(sizes, types):
        X = list(rng.normal(size=(4, len(PARENTS), size, size, 1)))
        joints = rng.integers(size, size=(len(X), len(PARENTS), 2))
        kinds = rng.integers(n_types, size=(len(X), len(PARENTS), int(n_types > 1)))
        structure = structure_of(n_types)
        checked = structure.check_data(X, list(np.dstack([joints, kinds])))
        structure.fit(*checked)
        oracle = structure.make_oracle(*checked)
        w = np.abs(rng.normal(size=structure.n_weights_))
        seconds = []
        for _ in range(repeats):
            start = process_time()
            oracle.decode(w, 1.0)
            seconds.append((process_time() - start) / len(X))
        a_call = np.median(seconds)
        n_transforms = sum(parent >= 0 for parent in PARENTS) * n_types**2
        yield [
            f"{size} x {size}",
            n_types,
            structure.n_weights_,
            1e3 * a_call,
            1e9 * a_call / (n_transforms * size**2),
            float(oracle.relative_cost),
        ]


def run_in_process_time(*arguments):
    """As `run`, for one variant after another, with seconds of the processor."""
    histories = {}
    for variant in (*VARIANTS, DEFAULT):
        clocks = perf_counter(), process_time()
        histories |= run(*arguments, variants=[variant])
        wall, own = perf_counter() - clocks[0], process_time() - clocks[1]
        histories[variant]["seconds"] = histories[variant]["seconds"] * own / wall
    return histories


def found_in_test(structure, train, test, lam, args):
    """Share of the joints of test images within a fifth of the torso."""
    model = BCFWClassifier(structure, C=1.0 / (lam * len(train[0])), tol=args.tol)
    model.set_params(solver_options__max_time=args.max_time, random_state=args.seed)
    X, y = test
    predicted = fit_quietly(model, *train).predict(X)
    return structure_of(structure.n_types, 0.2).score(y, predicted)


def savings(histories, target):
    """Calls and seconds without a cache to those with it, where both reach the target."""
    for sampling, step in product(("uniform", "gap"), ("fw", "pairwise")):
        pair = [histories[sampling, step, cache] for cache in (False, True)]
        for effort in ("passes", "seconds"):
            without, with_cache = (reached(h, effort, target) for h in pair)
            if np.isfinite([without, with_cache]).all():
                yield effort, without / with_cache


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--problems", nargs="+", default=["100x1", "100x4"],
                        help="images x types")  # fmt: skip
    parser.add_argument("--size", type=int, default=32, help="rows and columns")
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32, 64, 128, 256])
    parser.add_argument("--types", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--lams", type=float, nargs="+", default=[1.0, 0.1, 0.01])
    parser.add_argument("--targets", type=float, nargs="+", default=[1e-1, 1e-2, 1e-3])
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--max-iter", type=int, default=1000)
    parser.add_argument("--max-time", type=float, default=15.0, help="of each fit")
    parser.add_argument("--check-every", type=int, default=5, help="passes")
    parser.add_argument("--test", type=int, default=300, help="images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", default=str(HERE / "figures" / "parts_cache.png"))
    args = parser.parse_args()
    loaded = load_joints(args.data)
    if loaded is None:
        return
    rng = np.random.default_rng(args.seed)
    joints, is_hidden = on_a_grid(loaded[0], args.size), loaded[1]
    places = np.r_[:1000, 1000 : 1000 + args.test]
    X = [maps_of(joints[i], is_hidden[i], args.size, rng) for i in places]
    joints = joints[places]
    header = ["grid", "types", "weights", "a call, ms", "ns a position", "declared"]
    print_table(header, call_rows(args.sizes, args.types))
    header = ["", "last gap"]
    for target in args.targets:
        header += [f"passes to {target:g}", f"s to {target:g}", "times the plainest"]
    results, ratios = {}, {"passes": [], "seconds": []}
    for problem, lam in product(args.problems, args.lams):
        n, n_types = map(int, problem.split("x"))
        y = list(with_types(joints, n_types, 1000))
        structure = structure_of(n_types)
        name = f"LSP, {n} images, {n_types} type{'s' * (n_types > 1)}"
        train, test = (X[:n], y[:n]), (X[1000:], y[1000:])
        results[name, lam] = run_in_process_time(structure, *train, lam, args)
        found = found_in_test(structure, train, test, lam, args)
        print(f"{name}, lambda = {lam:g}; found {found:.3f}\n")
        print_table(header, table_rows(results[name, lam], args.targets))
        for target in args.targets:
            for effort, ratio in savings(results[name, lam], target):
                ratios[effort].append(ratio)
    for effort, own in ratios.items():
        if not own:
            continue
        low, middle, high = np.percentile(own, [0, 50, 100])
        print(f"{effort} without a cache to those with it: {low:.2f} to {high:.2f}, "
              f"median {middle:.2f} of {len(own)}")  # fmt: skip
    plot(results, HERE / args.figure)


if __name__ == "__main__":
    sys.exit(main())

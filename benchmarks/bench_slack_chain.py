"""What exact slack rescaling of chains costs beside margin rescaling, on OCR-small.

Both minimize lambda/2 |w|^2 + mean hinge with the Hamming loss divided by the word's
length, by the same steps, sampling and gap checks. Their objectives differ, so equal gaps
do not mean equally good weights; each row has its objective.

us a step: the seconds of the run to the smallest gap, gap checks included, divided by
    the calls of the oracle. One search (or one Viterbi decoding) costs this much, with
    its potentials and its step.
letter error: on the words of the other nine folds.

Medians of --repeats runs. The ratios are of slack to margin.
"""

import sys

from _common import (
    ChainStructure,
    fit_quietly,
    load_ocr,
    make_parser,
    np,
    print_table,
    reached,
)

from sklearn_structsvm import SlackRescaledSSVM
from sklearn_structsvm.metrics import token_accuracy_score

RESCALINGS = ("margin", "slack")


def run(rescaling, lam, train, test, args):
    """Of each run: seconds to the gaps, us a step, passes, objective, letter error."""
    X, y = train
    facts = []
    for seed in range(args.repeats):
        model = SlackRescaledSSVM(
            ChainStructure(),
            rescaling=rescaling,
            solver_options={
                "search": args.search,
                "sampling": "gap",
                "max_time": args.max_time,
            },
            C=1.0 / (lam * len(X)),
            step="pairwise",
            tol=min(args.targets),
            max_iter=10**6,
            random_state=seed,
        )
        history = fit_quietly(model, X, y).history_
        seconds = [reached(history, "seconds", gap) for gap in args.targets]
        calls = history["n_oracle_calls"][-1]
        error = 1.0 - token_accuracy_score(test[1], model.predict(test[0]))
        facts.append(
            [
                *seconds,
                1e6 * history["seconds"][-1] / calls,
                calls / len(X),
                model.objective_,
                error,
            ]
        )
    return np.median(facts, axis=0)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--lams", type=float, nargs="*", help="default: 0.01 and 1/n")
    parser.add_argument("--targets", type=float, nargs="+", default=[1e-2, 1e-3])
    parser.add_argument("--search", default="angular", choices=["angular", "exact"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-time", type=float, default=60.0, help="of each fit")
    args = parser.parse_args()
    train, test = load_ocr("small", args.data), load_ocr("large", args.data)
    header = ["", *(f"s to {gap:g}" for gap in args.targets)]
    header += ["us a step", "passes", "objective", "letter error"]
    for lam in args.lams or (0.01, 1.0 / len(train[0])):
        rows = {name: run(name, lam, train, test, args) for name in RESCALINGS}
        n_timed = len(args.targets) + 1
        ratios = np.full(len(header) - 1, np.inf)
        slack, margin = rows["slack"][:n_timed], rows["margin"][:n_timed]
        # What was not reached by both has no ratio.
        reached_it = np.isfinite(slack) & np.isfinite(margin)
        np.divide(slack, margin, out=ratios[:n_timed], where=reached_it)
        rows["ratio"] = ratios
        print(f"OCR-small, lambda = {lam:.4g}\n")
        print_table(header, [[name, *row] for name, row in rows.items()])


if __name__ == "__main__":
    sys.exit(main())

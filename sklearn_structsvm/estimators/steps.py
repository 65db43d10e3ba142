"""The steps of a pass over the examples of a problem, or of one of its parts."""

from collections.abc import Callable
from dataclasses import dataclass

from sklearn_structsvm._utils._matrix._rows import Rows
from sklearn_structsvm.solvers.blocks import exact
from sklearn_structsvm.solvers.blocks._exact_blocks import ClassAscent, LabelAscent
from sklearn_structsvm.solvers.blocks.bcfw import make_corrected_pass, start_bcfw


def as_it_is(oracle):
    """The oracle of the structure itself."""
    return oracle


@dataclass
class BlockSteps:
    """Frank-Wolfe steps.

    `step`, `cache`, `average`, `bounds`, `l1_ratio` as for `start_bcfw`. `wrap`: a
    picklable function from the structure's oracle to the oracle in use.
    """

    step: str
    cache: bool | str = "auto"
    average: bool = False
    bounds: tuple | None = None
    wrap: Callable = as_it_is
    l1_ratio: float = 0.0

    def start(self, examples, lam, state=None):
        """An iterate, and the resolved options by the names of fitted attributes.

        `state` or None: the state of an iterate over the same examples.
        """
        iterate, step, cache = start_bcfw(
            self.wrap(examples.make_oracle()),
            examples.weights,
            lam,
            step=self.step,
            cache=self.cache,
            average=self.average,
            bounds=self.bounds,
            l1_ratio=self.l1_ratio,
            state=state,
        )
        return iterate, {"step_": step, "cache_": cache}

    def resolved(self):
        """The options resolved as in `start`, as far as possible without examples."""
        return {"step_": self.step, "cache_": self.cache is True}

    def make_pass(self, iterate, rng):
        make_corrected_pass(iterate, "permuted", rng)


class ExactSteps:
    """Exact steps over rows, for structures that support them."""

    bounds = None

    def start(self, examples, lam, state=None):
        """Same as for `BlockSteps`."""
        ascent = make_ascent(examples, lam)
        if state is not None:
            ascent.set_state(state)
        return ascent, self.resolved()

    def resolved(self):
        return {"step_": "exact", "cache_": False}

    def make_pass(self, ascent, rng):
        exact.make_pass(ascent, "gap", rng)


def make_ascent(examples, lam):
    """A new `ExactAscent`."""
    structure = examples.structure
    codes, costs = structure._coded(examples.y)
    kind = ClassAscent if codes.ndim == 1 else LabelAscent
    rows = Rows(examples.X, structure.bias_)
    return kind(rows, codes, costs, examples.weights, lam)

"""Shared by all displays: axes, legends, bands."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from sklearn_structsvm._utils.borders import as_array, as_floats, check_shape
from sklearn_structsvm._utils.mistakes import require, with_plain_calls

# Bands are transparent, so that several of them can overlap.
_BAND_STYLE = {"alpha": 0.2, "linewidth": 0}

# What plots need; methods that fit or predict first ask for it before they do.
PYPLOT = "matplotlib.pyplot"

# In inches: the margin around a drawing of cells, and the width of a letter.
FRAME = 1.6
LETTER = 0.08

# For labels of the data: "a$^$b" is not a formula.
NO_MATH: dict[str, Any] = {"parse_math": False}

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Display:
    """Base class of the displays."""

    ax_: "Axes"
    figure_: Any

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name, method in [*vars(cls).items()]:
            if isinstance(method, classmethod):
                setattr(cls, name, classmethod(with_plain_calls(method.__func__)))
            elif name == "plot":
                setattr(cls, name, with_plain_calls(method))

    def _finish(self, ax: "Axes") -> Self:
        """Store the axes drawn into, and return the display."""
        self.ax_, self.figure_ = ax, ax.figure
        return self


def axes_or_new(ax, caller):
    """`ax`, or the axes of a new figure; ImportError if matplotlib is missing."""
    plt = require(PYPLOT, caller)
    if ax is not None:
        return check_axes(ax)
    # This layout also makes room for a legend beside the axes.
    return plt.subplots(layout="constrained")[1]


def ready_to_draw(ax, caller, check=None):
    """Before long work: ImportError without matplotlib, an error if `ax` is wrong.

    `check` is `check_axes`, or what a display of several axes checks them by.
    """
    require(PYPLOT, caller)
    if ax is not None:
        (check or check_axes)(ax)


def check_axes(ax):
    """`ax`, or TypeError if it is something else than matplotlib's Axes."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes; got {ax!r}.")
    return ax


def as_labels(labels):
    """The labels that a display has, as a 1-D array."""
    labels = as_array("labels", labels)
    check_shape("labels", labels, "n_labels")
    return labels


def floats_of(name, values):
    """Numbers that a display has, of any shape; NaN is a gap."""
    values = as_array(name, values)
    return as_floats(name, values, *values.shape, finite=False)


def style_of(name, given):
    """The dict of this argument, empty for None; TypeError for anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a dict or None; got {given!r}.")
    return given


def full_names(line_kw):
    """`line_kw` with matplotlib's short names (`c`, `ls`, ...) written out."""
    from matplotlib import cbook
    from matplotlib.lines import Line2D

    return cbook.normalize_kwargs(line_kw, Line2D)


def band(ax, x, low, high, color, fill_between_kw):
    """A transparent band between two curves."""
    style = {"color": color, **_BAND_STYLE, **(fill_between_kw or {})}
    return ax.fill_between(x, low, high, **style)


def legend_prefix(name):
    """Start of the legend's entries for the lines of one display."""
    return "" if name is None else f"{name}, "


def show_legend(ax, labels_of_data=(), **legend_kw):
    """A legend, if anything in the axes has a label.

    Entries among `labels_of_data` are not read as formulas.
    """
    if ax.get_legend_handles_labels()[0]:
        for text in ax.legend(**legend_kw).get_texts():
            if text.get_text() in labels_of_data:
                text.set(**NO_MATH)


def show_legend_below(ax, labels_of_data=()):
    """A legend below the axes, for plots that fill all of them."""
    show_legend(
        ax,
        labels_of_data,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        # Distance of a legend below the axes, in font sizes: it leaves room for the x
        # label in axes of any size.
        borderaxespad=4.5,
        ncols=2,
        fontsize="small",
    )

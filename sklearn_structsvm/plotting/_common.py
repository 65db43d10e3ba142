"""What the displays share."""

from typing import Any

# The band is seen through, so that several of them can overlap.
BAND_STYLE = {"alpha": 0.2, "linewidth": 0}

# Labels of the data are drawn as they are, and "a$^$b" is no formula.
NO_MATH: dict[str, Any] = {"parse_math": False}

# A legend below the axes is this many of its font's sizes below them: in points, so that
# the x label has its room whatever the size of the axes.
_LEGEND_BELOW = 4.5


def axes_or_new(ax, caller):
    """`ax`, or the axes of a new figure; ImportError where matplotlib is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib. "
            'Install it with pip install "sklearn-structsvm[plot]".'
        ) from error
    # This layout also makes room for a legend beside the axes.
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def full_names(line_kw):
    """`line_kw` with matplotlib's short names (`c`, `ls`, ...) written out."""
    from matplotlib import cbook
    from matplotlib.lines import Line2D

    return cbook.normalize_kwargs(line_kw, Line2D)


def show_legend(ax, labels_of_data=(), **legend_kw):
    """A legend where there is something to tell apart."""
    if ax.get_legend_handles_labels()[0]:
        for text in ax.legend(**legend_kw).get_texts():
            if text.get_text() in labels_of_data:
                text.set(**NO_MATH)


def show_legend_below(ax):
    """A legend below the axes, for what fills all of them."""
    show_legend(
        ax,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        borderaxespad=_LEGEND_BELOW,
        ncols=2,
        fontsize="small",
    )

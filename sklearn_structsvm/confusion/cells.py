"""Cells of the confusion tensor: parts of the examples that are counted separately."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_structsvm._utils.mistakes import meant
from sklearn_structsvm._utils.tables import listed_names

NO_POSITIVE = "needs a positive label"


@dataclass(frozen=True, eq=False)
class Cells:
    r"""The cells of a confusion tensor and their metadata.

    A confusion tensor C has shape (m, k, k) for m cells and k classes. :math:`C_{aij}` is
    the weighted fraction of examples that are in cell a, have label i and are predicted
    as j; all entries sum to 1. A cell is a group of examples (a value of the sensitive
    features), or the part of a group to which a baseline classifier assigns one label.
    Without groups and baseline there is a single cell. The row sums :math:`\sum_j
    C_{aij}` do not depend on the classifier, and are stored here.

    Read more in the :ref:`User Guide <guide-counting>`.

    Parameters
    ----------
    priors : ndarray of shape (m, k)
        Row sums: the fraction of examples that are in cell a and have label i.
    classes : ndarray of shape (k,)
        Labels, in the order of the rows and columns.
    groups : ndarray of shape (m,) or None, default=None
        Index of each cell's group in `group_names`. None if there are no groups.
    group_names : sequence or None, default=None
        Names of the groups: labels, or tuples of labels.
    baseline : ndarray of shape (m,) or None, default=None
        Index in `classes` of the label that the baseline assigns to the cell's examples.
    label_priors : ndarray of shape (m, k) or None, default=None
        Label fractions in the sample, if `priors` come from class probabilities. None if
        they are the same.
    feature_names : sequence or None, default=None
        Names of the columns of sensitive features, in the order of the names of groups;
        None if they have none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_structsvm.confusion import Cells
    >>> priors = np.array([[0.3, 0.2], [0.1, 0.4]])
    >>> cells = Cells(priors, np.array(["no", "yes"]), np.array([0, 1]), ["old", "young"])
    >>> cells.shape, cells.n_groups
    ((2, 2, 2), 2)
    >>> cells.cells_of(cells.group_index("young")).tolist()
    [False, True]
    """

    priors: np.ndarray
    classes: np.ndarray
    groups: np.ndarray | None = None
    group_names: Any = None
    baseline: np.ndarray | None = None
    label_priors: np.ndarray | None = None
    feature_names: Any = None

    @classmethod
    def single(cls, class_priors: ArrayLike, classes: Any = None) -> Self:
        """Make a single cell from class priors (k,); labels default to 0, ..., k - 1."""
        priors = np.array(class_priors, dtype=np.float64).reshape(1, -1)
        return cls(priors, np.arange(priors.shape[1]) if classes is None else classes)

    @property
    def n_cells(self) -> int:
        """Number of cells, m."""
        return self.priors.shape[0]

    @property
    def n_classes(self) -> int:
        """Number of classes, k."""
        return self.priors.shape[1]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the confusion tensor, (m, k, k)."""
        return self.n_cells, self.n_classes, self.n_classes

    @property
    def class_priors(self) -> np.ndarray:
        """Fraction of each label among all examples, of shape (k,)."""
        return self.priors.sum(axis=0)

    @property
    def label_shares(self) -> np.ndarray:
        """Fraction of each label in each cell of the sample, of shape (m, k)."""
        return self.priors if self.label_priors is None else self.label_priors

    @property
    def n_groups(self) -> int:
        """Number of groups; 1 if there are no groups."""
        return 1 if self.groups is None else len(self.group_names)

    def total(self, C: np.ndarray) -> np.ndarray:
        """Sum a tensor over the cells, (m, k, k) → (k, k)."""
        return np.asarray(C).sum(axis=0)

    def by_group(self, C: np.ndarray) -> np.ndarray:
        """Sum a tensor over the cells of each group, (m, k, k) → (n_groups, k, k)."""
        C = np.asarray(C)
        if self.groups is None:
            return C.sum(axis=0, keepdims=True)
        out = np.zeros((self.n_groups, *C.shape[1:]))
        np.add.at(out, self.groups, C)
        return out

    def class_index(self, label: Any, name: str = "label") -> int:
        """Index of a label; a ValueError names the parameter and the label."""
        return label_index(self.classes, label, name)

    def group_index(self, group: Any, name: str = "group") -> int:
        """Index of a group; a ValueError names the parameter and the group."""
        if self.groups is None:
            raise ValueError(
                f"{name}={group!r} needs sensitive_features, but none were passed."
            )
        for index, known in enumerate(self.group_names):
            if same_name(known, group):
                return index
        known = [_plain_name(name) for name in self.group_names]
        raise ValueError(
            f"{name}={group!r} is not a group. The groups are {known}."
            f"{meant(group, known)}"
        )

    def cells_of(self, group_index: int) -> np.ndarray:
        """Boolean mask (m,) of the cells of a group, or of all cells for None."""
        if group_index is None or self.groups is None:
            return np.ones(self.n_cells, dtype=bool)
        return np.asarray(self.groups) == group_index

    def masks_of(self, feature: Any = None) -> list[np.ndarray]:
        """Masks (m,) of the cells of each group, or of each value of one feature.

        Raises
        ------
        ValueError
            For a feature that is neither the name nor the index of a column.
        """
        if feature is None or self.groups is None:
            return [self.cells_of(a) for a in range(self.n_groups)]
        place = self._feature_index(feature)
        values = [_parts(name)[place] for name in self.group_names]
        return [
            np.isin(self.groups, [a for a, own in enumerate(values) if own == value])
            for value in dict.fromkeys(values)
        ]

    def words_of(self, mask: np.ndarray) -> str:
        """Name entries of the tensor: examples of a group, with a label, predicted as.

        Parameters
        ----------
        mask : ndarray of bool, shape (m, k, k)
            The entries of some rows and columns in some cells.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_structsvm.confusion import Cells
        >>> cells = Cells(np.full((2, 2), 0.25), np.array([0, 1]), np.arange(2), "ab")
        >>> mask = np.zeros(cells.shape, dtype=bool)
        >>> mask[1, 1] = True
        >>> cells.words_of(mask)
        "examples of group 'b' with label 1"
        """
        used, labels = mask.any(axis=(1, 2)), np.asarray(self.classes).tolist()
        rows, columns = mask.any(axis=(0, 2)), mask.any(axis=(0, 1))
        # Entries of all rows and columns, but not all of them, are such of one label.
        is_cross = rows.all() and columns.all()
        both = [is_cross and mask[used][:, i].all() for i in range(len(labels))]
        parts = [
            (rows, labels, "with label"),
            (columns, labels, "that are predicted as"),
            (np.array(both), labels, "that have or are predicted as"),
        ]
        if self.baseline is not None:
            is_part = np.bincount(self.baseline[used], minlength=len(labels)) > 0
            parts.insert(0, (is_part, labels, "that the baseline labels"))
        if self.groups is not None:
            is_part = np.bincount(self.groups[used], minlength=self.n_groups) > 0
            parts.insert(0, (is_part, self.group_names, "of group"))
        words = ["examples"]
        for is_in, names, before in parts:
            if is_in.any() and not is_in.all():
                own = [_plain_name(names[i]) for i in np.flatnonzero(is_in)]
                words.append(f"{before} {listed_names(own)}")
        return " ".join(words)

    def _feature_index(self, feature):
        names = list(self.feature_names or [])
        n_features = len(_parts(self.group_names[0]))
        if feature in names:
            return names.index(feature)
        is_index = isinstance(feature, Integral) and not isinstance(feature, bool)
        if is_index and 0 <= feature < n_features:
            return int(feature)
        known = names or list(range(n_features))
        raise ValueError(
            f"feature={feature!r} is not a column of sensitive_features. The columns are "
            f"{known}.{meant(feature, known)}"
        )


def label_index(classes, label, name):
    """Index of a label among classes; a ValueError names the parameter and the label."""
    classes = np.asarray(classes).tolist()
    try:
        return classes.index(label)
    except ValueError:
        raise ValueError(
            f"{name}={label!r} is not a class. The classes are {classes}."
            f"{meant(label, classes)}"
        ) from None


def positive_index(classes, pos_label, name):
    """Index of the label that counts as positive, as in scikit-learn.

    It is `pos_label`; or else 1 of the labels 0 and 1 or -1 and 1, and True of booleans.
    For other labels there is no default.

    `classes` (k,). ValueError if the label is unknown, or if it must be given.
    """
    if pos_label is not None:
        return label_index(classes, pos_label, "pos_label")
    labels = np.asarray(classes).tolist()
    if len(labels) == 2 and set(labels) in ({0, 1}, {-1, 1}):
        return labels.index(1)
    raise ValueError(
        f"{name} {NO_POSITIVE}: set pos_label to one of {labels}. Its default, 1 or "
        "True, is for the labels 0 and 1, -1 and 1, or False and True only."
    )


def _plain_name(name):
    """A group's name as Python objects, so that messages show no NumPy types."""
    if isinstance(name, (tuple, list, np.ndarray)):
        return tuple(_plain_name(part) for part in name)
    return name.item() if isinstance(name, np.generic) else name


def _parts(name):
    """The values of a group's name, one for each column."""
    return name if isinstance(name, tuple) else (name,)


def same_name(known, group):
    """Whether two group names agree.

    A name with one part may be given without a tuple.
    """
    known, group = _plain_name(known), _plain_name(group)
    return known == group or known == (group,) or (known,) == group

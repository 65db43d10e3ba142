"""Fits that leave nothing half-done, and pickles that know their version."""

import warnings

from sklearn_structsvm._version import __version__


class AtomicFitMixin:
    """For estimators whose `fit` is `_fit_or_restore`, around a `_fit` of their own."""

    def __getstate__(self):
        return super().__getstate__() | {"_sklearn_structsvm_version": __version__}

    def __setstate__(self, state):
        version = state.pop("_sklearn_structsvm_version", "unknown")
        if version != __version__:
            warnings.warn(
                f"This {type(self).__name__} was saved by sklearn-structsvm {version} "
                f"and is read by {__version__}, which may break or mislead.",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__(state)

    def _fit_or_restore(self, *data):
        """`_fit` from a clean slate; where it fails, all is as it was before.

        `_fit` gets the data and, after them, the attributes of the previous fit. By
        `_keep_fitted` it says that what it has set is to stay although it raises, be it
        a warning turned error.
        """
        before = {k: v for k, v in vars(self).items() if _is_fitted_attribute(k)}
        self._drop_fitted()
        try:
            self._fit(*data, before)
        except BaseException:
            if not vars(self).pop("_keep_fitted", False):
                self._drop_fitted()
                vars(self).update(before)
            raise
        vars(self).pop("_keep_fitted", None)
        return self

    def _drop_fitted(self):
        for name in [k for k in vars(self) if _is_fitted_attribute(k)]:
            delattr(self, name)


def _is_fitted_attribute(name):
    return name == "_dual_state" or (name.endswith("_") and not name.startswith("_"))

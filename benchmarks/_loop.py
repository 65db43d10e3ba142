"""The hand-written loop of ocr_loop.cpp, compiled and called."""

import ctypes
import tempfile
from pathlib import Path

from _common import HERE, compile_cpp, np
from scipy.linalg import cython_blas

SOURCE = HERE / "ocr_loop.cpp"
# No -ffast-math: linking with it would change the whole process's arithmetic.
FLAGS = (
    "-O3 -march=native -fno-math-errno -fno-trapping-math -fno-signed-zeros "
    "-fassociative-math -shared -fPIC"
).split()


def _compile(n_features, n_labels):
    defines = [f"-DFEATURES={n_features}", f"-DLABELS={n_labels}"]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "ocr_loop.so")
        compile_cpp(SOURCE, library, [*FLAGS, *defines])
        return ctypes.CDLL(str(library)).bcfw_steps


def _gemm_address():
    """Address of the BLAS routine that the library calls too."""
    capsule = cython_blas.__pyx_capi__["dgemm"]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


class HandWrittenLoop:
    """State of the loop on one training set.

    Parameters
    ----------
    X : list of ndarray of shape (T_i, n_features)
    y : list of ndarray of shape (T_i,)
    lam : float
    blas : bool
        Whether matrix products go through the BLAS or plain loops.
    """

    def __init__(self, X, y, lam, blas=True):
        self.lam = lam
        classes, labels = np.unique(np.concatenate(y), return_inverse=True)
        n, K = len(X), len(classes)
        self.X = np.concatenate(X).astype(np.float64)
        self.y = labels.astype(np.int32)
        self.offsets = np.cumsum([0] + [len(x) for x in X]).astype(np.intp)
        grams = []
        for x in X:
            gram = x @ x.T + 1.0
            gram[0, 0] += 1.0
            gram[-1, -1] += 1.0
            grams.append(gram.ravel())
        self.gram_offsets = np.cumsum([0] + [len(g) for g in grams]).astype(np.intp)
        self.grams = np.concatenate(grams)
        self.w = np.zeros((self.X.shape[1] + 3) * K + K * K)
        self.nodes = np.zeros((len(self.X), K))
        self.edges = np.zeros((n, K, K))
        self.mean_loss = np.zeros(n)
        self._steps = _compile(self.X.shape[1], K)
        self._gemm = ctypes.c_void_p(_gemm_address() if blas else None)

    def run(self, order):
        """One step on each of the blocks named, in their order."""
        order = np.ascontiguousarray(order, dtype=np.intp)

        def pointer(array):
            return ctypes.c_void_p(array.ctypes.data)

        self._steps(
            pointer(self.X),
            pointer(self.y),
            pointer(self.offsets),
            pointer(self.grams),
            pointer(self.gram_offsets),
            ctypes.c_ssize_t(len(self.mean_loss)),
            ctypes.c_double(self.lam),
            pointer(order),
            ctypes.c_ssize_t(len(order)),
            self._gemm,
            pointer(self.w),
            pointer(self.nodes),
            pointer(self.edges),
            pointer(self.mean_loss),
        )

    def dual_objective(self):
        """Dual value of the state."""
        return self.mean_loss.mean() - 0.5 * self.lam * (self.w @ self.w)

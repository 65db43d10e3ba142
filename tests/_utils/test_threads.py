"""BLAS has one thread where work is small, and afterwards as many as before."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from sklearn_structsvm._utils.threads import count_threads, one_blas_thread
from sklearn_structsvm.solvers.qp import interior_point


def blas_threads():
    found = {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}
    return max(found, default=None)


@pytest.fixture
def two_threads():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if blas_threads() != 2:
            pytest.skip("BLAS has one thread here, or says nothing of them")
        yield


@pytest.mark.usefixtures("two_threads")
def test_the_last_to_leave_restores_the_threads():
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == 1
        assert blas_threads() == 1
    assert blas_threads() == 2
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_several_python_threads_leave_blas_as_it_was():
    inside = Barrier(3)

    def work(_):
        with one_blas_thread():
            inside.wait()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert blas_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_small_quadratic_programs_are_solved_by_one_thread(monkeypatch):
    seen = []

    class Watched(interior_point.InteriorPoint):
        def run(self, tol):
            seen.append(blas_threads())
            super().run(tol)

    monkeypatch.setattr(interior_point, "InteriorPoint", Watched)
    n = 3
    interior_point.solve_qp(
        np.arange(n, dtype=float), np.ones(n), np.zeros((0, n)), np.zeros(0),
        np.full(n, 1.0 / n),
    )  # fmt: skip
    assert seen == [1]
    assert blas_threads() == 2


@pytest.mark.parametrize("n_jobs", ["x", [1], 2.0, True, {}])
def test_a_number_of_jobs_that_is_none_is_refused(n_jobs):
    with pytest.raises(TypeError, match="^n_jobs must be an integer"):
        count_threads(n_jobs)

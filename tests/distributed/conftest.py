"""The cluster that the tests of this folder share."""

import gc

import pytest


@pytest.fixture(scope="session")
def shared_client():
    _dask_cluster = pytest.importorskip("_dask_cluster")
    with _dask_cluster.start_client() as client:
        yield client


@pytest.fixture
def client(shared_client):
    """A client of two workers: where a test has killed one, there is another by now."""
    gc.collect()
    shared_client.wait_for_workers(2)
    with shared_client.as_current():
        yield shared_client

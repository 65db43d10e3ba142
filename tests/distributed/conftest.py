"""The cluster that the tests of this folder share."""

import gc

import pytest

# Seconds after which something hangs.
PATIENCE = 300


@pytest.fixture(scope="session")
def shared_client():
    _dask_cluster = pytest.importorskip("_dask_cluster")
    with _dask_cluster.start_client() as client:
        yield client


@pytest.fixture
def client(shared_client):
    """A client of two workers, which other tests use as well."""
    gc.collect()
    shared_client.wait_for_workers(2, timeout=PATIENCE)
    with shared_client.as_current():
        yield shared_client


@pytest.fixture
def own_client():
    """The same for a test that kills one: not every killed worker has a successor."""
    _dask_cluster = pytest.importorskip("_dask_cluster")
    with _dask_cluster.start_client() as client, client.as_current():
        yield client

"""Finding, downloading and checking files, without a network."""

import hashlib
import time
from urllib.error import URLError

import pytest

from sklearn_structsvm.datasets import _fetch
from sklearn_structsvm.datasets._fetch import (
    RemoteFile,
    data_folders,
    read_upstream,
    write_atomically,
)

CONTENT = b"some content"
OPTIONS = {"download_if_missing": True, "n_retries": 2, "delay": 0.0}


def remote_file(folder, content=CONTENT):
    """A file 'elsewhere': an address of the file system."""
    path = folder / "elsewhere" / "remote.bin"
    path.parent.mkdir()
    path.write_bytes(content)
    return RemoteFile("remote.bin", path.as_uri(), hashlib.sha256(CONTENT).hexdigest())


@pytest.mark.parametrize("place", ["name", "."])
def test_an_upstream_file_put_by_hand_is_used_without_a_download(tmp_path, place):
    remote = RemoteFile("remote.bin", "none://", hashlib.sha256(CONTENT).hexdigest())
    (tmp_path / "name").mkdir()
    (tmp_path / place / "remote.bin").write_bytes(CONTENT)
    folders = data_folders("name", tmp_path)
    assert read_upstream(remote, folders, "converted", **OPTIONS) == CONTENT


def test_a_missing_file_is_downloaded(tmp_path):
    folders = data_folders("name", tmp_path / "home")
    content = read_upstream(remote_file(tmp_path), folders, "converted", **OPTIONS)
    assert content == CONTENT


@pytest.mark.parametrize("is_local", [False, True])
def test_a_file_with_another_checksum_is_refused(tmp_path, is_local):
    remote = remote_file(tmp_path, CONTENT if is_local else b"tampered")
    if is_local:
        (tmp_path / "remote.bin").write_bytes(b"tampered")
    folders = data_folders("name", tmp_path if is_local else tmp_path / "home")
    with pytest.raises(OSError, match=r"remote\.bin has the SHA256 checksum"):
        read_upstream(remote, folders, "converted", **OPTIONS)


@pytest.mark.parametrize("download_if_missing", [False, True])
def test_offline_the_error_says_which_file_to_put_where(tmp_path, download_if_missing):
    remote = RemoteFile("remote.bin", (tmp_path / "gone" / "remote.bin").as_uri(), "")
    folders = data_folders("name", tmp_path)
    options = {"n_retries": 0, "delay": 0.0, "download_if_missing": download_if_missing}
    with pytest.raises(OSError) as info:
        read_upstream(remote, folders, "converted.npz", **options)
    message = str(info.value)
    assert ("download_if_missing=False" in message) != download_if_missing
    for part in ("converted.npz", "remote.bin", remote.url, str(tmp_path / "name")):
        assert part in message


def test_a_failing_download_is_tried_again_after_the_delay(tmp_path, monkeypatch):
    remote = remote_file(tmp_path)
    failures = [URLError("not now"), TimeoutError("slow")]
    naps = []

    def urlopen(url, timeout):
        if failures:
            raise failures.pop()
        return original(url, timeout=timeout)

    original = _fetch.urlopen
    monkeypatch.setattr(_fetch, "urlopen", urlopen)
    monkeypatch.setattr(time, "sleep", naps.append)
    folders = data_folders("name", tmp_path / "home")
    options = OPTIONS | {"delay": 7.0}
    with pytest.warns(UserWarning, match="Retry downloading"):
        assert read_upstream(remote, folders, "converted", **options) == CONTENT
    assert naps == [7.0, 7.0]


def test_writing_replaces_the_file_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "new" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"old")
    assert path.read_bytes() == b"old"

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(_fetch.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]

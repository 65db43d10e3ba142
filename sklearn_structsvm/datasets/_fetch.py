"""Files in the data home: found, or downloaded and checked, never left half-written."""

import hashlib
import os
import time
import warnings
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen
from uuid import uuid4

from sklearn.datasets import get_data_home

TIMEOUT = 60  # seconds without an answer after which an attempt counts as failed


class RemoteFile(NamedTuple):
    """A file of another project, pinned to one revision."""

    filename: str
    url: str
    sha256: str


def data_folders(name, data_home):
    """Folders of the data set ``name``; new files go into the first."""
    home = Path(get_data_home(data_home))
    return [home / name, home]


def find_file(filename, folders):
    """Path of the file in the first folder that has it, or None."""
    return next((f / filename for f in folders if (f / filename).is_file()), None)


def check_sha256(content, expected, source):
    """Raise OSError unless the bytes have the checksum expected."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise OSError(
            f"{source} has the SHA256 checksum {found}, expected {expected}. It is "
            "corrupted, or a different file. Remove it to download it again."
        )


def read_upstream(remote, folders, filename, *, download_if_missing, n_retries, delay):
    """Checked bytes of an upstream file, from the disk or from its address.

    ``filename`` is the converted file, which was looked for before: an error names it
    beside the upstream file, since either helps.
    """
    path = find_file(remote.filename, folders)
    if path is not None:
        content = path.read_bytes()
        check_sha256(content, remote.sha256, path)
        return content
    advice = (
        f"Looked for {filename} and {remote.filename} in "
        f"{' and '.join(map(str, folders))}. To do without a download, put "
        f"{remote.filename} (from {remote.url}) into {folders[0]}."
    )
    if not download_if_missing:
        raise OSError(f"Data not found and download_if_missing=False. {advice}")
    try:
        content = _download(remote.url, n_retries, delay)
    except OSError as error:
        raise OSError(f"Could not download {remote.url}: {error}. {advice}") from error
    check_sha256(content, remote.sha256, remote.url)
    return content


def _download(url, n_retries, delay):
    """Download the bytes, after at most ``n_retries`` failed attempts."""
    for attempts_left in range(n_retries, -1, -1):
        try:
            with urlopen(url, timeout=TIMEOUT) as response:
                return response.read()
        except (URLError, TimeoutError, ConnectionError):
            if attempts_left == 0:
                raise
        warnings.warn(f"Retry downloading from {url}", stacklevel=2)
        time.sleep(delay)


def write_atomically(path, content):
    """Write the bytes beside ``path``, then move them there in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)

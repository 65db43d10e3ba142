"""The versions that the site offers: `python doc/versions.py FOLDER > versions.json`.

The published site has a folder for each: dev, one for each release, and stable, which is
the latest of them. FOLDER holds these; their list stands beside them as versions.json.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
STABLE = tomllib.loads(PROJECT.read_text())["project"]["urls"]["Documentation"]


def entries(names):
    """What the theme reads: dev, then the releases, the latest of them first."""
    releases = sorted(
        (name for name in names if re.fullmatch(r"\d+(\.\d+)+", name)),
        key=lambda name: [int(part) for part in name.split(".")],
        reverse=True,
    )
    base = STABLE.removesuffix("stable/")
    found = [{"name": "dev", "version": "dev", "url": f"{base}dev/"}]
    for release in releases:
        found.append({"name": release, "version": release, "url": f"{base}{release}/"})
    if releases:
        found[1] |= {"name": f"{releases[0]} (stable)", "url": STABLE}
    return found


if __name__ == "__main__":
    print(json.dumps(entries(path.name for path in Path(sys.argv[1]).iterdir())))

"""Links between the built pages, and to their pictures, lead somewhere; see make doc."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).parent / "_build" / "html"


class Links(HTMLParser):
    """Addresses of links and pictures, and the places that can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.addresses, self.places = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.addresses.append(value)
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value)


def dead_links():
    """Of all pages, what leads nowhere."""
    files = (path for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts)
    pages = {path: Links(path) for path in files}
    for path, page in pages.items():
        for address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{path.relative_to(SITE)}: {address} is not there"
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].places:
                    yield f"{path.relative_to(SITE)}: {address}, no such place"


if __name__ == "__main__":
    dead = list(dead_links())
    print(*dead, f"{len(dead)} dead links", sep="\n")
    sys.exit(len(dead) > 0)

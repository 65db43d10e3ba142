"""Look at the built pages as a visitor does: `make site` runs this.

Some pages are opened in a headless Chromium, wide and narrow, light and dark, and all
others once, narrow. No page may be wider than its window, write errors to the console,
request what does not exist, lack a picture, or leave a formula as TeX. CHROMIUM names the
browser if it is not found by itself.
"""

import os
import shutil
import sys
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import sync_playwright

SITE = Path(__file__).parent / "_build" / "html"
PAGES = [
    "index.html",
    "install.html",
    "guide/tag_text.html",
    "guide/complex_metrics.html",
    "guide/fairness.html",
    "guide/stacked.html",
    "crfsuite.html",
    "benchmarks.html",
    "api/index.html",
    "auto_examples/index.html",
    "auto_examples/sequences/plot_tagging.html",
    "generated/sklearn_structsvm.BCFWClassifier.html",
]
WIDTHS = 1280, 390
BROWSERS = "chromium", "chromium-browser", "google-chrome", "chrome"

# The excess width of a page, the pictures that did not load, the formulas that MathJax
# did not set, or only as an error, and paragraphs with markup that Sphinx took for text,
# such as the line below a title. Pictures below the window load on demand.
MEASURE = """async () => {
    const pictures = [...document.images];
    pictures.forEach(i => i.loading = "eager");
    await Promise.all(pictures.map(i => i.decode().catch(() => null)));
    await window.MathJax?.startup.promise;
    return {
        excess: document.documentElement.scrollWidth - window.innerWidth,
        missing: pictures.filter(i => !i.naturalWidth).map(i => i.getAttribute("src")),
        unset: [...document.querySelectorAll(".math")].filter(
            f => !f.querySelector("mjx-container") || f.querySelector("[data-mjx-error]")
        ).map(f => f.textContent),
        markup: [...document.querySelectorAll("main p")].map(p => p.textContent).filter(
            text => /[-=~–—]{4,}|(^|\\s):\\w+:\\S|\\.\\. \\w+::/.test(text)
        ),
    };
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def served():
    """The address of the site on this machine, served as visitors get it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    Thread(target=server.serve_forever, daemon=True).start()
    with server:
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def other_pages():
    """All pages except those."""
    for path in sorted(SITE.rglob("*.html")):
        name = path.relative_to(SITE).as_posix()
        if name not in PAGES and not name.startswith("_"):
            yield name


def wrong_with(browser, site, names, width, scheme):
    """The problems of these pages as they are drawn."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    tab, errors = context.new_page(), []
    tab.on("console", lambda m: m.type == "error" and errors.append(m.text))
    tab.on("pageerror", lambda error: errors.append(str(error)))
    # Requests that the next page cuts short are aborted, not missing.
    tab.on(
        "requestfailed",
        lambda request: (
            request.failure != "net::ERR_ABORTED"
            and errors.append(f"{request.url}: {request.failure}")
        ),
    )
    # An answer of 304 means that the browser still has it.
    tab.on(
        "response",
        lambda answer: answer.status >= 400 and errors.append(f"no {answer.url}"),
    )
    for name in names:
        tab.goto(site + name, wait_until="load")
        found = tab.evaluate(MEASURE)
        if found["excess"] > 0:
            errors.append(f"{found['excess']} pixels too wide")
        errors += [f"no picture {source}" for source in found["missing"]]
        errors += [f"formula not set: {formula}" for formula in found["unset"]]
        errors += [f"markup in the text: {text[:60]}" for text in found["markup"]]
        yield from (f"{name}, {width} pixels, {scheme}: {error}" for error in errors)
        errors.clear()
    context.close()


def seen_by(browser, site):
    """The problems of all pages."""
    for width in WIDTHS:
        for scheme in "light", "dark":
            yield from wrong_with(browser, site, PAGES, width, scheme)
    yield from wrong_with(browser, site, other_pages(), WIDTHS[-1], "light")


def main():
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)))
    with served() as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        problems = list(seen_by(browser, site))
        browser.close()
    print(*problems, f"{len(problems)} problems of the pages", sep="\n")
    return len(problems) > 0


if __name__ == "__main__":
    sys.exit(main())

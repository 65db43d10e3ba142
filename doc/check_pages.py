"""Look at the built pages as a visitor does: `make site` runs this.

Ten pages are opened in a headless Chromium, wide and narrow, light and dark: none may be
wider than its window, write errors to the console, or lack a picture. CHROMIUM names the
browser, where it is not found by itself.
"""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SITE = Path(__file__).parent / "_build" / "html"
PAGES = [
    "index.html",
    "install.html",
    "guide/index.html",
    "guide/structures.html",
    "guide/complex_metrics.html",
    "crfsuite.html",
    "papers.html",
    "auto_examples/index.html",
    "auto_examples/plot_tagging.html",
    "generated/sklearn_structsvm.BCFWClassifier.html",
]
WIDTHS = 1280, 390
BROWSERS = "chromium", "chromium-browser", "google-chrome", "chrome"

# How much wider than its window a page is, and which pictures did not load.
MEASURE = """() => ({
    excess: document.documentElement.scrollWidth - window.innerWidth,
    missing: [...document.images].filter(i => i.complete && !i.naturalWidth)
        .map(i => i.getAttribute("src")),
})"""


def seen_by(browser):
    """What is wrong with the pages as they are drawn."""
    for width in WIDTHS:
        for scheme in "light", "dark":
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme
            )
            tab, errors = context.new_page(), []
            tab.on("console", lambda m, e=errors: m.type == "error" and e.append(m.text))
            tab.on("pageerror", lambda error, e=errors: e.append(str(error)))
            for name in PAGES:
                tab.goto((SITE / name).as_uri(), wait_until="load")
                # Pictures below the window are loaded when they are reached.
                tab.evaluate("document.images.forEach?.(i => i.loading = 'eager')")
                found = tab.evaluate(MEASURE)
                where = f"{name}, {width} pixels, {scheme}"
                if found["excess"] > 0:
                    yield f"{where}: {found['excess']} pixels too wide"
                yield from (f"{where}: no picture {src}" for src in found["missing"])
                yield from (f"{where}: {text}" for text in errors)
                errors.clear()
            context.close()


def main():
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        problems = list(seen_by(browser))
        browser.close()
    print(*problems, f"{len(problems)} problems of the pages", sep="\n")
    return len(problems) > 0


if __name__ == "__main__":
    sys.exit(main())

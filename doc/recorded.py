"""Outputs of examples that are not run when the pages are built: not all have the data.

``python doc/recorded.py`` runs them and stores in ``doc/recorded`` what each block of
code prints and draws. The pages show that below the block. If the code is no longer that
which was run, the build fails.
"""

import io
import json
import re
import warnings
from contextlib import redirect_stdout
from pathlib import Path

DOC = Path(__file__).parent
FOLDER = DOC / "recorded"
EXAMPLES = DOC.parent / "examples"
RECORDED = ["sequences/tagger_conll2000", "sequences/superpixels"]

BLOCK = re.compile(r"^\.\. code-block:: Python\n(?:(?: .*)?\n)+", flags=re.M)


def kept(name):
    """What was kept of an example: a list of blocks; empty if nothing was."""
    path = FOLDER / f"{Path(name).name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def code_blocks(name):
    """The blocks of code of an example."""
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    _, blocks = split_code_and_text_blocks(EXAMPLES / f"{name}.py")
    return [content for kind, content, *_ in blocks if kind == "code"]


def record(name):
    """Run an example, and keep what it prints and draws."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
    scope, blocks = {"__name__": "__main__"}, []
    for k, code in enumerate(code_blocks(name)):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, name, "exec"), scope)
        block = {"code": code, "output": printed.getvalue(), "figures": []}
        for number in plt.get_fignums():
            file = f"{Path(name).name}_{k}_{number}.svg"
            style = {"svg.hashsalt": name}
            with plt.rc_context(style):
                plt.figure(number).savefig(
                    FOLDER / file, bbox_inches="tight", metadata={"Date": None}
                )
            block["figures"].append(file)
        plt.close("all")
        print(block["output"], end="")
        blocks.append(block)
    text = json.dumps(blocks, indent=1, ensure_ascii=False) + "\n"
    (FOLDER / f"{Path(name).name}.json").write_text(text, encoding="utf-8")


def with_outputs(page, name):
    """The page that the gallery has made of an example, with what was kept."""
    blocks = kept(name)
    if [block["code"] for block in blocks] != code_blocks(name):
        raise ValueError(f"{name}.py has changed: run python doc/recorded.py")
    following = iter(blocks)

    def add(found):
        block = next(following)
        parts = [found[0].rstrip() + "\n"]
        for file in block["figures"]:
            parts.append(
                "\n.. compound::\n   :class: picture\n\n"
                f"   .. image:: /recorded/{file}\n      :alt: What this code draws\n"
                "      :class: sphx-glr-single-img\n"
            )
        if block["output"]:
            lines = [f"    {line}".rstrip() for line in block["output"].splitlines()]
            shown = "\n".join(lines)
            parts.append(
                ".. rst-class:: sphx-glr-script-out\n\n .. code-block:: none\n\n"
                f"{shown}\n"
            )
        return "\n".join(parts) + "\n"

    return BLOCK.sub(add, page)


def read_page(app, docname, source):
    name = docname.removeprefix("auto_examples/")
    if name in RECORDED:
        source[0] = with_outputs(source[0], name)


def setup(app):
    app.connect("source-read", read_page)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for example in RECORDED:
        record(example)

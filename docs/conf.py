"""How the documentation site is built: ``make docs``."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
from pathlib import Path

from sphinx.application import Sphinx

project = "specstream"
author = "the specstream authors"
copyright = author
release = version = importlib.metadata.version("specstream")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["draw_packages.py", "_build"]

# Links as on a page of the repository: #the-heading.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
# A notebook is run anew by each build, and one that raises fails it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
# What a notebook writes, and Spark leaves where it starts, is none of the sources.
nb_execution_in_temp = True
# Neither pages nor downloads say what Spark does of the machine that builds them.
nb_output_stderr = "remove"
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# It lives for seconds: too short for a compiler that optimises or a collector with threads.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# Blocks without a language are what commands print.
highlight_language = "text"

html_theme = "furo"
html_title = "specstream"
html_static_path = ["_static"]
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))
html_css_files = ["layout.css", "notebook.css", "catalogue.css"]
html_theme_options = {"navigation_with_keys": True}

# Where pages have gone that bookmarks and search engines still know.
MOVED = {
    "guides/event-time": "guides/out-of-order",
    "guides/profile": "guides/tuning",
    "guides/benchmarking": "guides/tuning",
    "guides/migration": "guides/snapshots",
    "explanations/algorithm": "research/algorithm",
    "explanations/phases": "research/phases",
    "contributing/evidence": "research/evidence",
    **{
        f"speed/{name}": f"research/{name}"
        for name in (
            *("containers", "pipelines", "transactional", "early", "latency"),
            *("interpreted", "cores", "spark", "chapter4"),
        )
    },
}

# A notebook that is downloaded stands alone: no page is beside it, and no role is known there.
_LINK = re.compile(r"\[((?:[^\]`]|`[^`]*`)+)\]\((?!https?:)[^)\s]*\)")
_ROLE = re.compile(r"\{[\w:-]+\}`([^`<]+?)(?: *<[^>]*>)?`")


def _on_its_own(text: str) -> str:
    """Prose of a page, as it reads without the other pages."""
    text = _LINK.sub(r"\1", text)
    return _ROLE.sub(lambda role: role[1].removeprefix("~"), text)


def _write_notebooks(app: Sphinx, error: Exception | None) -> None:
    """The notebooks that are offered, once more, with prose that stands alone."""
    for path in Path(app.outdir, "_downloads").rglob("*.ipynb"):
        notebook = json.loads(path.read_text())
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                source = cell["source"]
                text = source if isinstance(source, str) else "".join(source)
                cell["source"] = _on_its_own(text)
        path.write_text(json.dumps(notebook, indent=1))


def _write_redirects(app: Sphinx, error: Exception | None) -> None:
    """A page at each old address that leads to the new one."""
    if error is not None or app.builder.format != "html":
        return
    for old, new in MOVED.items():
        target = f"../{new}.html"
        path = Path(app.outdir, f"{old}.html")
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f'<!doctype html><meta charset="utf-8"><title>{new}</title>'
            f'<meta http-equiv="refresh" content="0; url={target}">'
            f'<p>This page has moved: <a href="{target}">{new}</a></p>\n'
        )


def setup(app: Sphinx) -> None:
    """What is done beside the extensions."""
    app.connect("build-finished", _write_notebooks)
    app.connect("build-finished", _write_redirects)

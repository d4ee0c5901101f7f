"""Settings of Sphinx for the documentation site: ``make docs``.

Pages are CommonMark as a code host reads it, so they look the same there. The folder of sources is
the repository itself: links from a page to the chart, to CONTRIBUTING.md or to a schema are the
same in both places. ``contents.yml`` says which pages there are and in which order.
"""

import os
import re
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]

# Docstrings are read from the package in .venv; the site's own tools come first.
sys.path.insert(0, str(ROOT / "service"))
sys.path.extend(map(str, (ROOT / ".venv").glob("lib/python3*/site-packages")))

project = "spark-cep"
extensions = [
    "myst_parser",
    "sphinx_external_toc",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
include_patterns = ["*.md", "docs/**.md", "helm/README.md", "bench/README.md"]
exclude_patterns = [
    "README.md", ".*", "build", "tests", "service", "examples", "schemas", "supply_chain", "image",
]  # fmt: skip
external_toc_path = "docs/site/contents.yml"

# Anchors of headings are those of a code host.
myst_heading_anchors = 6
# SQL of MATCH_RECOGNIZE and JSON with an ellipsis are coloured as far as the lexer goes. A page may
# have small headings alone.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "spark-cep"
html_favicon = "static/icon.svg"
html_static_path = ["static", os.environ["MERMAID"]]
html_css_files = ["site.css"]
html_js_files = [("mermaid_diagrams.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_domain_indices = False
html_use_index = False


_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:\s]+)\)")


def _without_links_to_folders(_: Sphinx, page: str, source: list[str]) -> None:
    """A folder has a page on a code host alone: here its name stays."""
    folder = (ROOT / page).parent
    source[0] = _LINK.sub(
        lambda link: link[1] if (folder / link[2]).is_dir() else link[0], source[0]
    )


def setup(app: Sphinx) -> None:
    """A block of Mermaid is text for Sphinx; the page draws it."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", _without_links_to_folders)

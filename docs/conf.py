"""The documentation as a site: settings of Sphinx, which `make site` runs.

The sources are the pages as they lie in the repository, so that their links are
those that one follows there; only the table of contents is added.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

from bahdanau_tf import __version__

sys.path.insert(0, str(Path(__file__).parent))

project = "bahdanau_tf"
author = "The bahdanau_tf authors"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstrings",  # the files beside this one
    "equations",
]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "colab/*.md", "export/README.md", "benchmarks/README.md"]
myst_enable_extensions = ["html_image"]
myst_heading_anchors = 3
smartquotes_action = "D"  # dashes; quotes belong to values

# Names of this package in single backticks become links, all else is code.
default_role = "py:obj"
add_module_names = False
maximum_signature_line_length = 80
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# Napoleon would take the text before a colon in "Returns" for a type.
napoleon_custom_sections = [
    ("Attributes", "params_style"),
    ("Call arguments", "params_style"),
    "Masking",
    "Reference",
    "Returns",
]

html_theme = "furo"
html_title = f"bahdanau_tf {version}"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_math_renderer = "mathml"  # of equations.py
html_copy_source = False
html_show_sphinx = False

CONTENTS = """
```{toctree}
:hidden:
:caption: Guide

한국어 <docs/README_ko>
日本語 <docs/README_ja>
docs/how_it_works
colab/README
docs/train
docs/short_strings
docs/models
docs/results
docs/coming_from
docs/decode
docs/serve
export/README
docs/bulk
docs/scale_out
docs/wmt14
docs/reproduce
docs/groundhog
```

```{toctree}
:hidden:
:caption: Reference

docs/reference/models
docs/reference/attention
docs/reference/cells
docs/reference/encoders
docs/reference/readouts
docs/reference/text
docs/reference/training
docs/reference/search
docs/reference/translator
docs/reference/evaluation
docs/reference/pictures
docs/reference/serving
```

```{toctree}
:hidden:
:caption: Development

CONTRIBUTING
BUILD
docs/decisions
benchmarks/README
CHANGELOG
```
"""


def add_contents(app: Sphinx, page: str, text: list[str]) -> None:
    """Appends the table of contents to the start page."""
    if page == root_doc:
        text[0] += CONTENTS


def setup(app: Sphinx) -> None:
    """Adds what is here to Sphinx."""
    app.connect("source-read", add_contents)

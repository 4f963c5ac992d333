"""The site's settings. `scripts/docs` builds it, with warnings as errors and without the network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import jax  # noqa: E402
from pygments.lexers import TextLexer  # noqa: E402

jax.Array.__name__ = "Array"  # signatures have this name, `Float[Array, 'n D']`; JAX says jaxlib._jax.Array

from dre_jax import __version__  # noqa: E402

project = "dre_jax"
author = "The dre_jax authors"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "equations",
    "gallery_pages",
    "page_sources",
    "reference_pages",
    "reference_directives",
]
exclude_patterns = ["_build"]
templates_path: list[str] = []

# Pages
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
executed_pages = [
    "index",
    "start",
    "how-to/tuning",
    "how-to/tuning-past",
    "how-to/scale",
    "how-to/tuning-costs",
    "how-to/objectives",
    "how-to/curves",
    "how-to/fidelity",
    "how-to/trainers",
    "how-to/trackers",
    "how-to/pretrained",
    "how-to/tuning-optuna",
    "how-to/changed-spaces",
    "how-to/own-method",
    "how-to/many-searches",
    "how-to/report",
    "how-to/troubleshooting",
]

# Reference
default_role = "py:obj"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "groupwise"
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
add_module_names = False

# Looks
html_theme = "furo"
html_title = "dre_jax"
html_static_path = ["_static", "figures"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
pygments_style = "default"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp, .go"


def setup(app):
    """Names a language that Pygments does not know."""
    app.add_lexer("csv", TextLexer)

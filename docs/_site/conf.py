"""Sphinx's settings of the site. `build.py` calls it for the pages that it has gathered; see there."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import weft

project = "weft"
author = "the authors of weft"
copyright = author
version = release = weft.__version__

html_math_renderer = "mathml"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["jupyter_execute"]
nitpicky = True
# Without a page here: types of Python and of NumPy, and private classes.
nitpick_ignore_regex = [("py:.*", r"(?!weft\b).*|.*\._\w+")]

html_theme = "furo"
html_title = f"weft {version}"
html_static_path = ["static"]
html_css_files = ["weft.css"]
html_copy_source = False
html_show_copyright = False
pygments_style = "default"
pygments_dark_style = "monokai"

myst_heading_anchors = 4  # links to headings, as GitHub makes them
myst_enable_extensions = ["colon_fence", "dollarmath"]
# The output of a program is a block with a label of its own.
suppress_warnings = ["misc.highlighting_failure"]

nb_execution_mode = "off"  # notebooks have their outputs, which a test compares with a run
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_render_markdown_format = "myst"

autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # docstrings say types, shapes and units
autodoc_inherit_docstrings = True
default_role = "code"  # docstrings quote names with one mark
napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_rtype = False
napoleon_preprocess_types = False

copybutton_exclude = ".linenos, .gp, .go"


def without_doctest_flags(app, what, name, obj, options, lines):
    """Directives for doctest are no part of an example."""
    lines[:] = [re.sub(r"\s*# doctest: .*$", "", line) for line in lines]


def math_inline(translator, node):
    """A formula as MathML, which browsers show without a script."""
    from docutils.nodes import SkipNode
    from latex2mathml.converter import convert

    translator.body.append(convert(node.astext()))
    raise SkipNode


def math_block(translator, node):
    """A formula on a line of its own."""
    from docutils.nodes import SkipNode
    from latex2mathml.converter import convert

    translator.body.append(f"<p>{convert(node.astext(), display='block')}</p>")
    raise SkipNode


def setup(app):
    """Called by Sphinx."""
    from pygments.lexers.special import TextLexer

    # `output` and `py` blocks of our pages: what is printed, and programs that are not run by themselves.
    app.add_lexer("output", TextLexer)
    app.add_lexer("ptx", TextLexer)
    app.connect("autodoc-process-docstring", without_doctest_flags)
    app.add_html_math_renderer("mathml", (math_inline, None), (math_block, None))

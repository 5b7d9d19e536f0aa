"""How Sphinx makes the book of the pages that scripts/book.py has staged."""

import functools
import importlib.util
from pathlib import Path

from docutils import nodes
from sphinx.search.en import SearchEnglish

project = html_title = "Attention and transformers"
html_short_title = "Attention"
copyright = "the course's authors; text and figures CC BY 4.0, code MIT"
language = "en"
extensions = ["myst_nb"]
exclude_patterns = ["**/.*"]

# Notebooks are shown with the outputs that they have; nothing is run.
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # these would come from the web
nb_render_image_options = {"alt": "Figure; the text below it says what it shows."}
nb_number_source_lines = False
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 4  # so that links to a heading are checked

html_theme = "furo"
html_extra_path = [str(Path(__file__).resolve().parents[2] / "data" / "explainer.html")]
html_static_path = ["static"]
html_favicon = "static/icon.svg"
html_css_files, html_js_files = ["book.css"], ["book.js", "register.js"]
html_use_index = html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"own-colours": "none", "figure-colours": "none"},
    "dark_css_variables": {"own-colours": "invert(0.87) hue-rotate(180deg)",
                           "figure-colours": "invert(0.94) hue-rotate(180deg) brightness(1.25)"},
}
pygments_style, pygments_dark_style = "friendly", "github-dark"

# MathJax as one file that draws formulas as SVG: with no fonts to load it also works on pages opened from a disk.
html_static_path += [str(Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent
                         / "static" / "mathjax" / "tex-svg.js")]
mathjax_path = "tex-svg.js"
mathjax3_config = mathjax4_config = {"options": {"enableMenu": False, "enableExplorer": False}}


def fold_solutions(app, doctree):
    """In a page of solutions, everything from an exercise's first cell on waits behind a click."""
    if not app.env.docname.startswith("solutions/"):
        return
    for section in doctree.findall(nodes.section):
        cells = [i for i, child in enumerate(section.children) if "cell" in child.get("classes", [])]
        if section[0].astext().startswith(("Exercise", "Your turn", "Extend it")) and cells:
            section.insert(cells[0], nodes.raw("", "<details class='solution'><summary>Show the solution</summary>",
                                               format="html"))
            section.append(nodes.raw("", "</details>", format="html"))


def setup(app):
    SearchEnglish.stem = functools.cache(SearchEnglish.stem)  # each word once, and not at each place: a sixth of the build
    app.connect("doctree-read", fold_solutions)

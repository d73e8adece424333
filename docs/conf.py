"""The site: ``make docs``. Nothing of it comes from the network, when it is built or when it is read."""

import sys
from pathlib import Path

import fourrates

sys.path.insert(0, str(Path(__file__).parent / "_site"))

project = "fourrates"
author = "The fourrates developers"
copyright = author
version = release = fourrates.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
    "as_markdown",
    "blocks",
    "pictures",
]
exclude_patterns = ["_site", "decisions", "design.md"]  # the last two are read in the repository

# Markdown
myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

# Docstrings
default_role = "literal"
autodoc_mock_imports = ["pyspark"]  # large, and nothing of it is described here
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "list"}
autodoc_typehints = "none"  # the text says it in words
numpydoc_show_class_members = False
nitpicky = True  # a reference to something of ours that is not there is an error; a word such as "array" is none
nitpick_ignore_regex = [("py:.*", r"(?!fourrates\.).*")]

# The page
html_theme = "furo"
html_title = "fourrates"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fbf", "color-brand-content": "#1f5fbf"},
    "dark_css_variables": {"color-brand-primary": "#7aa7f0", "color-brand-content": "#7aa7f0"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

"""How the documentation site is built: ``make docs``."""

from __future__ import annotations

import importlib.metadata

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
exclude_patterns = ["draw_rooms.py", "_build"]

# Links as on a page of the repository: #the-heading.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
# A notebook is run anew by each build, and one that raises fails it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "specstream"
html_theme_options = {"navigation_with_keys": True}

"""Sphinx configuration."""

project = "relumine"
author = "the relumine developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
myst_enable_extensions = ["dollarmath"]
autosummary_generate = True
numpydoc_show_class_members = False
html_theme = "furo"
exclude_patterns = ["_build"]
suppress_warnings = ["myst.xref_missing"]
autodoc_typehints = "none"

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


def _escape_bars(app, what, name, obj, options, lines):
    """|x| in a docstring is an absolute value, not a reStructuredText substitution."""
    inside = False
    for k, line in enumerate(lines):
        parts = line.split("``")
        for i, part in enumerate(parts):
            if (i % 2 == 0) != inside:
                parts[i] = part.replace("|", "\\|")
        inside ^= len(parts) % 2 == 0
        lines[k] = "``".join(parts)


def setup(app):
    """Register the docstring filter."""
    app.connect("autodoc-process-docstring", _escape_bars, priority=900)

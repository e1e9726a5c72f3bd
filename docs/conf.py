"""Sphinx configuration."""

import warnings

project = "relumine"
author = "the relumine developers"
copyright = "the relumine developers"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # formulas render without a network
]
myst_enable_extensions = ["dollarmath"]
autosummary_generate = True
numpydoc_show_class_members = False
html_theme = "furo"
html_title = "relumine"
html_static_path = ["_static"]
html_css_files = ["site.css"]
exclude_patterns = ["_build", "gallery/README.rst"]
suppress_warnings = ["myst.xref_missing", "config.cache"]
autodoc_typehints = "none"


class Order:
    """The examples as a newcomer meets them; others follow by name."""

    first = ("recover", "noise", "samples", "classifier", "two_layers", "decode", "memory", "paper", "hardness")

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        name = filename.removeprefix("plot_").removesuffix(".py")
        return (self.first.index(name) if name in self.first else len(self.first), name)


sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": "/plot_",
    "within_subsection_order": Order,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": (),  # what is printed is shown, not what the last line returns
    "abort_on_example_error": True,
    "write_computation_times": False,  # its page loads scripts from elsewhere
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


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

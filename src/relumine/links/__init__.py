"""Links: answers that are probabilities, or other functions of a network's outputs, mapped back.

A new link is a file with a subclass of :class:`Form` and its name in :data:`FORMS`.
"""

from __future__ import annotations

from relumine.links.form import Form
from relumine.links.link import FORMS, LINKS, WORDS, Link, LinkName, form_of, link_of

__all__ = ["FORMS", "LINKS", "WORDS", "Form", "Link", "LinkName", "form_of", "link_of"]

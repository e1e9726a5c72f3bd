"""A folder for each paper: its method, its steps, its theory, its figure.

``rl.papers.awasthi2021``, ``zhong2017``, ``oymak2018`` and ``mondelli2019`` export their papers' boxes; each begins
with an example. :data:`METHODS` declares what those that recover a network from samples can do.

Examples
--------
>>> {name: method.streams for name, method in METHODS.items()}
{'awasthi': True, 'zhong': True}
"""

from relumine.papers import awasthi2021, mondelli2019, oymak2018, zhong2017
from relumine.papers.capabilities import Capabilities

METHODS: dict[str, Capabilities] = {paper.CAPABILITIES.name: paper.CAPABILITIES for paper in (awasthi2021, zhong2017)}

__all__ = ["METHODS", "Capabilities", "awasthi2021", "mondelli2019", "oymak2018", "zhong2017"]

"""A folder for each paper: its method, its steps, its theory, its figure."""

from relumine.papers import awasthi2021, mondelli2019, oymak2018, zhong2017

__all__ = ["awasthi2021", "mondelli2019", "oymak2018", "zhong2017"]

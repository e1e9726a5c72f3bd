"""A layer of which the inputs can be set freely: the first one, and the second behind a known one.

units (what every chord meets in the same place) → signs → sharpen (measured again where there is most room).
"""

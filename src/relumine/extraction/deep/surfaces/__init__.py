"""Surfaces on which units behind known layers switch: they bend where units in front do.

surface → walking (ways in it) → following (from region to region) → probing (does the box bend all over it?) → again
(known layers measured again), planes (of the first layer) → held (all surfaces of a layer).
"""

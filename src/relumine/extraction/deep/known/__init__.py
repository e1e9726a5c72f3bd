"""The layers known so far, and what follows from them alone: nothing here asks the box.

charts (regions on which they are one affine map) → places (chords to ask on) → patterns (random inputs by which units
are on) → moves (that these layers cannot see) → climb (inputs at which units are on or off as wanted) → reach (the
same, found or proved not to exist).
"""

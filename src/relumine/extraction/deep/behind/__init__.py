"""Layers behind two known ones, or behind one wider than what feeds it.

further: surfaces first (across: ways on which kinks tell open weights), then signs (orient) from gradients: balls →
sums → sparse, with hidden (weights no kink shows) and lacking (one unit that is nearly always on). passing → telling →
unsettled: layers with units that are always on. wide: the next layer before the signs of this one.
"""

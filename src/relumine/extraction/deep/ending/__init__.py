"""The last layer, and then the whole network.

last (is this layer the last one?) → single (it is, and its inputs can be set freely). What few inputs show: linear,
residue → equations → columns → opened → missing; showing → plays. All layers: large, confirm.
"""

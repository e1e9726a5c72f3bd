"""The small steps between moments and a network: subspace, scalars, signs, readout."""

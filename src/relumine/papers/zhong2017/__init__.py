"""Zhong, Song, Jain, Bartlett and Dhillon 2017: tensor initialisation, then gradient descent."""

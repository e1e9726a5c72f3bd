"""The box, asked: what it is, where it bends, and what one search carries.

box → kind (is it piecewise linear?) → depth (one hidden layer or more?) → kinks → witnesses (normals) → inquiry.
"""

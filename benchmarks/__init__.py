"""What relumine does and what the alternatives do, on the same data in one run. ``python -m benchmarks --help``.

A *method* (``methods/``) is a short file with ``run(X, y, width, seconds)`` and a reason to skip; a *problem*
(``tests/catalogue/``, which the tests use as well) makes a network and samples of it from a seed; a *measure*
(``measures/``) runs methods on problems and says how its results are shown and compared. Results are JSON in
docs/results, and every table is written from them.
"""

"""Samples: where they are read from (``sources``), and sums over all rows: whitening, moments."""

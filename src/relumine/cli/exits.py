"""Exit codes: 0 done, 1 not recovered, 2 bad input."""

FAILED, BAD_INPUT = 1, 2

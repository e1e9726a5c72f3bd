# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
TORCH  ?= torch==2.13.0
STAMP  := $(VENV)/.installed

.PHONY: setup torch demo test test-all test-portable lint bench bench-quick honesty papers docs pictures clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@echo "Setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -c 'import sys; sys.exit("relumine needs Python 3.11 or newer; run: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

# What the benchmarks compare with and some tests can use; those skip without it
torch: setup
	@$(BIN)/python -c 'import torch' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' || echo 'PyTorch could not be installed'

demo: setup
	@$(BIN)/relumine demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One BLAS thread per test process: two processes on two cores beat one process with two threads.
test: lint
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-all: lint
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "slow or not slow"

# The suite with the arithmetic of other processors, and with inputs moved by their last digit: half an hour.
# `make test-portable TESTS=tests/recovery` for some of it.
test-portable: setup
	$(BIN)/python -m tests.portable $(TESTS)

# About two hours on two idle cores, the black boxes at the end with all of them. A run that was stopped goes on where
# it was; `rm -r build/results` begins anew.
bench: torch
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks run --jobs 2 --without extraction --out build/results
	$(BIN)/python -m benchmarks run --only extraction --out build/results
	cp build/results/*.json docs/results/
	$(BIN)/python -m benchmarks tables

# The papers' figures, which take hours; what is there is kept. What the pages say of them is written from the JSON.
papers: setup
	for paper in zhong2017 oymak2018 mondelli2019; do \
	  $(BIN)/relumine paper $$paper --figure all --out docs/figures/$$paper || exit 1; done
	$(BIN)/python -m benchmarks tables

# Under five minutes: small sizes, few seeds, a page of its own, and what differs from the stored results
bench-quick: setup
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks run --quick --again --jobs 2 --out build/bench
	$(BIN)/python -m benchmarks tables --results build/bench --root build/bench
	@$(BIN)/python -m benchmarks compare docs/results build/bench || true

# What is claimed about 10 000 problems made to mislead, and what is true: some hours. A run that was stopped goes on
# where it was; `rm build/honesty.jsonl` begins anew, FIRST=… takes other seeds.
FIRST ?= 500000
honesty: setup
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.honesty run --problems 10000 --first $(FIRST)
	$(BIN)/python -m benchmarks.honesty table

docs: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# The pictures of the site, the report, a notebook and the demo in docs/figures (needs chromium and chromedriver). Every page
# is opened once without a network: an error on a console, or a page wider than a phone, is an error here.
pictures: docs
	$(BIN)/python docs/screenshots.py

clean:
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache

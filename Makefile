# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: setup demo test test-all lint bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@echo "Setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -c 'import sys; sys.exit("relumine needs Python 3.11 or newer; run: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

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

bench: setup
	$(BIN)/python -m pytest benchmarks --benchmark-only -m "slow or not slow"
	$(BIN)/python -m benchmarks.hot_loop docs/results/hot_loop.json
	$(BIN)/python -m benchmarks.recovery --first 20000 --out docs/results/recovery.json
	$(BIN)/python -m benchmarks.recovery --first 30000 --width-unknown --only "n/p=5" --out docs/results/width_unknown.json
	$(BIN)/python -m benchmarks.scaling --out docs/results/scaling.json
	$(BIN)/python -m benchmarks.against_descent --out docs/results/against_descent.json
	$(BIN)/python -m benchmarks.regressor
	$(BIN)/python -m benchmarks.tables

docs: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache

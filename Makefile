# Every target makes the virtual environment it needs first: nothing else has to be typed on a bare clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARGS ?=
DATA ?= demo
BUDGET ?= steps
SEEDS ?=

.DEFAULT_GOAL := help
.PHONY: help demo train reproduce-reversal compare benchmark test test-all check format tensorboard clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-18s %s\n", $$1, $$2}'
	@echo "  Options: ARGS='...' is passed on (make train ARGS='model=bahdanau seed=2'); PYTHON=python3.12 picks the interpreter;"
	@echo "  DATA=, SEEDS='1 2 3' and BUDGET= are for reproduce-reversal and compare (ARGS='--jobs 1 -- data.folder=PATH')."

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or newer is needed, this is {v[0]}.{v[1]}: make PYTHON=python3.11 ...")'
	@echo "Installing into $(VENV) (once) ..."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY) ## train the three models on embedded data (about 10 minutes on 2 cores) and compare them
	$(BIN)/python scripts/demo.py $(ARGS)

train: $(READY) ## train one model: make train ARGS='model=bahdanau data=multi30k'
	$(BIN)/python -m nmt.train $(ARGS)

reproduce-reversal: $(READY) ## the fixed vector with and without its source reversed, and controls (DATA=demo: 15 minutes; multi30k, wmt14: hours)
	$(BIN)/python scripts/reproduce_reversal.py --data $(DATA) $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

compare: $(READY) ## the three models under one budget (BUDGET=steps|tokens|time|parameters), one report (DATA=demo: 15 minutes)
	$(BIN)/python scripts/compare_models.py --data $(DATA) --budget $(BUDGET) $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

benchmark: $(READY) ## how fast this machine trains the three models, and where the time goes (about 5 minutes)
	$(BIN)/python -m nmt.benchmark train $(ARGS)

# One thread a worker: two workers of two threads each on two cores spend their time waiting for each other.
test test-all: export OMP_NUM_THREADS ?= 1

test: $(READY) ## the fast tests: what continuous integration runs
	$(BIN)/python -m pytest -n 2 -m "not slow" $(ARGS)

test-all: $(READY) ## every test, the slow ones too
	$(BIN)/python -m pytest -n 2 $(ARGS)

check: $(READY) ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

tensorboard: $(READY) ## curves of all runs on http://localhost:6006
	$(BIN)/tensorboard --logdir runs $(ARGS)

clean: ## remove the environment and tool caches; runs/ and data/ stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find nmt tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# Everything happens in a virtual environment under the project, made once and again when its recipe changes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# d4rl does not install on current Python; a test reads one file of its wheel.
JUDGE  := $(VENV)/d4rl-1.1-py3-none-any.whl
# Plain assignments: an ENV in the shell's environment means something else.
ENV     = pointmaze
ARGS    =
RESUME  =
FIG     =

.DEFAULT_GOAL := help
.PHONY: help setup train test format docs reproduce results bench bench-score audit clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) $(JUDGE)  ## make the virtual environment

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "make: $$({ $(PYTHON) --version || echo 'no $(PYTHON)'; } 2>&1 | tail -1) found, expected Python 3.11 or newer (make PYTHON=python3.12 ... names another)" >&2; exit 2; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	# torch first and by its exact version: asked for as a range, pip may fetch several builds to choose from
	$(BIN)/pip install --quiet --constraint constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

$(JUDGE): $(READY)
	@$(BIN)/pip download --quiet --no-deps --dest $(VENV) d4rl==1.1 && touch $@ || echo "make: d4rl 1.1 could not be downloaded; the test that compares with it does not run"

train: $(READY)  ## train and score a policy: make train ENV=pointmaze ARGS="method=bc seed=1", or RESUME=runs/...
	$(BIN)/tailo train $(if $(RESUME),resume=$(RESUME),env=$(ENV)) $(ARGS)

test: $(READY) $(JUDGE)  ## lint, types and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(ARGS)

format: $(READY)  ## let ruff format and fix the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## build the documentation into site/, warnings are errors
	$(BIN)/python tools/docs_pages.py
	$(BIN)/zensical build --clean --strict

reproduce: $(READY)  ## run, draw and judge figures of the paper: make reproduce FIG="standard alpha" ARGS="--hours 1"
	$(BIN)/tailo reproduce $(FIG) $(ARGS)

results: $(READY)  ## measure the project's own cells that results/ lacks, and write the tables
	$(BIN)/python -m tools.ledger $(ARGS)

bench: $(READY)  ## speed and memory against plain loops; some minutes, wants the machine for itself
	$(BIN)/python benchmarks/bench.py $(ARGS)

bench-score: $(READY)  ## CPU seconds to a score, preset fast against preset paper; goes on where it was stopped
	$(BIN)/python benchmarks/time_to_score.py $(ARGS)

audit: $(READY)  ## look every locked package up in the database of known vulnerabilities; needs the network
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[audit]'
	$(BIN)/python -m pip_audit --strict --no-deps --disable-pip --requirement constraints.txt

clean:  ## remove the virtual environment and caches of tools
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist site .cache src/*.egg-info

# Each target makes the virtual environment and installs what it needs when it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(wildcard src/fourrates/*.pyx src/fourrates/*.pxd)

.PHONY: demo test test-ui check bench tables peers clean

demo: $(VENV)/.installed-demo
	$(BIN)/fourrates demo build/demo

test: $(VENV)/.installed-check
	$(BIN)/python -m pytest -q $(PYTEST)

# The report in a browser and `watch` in a terminal. On Debian, as root, what is missing is installed.
test-ui: $(VENV)/.installed-ui
	@if ! { command -v chromium && command -v chromedriver && command -v tmux; } >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq chromium chromium-driver tmux >/dev/null; fi
	FOURRATES_UI=1 $(BIN)/python -m pytest -q tests/ui $(PYTEST)

check: $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/baselines_speed.py
	$(BIN)/python benchmarks/setup_cost.py
	$(BIN)/python benchmarks/cli_speed.py

# The paper's tables for the synthetic scenarios, and run lengths asked against measured: minutes, not seconds.
tables: $(VENV)/.installed-core
	$(BIN)/python benchmarks/paper_tables.py
	$(BIN)/python benchmarks/budget.py

# Beside river, frouros, menelaus and CapyMOA, each in its own environment: a table and two pictures in build/peers.
peers: $(VENV)/.installed-plot
	$(BIN)/python benchmarks/peers/run.py $(PEERS)

clean:
	rm -rf $(VENV) build dist src/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -f src/fourrates/*.c src/fourrates/*.so

$(VENV)/.installed-%: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .$(if $(filter-out core,$*),[$*])
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

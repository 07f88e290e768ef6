# make demo | test | test-all | clean. Everything lives in .venv and is made again only when its sources changed.
PY     ?= python3
JOBS   ?= 2
BIN    := .venv/bin
NATIVE := $(shell find native -type f) CMakeLists.txt
PIP    := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip --disable-pip-version-check install -q

.NOTPARALLEL:
.PHONY: help demo test test-all lint types contracts unit install clean

help:
	@echo "make demo      install what the tour needs, run burnish tour, say where the page is"
	@echo "make test      lint, types, import contracts, tests (under 15 minutes on 2 cores)"
	@echo "make test-all  the same with slow and nightly tests"
	@echo "make install   all that development needs, into .venv"
	@echo "make clean     remove .venv and what was built"

.venv/tools.stamp: pyproject.toml
	@$(PY) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "burnish needs Python 3.11 or newer: make PY=...")'
	@command -v $${CXX:-c++} >/dev/null || { echo "burnish needs a C++ compiler (g++ or clang++)"; exit 1; }
	test -x $(BIN)/pip || $(PY) -m venv .venv
	$(PIP) "scikit-build-core>=0.11" "nanobind>=2.9" "numpy>=2.0" "cmake>=3.26" "ninja>=1.11"
	@touch $@

# Editable: Python sources are used where they are, so only native sources and pyproject.toml are prerequisites.
.venv/demo.stamp: .venv/tools.stamp $(NATIVE)
	$(PIP) --no-build-isolation -e ".[graph]"
	@touch $@

.venv/dev.stamp: .venv/tools.stamp $(NATIVE)
	$(PIP) --no-build-isolation -e ".[all,dev]"
	@touch .venv/demo.stamp $@

install: .venv/dev.stamp

demo: .venv/demo.stamp
	$(BIN)/burnish tour --out out/tour.html

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy

contracts: .venv/dev.stamp
	$(BIN)/lint-imports

unit: .venv/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS)

test: lint types contracts unit

test-all: lint types contracts
	$(BIN)/python -m pytest -n $(JOBS) -m "not gpu"

clean:
	rm -rf .venv build dist out

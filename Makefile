# make demo | test | test-all | bench | clean; everything lives in .venv and is rebuilt only when its sources changed.
PY      ?= python3
BIN     := .venv/bin
NATIVE  := $(shell find native -type f) CMakeLists.txt
JOBS    ?= 2

.PHONY: demo test test-all sanitize lint types contracts unit install clean help
help:
	@echo "make demo      install what the tour needs, run burnish tour"
	@echo "make test      lint, types, import contracts, tests (under 15 minutes on 2 cores)"
	@echo "make test-all  the same with slow and nightly tests"
	@echo "make sanitize  native tests under address, undefined-behaviour and thread sanitizers"
	@echo "make clean     remove .venv and build outputs"

.venv/pip.stamp: pyproject.toml
	test -x $(BIN)/python || $(PY) -m venv .venv
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q "scikit-build-core>=0.11" "nanobind>=2.9" "numpy>=2.0" "cmake>=3.26" "ninja>=1.11"
	touch $@

# The tour needs the base package; the tests also the peers they compare with.
.venv/demo.stamp: .venv/pip.stamp $(NATIVE)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install -q --no-build-isolation -e ".[graph]"
	touch $@

.venv/dev.stamp: .venv/demo.stamp
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install -q --no-build-isolation -e ".[all,dev]"
	touch $@

install: .venv/dev.stamp

demo: .venv/demo.stamp
	$(BIN)/burnish tour --out out/tour.html

lint: .venv/dev.stamp
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples

types: .venv/dev.stamp
	$(BIN)/mypy

contracts: .venv/dev.stamp
	$(BIN)/lint-imports

unit: .venv/dev.stamp
	$(BIN)/python -m pytest -n $(JOBS)

test: lint types contracts unit

test-all: lint types contracts
	$(BIN)/python -m pytest -n $(JOBS) -m "not gpu"

# Native tests without Python, once per sanitizer pair that can share a build.
sanitize: .venv/pip.stamp
	for kind in address,undefined thread; do \
	  PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/sanitize-$$kind -G Ninja -DCMAKE_BUILD_TYPE=None -DBURNISH_SANITIZE=$$kind \
	  && PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/sanitize-$$kind --target native_tests \
	  && for test in build/sanitize-$$kind/*_test; do $$test || exit 1; done || exit 1; \
	done

clean:
	rm -rf .venv build dist out

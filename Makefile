# `make up` runs the product, `make test` proves it. Both set up everything they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help up test check bench clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /	/' | sort

up: $(INSTALLED) ## run Tocsin on embedded Postgres and NATS (data in .tocsin)
	@"$(BIN)/tocsin" up --rules examples/quickstart.yaml

test: check ## every check and every test
	@# With bytecode, also where the environment turns it off: tests start hundreds of processes.
	@PYTHONDONTWRITEBYTECODE= "$(BIN)/python" -m pytest -n auto --dist worksteal

check: $(INSTALLED) ## ruff, mypy --strict, import-linter
	@"$(BIN)/ruff" check .
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/mypy"
	@"$(BIN)/lint-imports"

bench: $(INSTALLED) ## every benchmark, as ratios to a limit in the same run
	@"$(BIN)/python" -m bench all

clean: ## remove the virtual environment, caches and the data of `make up`
	rm -rf $(VENV) .tocsin .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "tocsin needs Python 3.11 or newer: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	@test -x "$(BIN)/python" || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(INSTALLED)

# `make up` runs the product, `make test` proves it. Both set up everything they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# What decides the third-party JavaScript of the console. hatch_build.py installs it.
ASSETS := $(wildcard assets/*) assets/.npmrc
# Tools that write the lock files and the SBOM, and what a production installation has.
SUPPLY := .venv-supply
PRODUCTION := .venv-production
# Only what a lock file names, with its hashes. The lock files are complete: nothing is resolved.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-deps
LOCKED := $(PIP_INSTALL) --require-hashes

.PHONY: help up test check audit lock sbom bench clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /	/' | sort

up: $(INSTALLED) ## run Tocsin on embedded Postgres and NATS (data in .tocsin)
	@"$(BIN)/tocsin" up --rules examples/quickstart.yaml

test: check ## every check and every test
	@"$(BIN)/python" -m tests.browser.chromium
	@# With bytecode, also where the environment turns it off: tests start hundreds of processes.
	@PYTHONDONTWRITEBYTECODE= "$(BIN)/python" -m pytest -n auto --dist worksteal

check: $(INSTALLED) ## ruff, mypy --strict, import-linter, licences, known vulnerabilities
	@"$(BIN)/ruff" check .
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/mypy"
	@"$(BIN)/lint-imports"
	@"$(BIN)/python" -m tests.supply.licences
	@"$(BIN)/python" -m tests.supply.audit

audit: $(INSTALLED) ## known vulnerabilities; fails if no vulnerability service can be reached
	@"$(BIN)/python" -m tests.supply.audit --required

lock: $(SUPPLY)/.installed ## write requirements/ from pyproject.toml; UPGRADE=1 takes the newest versions
	@"$(SUPPLY)/bin/python" -m tests.supply.lock $(if $(UPGRADE),--upgrade)

sbom: $(SUPPLY)/.installed $(PRODUCTION)/.installed ## dist/tocsin.cdx.json: what a production installation has
	@mkdir -p dist
	@"$(SUPPLY)/bin/cyclonedx-py" environment --pyproject pyproject.toml --output-reproducible \
		--output-file dist/tocsin.cdx.json "$(PRODUCTION)"
	@echo "wrote dist/tocsin.cdx.json"

bench: $(INSTALLED) ## every benchmark, as ratios to a limit in the same run
	@"$(BIN)/python" -m bench all

clean: ## remove the virtual environments, caches and the data of `make up`
	rm -rf $(VENV) $(SUPPLY) $(PRODUCTION) .tocsin .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(INSTALLED): pyproject.toml requirements/dev.txt requirements/assets.txt hatch_build.py $(ASSETS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "tocsin needs Python 3.11 or newer: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	@test -x "$(BIN)/python" || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@"$(BIN)/python" $(LOCKED) --requirement requirements/dev.txt
	@"$(BIN)/python" hatch_build.py
	@"$(BIN)/python" $(PIP_INSTALL) --no-build-isolation --editable .
	@touch $(INSTALLED)

$(SUPPLY)/.installed: requirements/supply.txt
	@test -x "$(SUPPLY)/bin/python" || $(PYTHON) -m venv $(SUPPLY)
	@"$(SUPPLY)/bin/python" $(LOCKED) --requirement $<
	@touch $@

$(PRODUCTION)/.installed: pyproject.toml requirements/runtime.txt requirements/build.txt hatch_build.py $(ASSETS)
	@rm -rf $(PRODUCTION)
	@$(PYTHON) -m venv $(PRODUCTION)
	@"$(PRODUCTION)/bin/python" $(LOCKED) --requirement requirements/runtime.txt --requirement requirements/build.txt
	@"$(PRODUCTION)/bin/python" $(PIP_INSTALL) --no-build-isolation .
	@"$(PRODUCTION)/bin/python" -m pip uninstall --quiet --yes --requirement requirements/build.txt setuptools
	@touch $@

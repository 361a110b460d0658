# What one types here. Every target runs through scripts/uv, which brings in uv where it is missing,
# and with --locked, so that what runs is what uv.lock names. `make` alone lists the targets.

.DEFAULT_GOAL := help
.PHONY: help demo test lint format types reference docs dist release bench crash fuzz fuzz-short report

# An environment activated in the caller's shell is not this project's: uv would warn and ignore it.
unexport VIRTUAL_ENV

run := scripts/uv run --locked

help: ## List the targets
	@echo 'Targets:'
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: ## Run the demo: a host, two plugins and an offline cloud brief this repository's README
	@echo '== demo: host, plugins and an in-memory nexus, offline'
	$(run) executa demo

test: ## Run every test on two workers, with a leak check after each
	@echo '== test: pytest on two workers; warnings are errors'
	$(run) pytest -n 2 --dist worksteal

lint: ## Check style and format with ruff; changes nothing
	@echo '== lint: ruff check, then ruff format --check'
	$(run) ruff check .
	$(run) ruff format --check .

format: ## Apply ruff's safe fixes and its format
	@echo '== format: ruff check --fix, then ruff format'
	$(run) ruff check --fix .
	$(run) ruff format .

# The wheels bring pyright and a Node to run it on; without this variable its wrapper asks the
# package index on every run whether there is a newer one.
types: ## Check types with pyright, strict, tests included
	@echo '== types: pyright, strict'
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(run) pyright

reference: ## Write the generated part of docs/ anew: schemas, error codes, OpenAPI, reference
	@echo '== reference: what is generated from code'
	$(run) python -m executa_protocol.schema
	$(run) python -m executa_host.api docs/openapi/actions.json
	$(run) python -m scripts.docs

docs: ## Build docs/ as a site into site/; warnings are errors
	@echo '== docs: sphinx-build'
	@rm -rf site
	$(run) --group docs sphinx-build -q -W --keep-going -b html docs site/html -d site/doctrees
	@echo 'built: open site/html/index.html'

dist: ## Build all distributions, and try the wheels in empty environments
	@echo '== dist: build, install, run'
	$(run) python scripts/dist.py

release: ## Give the unreleased changes a version: make release VERSION=1.2.3
	@echo '== release: one version, and the changelog from its fragments'
	$(run) python scripts/release.py $(VERSION)
	@[ -z "$(VERSION)" ] || $(MAKE) --no-print-directory reference

bench: ## Run the benchmarks; they check every answer and print medians and spread
	@echo '== bench: every suite of python -m benchmarks, beside other implementations'
	$(run) --extra bench python -m benchmarks run

crash: ## Kill an engine of durable actions 500 times, and look for what was lost
	@echo '== crash: SIGKILL at every named point and at random; findings must be 0'
	$(run) python -m tests.crash --kills 500

fuzz: ## Fuzz what reads the wire with 1,000,000 cases, coverage-guided
	@echo '== fuzz: Atheris over the targets of tests/fuzz; findings must be 0'
	$(run) --group fuzz python scripts/fuzz.py --runs 1000000

fuzz-short: ## The same with 6,000 cases; says so where Atheris cannot be installed
	@echo '== fuzz-short: 6,000 cases'
	@if $(run) --group fuzz python -c 'import atheris' 2>/dev/null; then \
		$(run) --group fuzz python scripts/fuzz.py --runs 6000; \
	else \
		echo 'left out: Atheris cannot be installed on this machine'; \
	fi

report: ## Check the plugin pool of anna-app-runtime-local, and write the report into docs/conformance/
	@echo '== report: executa check host on a host that is not ours'
	$(run) python -m scripts.conformance_report

# Every command sets itself up: a fresh machine needs Python 3.11 or newer and make, nothing else.

VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev

# What is tested from outside, and so with every storage engine and store of large bodies.
ON_EACH_ENGINE := tests/blackbox tests/conformance tests/clients
# Nothing is stored there.
WITHOUT_ENGINE := tests/conformance/test_catalogue.py tests/clients/test_nip44_vectors.py \
	tests/clients/test_packages.py tests/clients/test_watch_community_server.py
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist worksteal

CODE := src tests scripts docs/build/example-feature $(wildcard bench)
ARGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# All that is safe on this machine and needs no setting, unless there is a file of settings.
GIT = $(shell $(BIN)/python -c \
	'from podstead.features.git.processes import find_git; find_git(); print("--git")' 2>/dev/null)
FULL = $(if $(findstring --config,$(ARGS) $(PODSTEAD_CONFIG:%=--config)),,--idp $(GIT))

.PHONY: start
start: $(RUN_STAMP) ## Start the server with accounts; options in ARGS, as in: make start ARGS="--port 4000"
	@$(BIN)/podstead start $(FULL) $(ARGS)

.PHONY: test
test: $(DEV_STAMP) ## Run all tests, those from outside also on PostgreSQL and S3; or, with ARGS, what pytest is told
ifeq ($(ARGS),)
	@scripts/install-packages test
	@$(BIN)/python -m tests.support.node
	@$(BIN)/python -m tests.support.python_clients
	$(PYTEST)
	TEST_ENGINE=postgresql TEST_BODIES=s3 $(PYTEST) \
		-m "not embedded" $(WITHOUT_ENGINE:%=--ignore=%) $(ON_EACH_ENGINE)
else
	@$(BIN)/python -m tests.support.system_packages $(ARGS)
	$(PYTEST) $(ARGS)
endif

.PHONY: check
check: $(DEV_STAMP) ## Check format, lint, types, import contracts, documents, texts and scripts
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m scripts.generate_docs --check
	$(BIN)/python -m scripts.texts --check
	$(BIN)/python -m scripts.check_scripts

.PHONY: format
format: $(DEV_STAMP) ## Format the code and apply the safe fixes of the linter
	$(BIN)/ruff check --fix-only $(CODE)
	$(BIN)/ruff format $(CODE)

.PHONY: docs
docs: $(DEV_STAMP) ## Write the generated pages of docs
	$(BIN)/python -m scripts.generate_docs

.PHONY: texts
texts: $(DEV_STAMP) ## Collect the texts of the pages for their translations
	$(BIN)/python -m scripts.texts

.PHONY: tour
tour: $(DEV_STAMP) ## Take the pictures of docs/use/tour.md
	$(BIN)/python -m tests.support.tour_pictures $(ARGS)

.PHONY: bench
bench: $(DEV_STAMP) ## Measure this server beside others, on this machine
	@scripts/install-packages bench
	$(BIN)/python -m bench $(ARGS)

.PHONY: bench-count
bench-count: $(DEV_STAMP) ## Count the instructions of ten requests and compare with the record
	@scripts/install-packages bench
	$(BIN)/python -m bench.counting $(ARGS)

.PHONY: bench-growth
bench-growth: $(DEV_STAMP) ## Measure what requests cost when much is stored
	@scripts/install-packages bench
	$(BIN)/python -m bench.growth $(ARGS)

.PHONY: bench-workers
bench-workers: $(DEV_STAMP) ## Measure what more workers bring on this machine
	@scripts/install-packages bench
	$(BIN)/python -m bench.workers $(ARGS)

.PHONY: bench-nodes
bench-nodes: $(DEV_STAMP) ## Measure what PostgreSQL, a second node and distance cost
	@scripts/install-packages bench
	$(BIN)/python -m bench.nodes $(ARGS)

.PHONY: bench-many-pods
bench-many-pods: $(DEV_STAMP) ## Measure what requests cost among a million pods on PostgreSQL
	$(BIN)/python -m bench.many_pods $(ARGS)

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make lock"
PYTHON_CLIENTS := tests/clients/python

.PHONY: lock
lock: $(DEV_STAMP) ## Pin the newest allowed versions of all dependencies, with hashes
	$(LOCK) --upgrade pyproject.toml --group build --output-file requirements/run.txt
	$(LOCK) pyproject.toml --extra cluster --group build --constraint requirements/run.txt \
		--output-file requirements/cluster.txt
	$(LOCK) --upgrade pyproject.toml --group dev --constraint requirements/run.txt \
		--output-file requirements/dev.txt
	$(LOCK) --upgrade $(PYTHON_CLIENTS)/requirements.in \
		--override $(PYTHON_CLIENTS)/overrides.txt \
		--output-file $(PYTHON_CLIENTS)/requirements.txt

.PHONY: clean
clean: ## Remove the environment and everything that was built; data stays
	rm -rf $(VENV) $(wildcard .venv-*) build dist tests/clients/node_modules tests/clients/applications/node_modules \
		tests/servers/community/node_modules tests/servers/javascript/node_modules \
		tests/browser/node_modules \
		scripts/typescript/node_modules \
		tests/clients/python/.venv \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN_STAMP): requirements/run.txt pyproject.toml
	@VENV=$(VENV) scripts/set-up run

$(DEV_STAMP): requirements/dev.txt pyproject.toml
	@VENV=$(VENV) scripts/set-up dev

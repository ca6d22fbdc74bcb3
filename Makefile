# Needs Python 3.11 or newer, git and make; everything else is put into .venv.

BIN := .venv/bin
# Test files side by side. Three on two cores: tests wait a good deal.
JOBS ?= 3
SOURCES := pyproject.toml constraints.txt
# What .venv was made from. Compared by content: a checkout that only touches times installs nothing.
STAMP := .venv/made-from

.DEFAULT_GOAL := help
.PHONY: help setup agents demo test test-agents check bench rehearse constraints clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: ## make .venv with everything at the pinned versions
	@cat $(SOURCES) | cmp -s - $(STAMP) || PYTHON="$(PYTHON)" .ci/setup

demo: setup ## from nothing to three merged pull requests, on this machine alone; KEEP=1 stays up
	@$(BIN)/watchbill rehearse docs/examples/demo/plan.md --repository docs/examples/demo/shop $(if $(KEEP),--keep)

rehearse: setup ## take the example plan through the stand-ins, on a clone of this repository
	@$(BIN)/watchbill rehearse docs/examples/plan.md --repository .

check: setup ## lint, format, types and layers: what is fast
	@echo "check: ruff"; $(BIN)/ruff check --quiet .
	@echo "check: format"; $(BIN)/ruff format --quiet --check .
	@echo "check: types"; $(BIN)/mypy
	@echo "check: layers"; $(BIN)/lint-imports --no-logo --no-cache

test: check ## everything: check, then all tests, with a real PostgreSQL and a real Temporal server
	@echo "test: pytest"; $(BIN)/pytest --quiet --numprocesses $(JOBS) --dist loadfile -m "not agents"

agents: setup ## put the agent CLIs that we are tested with into .agents; needs npm, and 1.2 GB
	@.ci/agents

test-agents: setup ## the tests with the real agent CLIs in .agents or on PATH, over a stand-in model
	@PATH="$(CURDIR)/.agents/node_modules/.bin:$$PATH" $(BIN)/pytest --quiet -m agents

bench: setup ## the costs, as ratios in one run
	@$(BIN)/python tests/bench/main.py

constraints: ## pin what .venv has now
	@{ sed -n '/^#/p' constraints.txt; $(BIN)/pip freeze --exclude-editable | LC_ALL=C sort -f; } > .venv/pins
	@mv .venv/pins constraints.txt; git diff --stat constraints.txt

clean: ## remove .venv and what the tools keep
	@rm -rf .venv .agents .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

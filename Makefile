# One command each; `make help` lists them. STACK=local (default) needs no cloud account, STACK=dev is AWS.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

STACK ?= local
JOB ?=
PYTHON ?= python3
VENV := .venv
TRAINYARD := $(VENV)/bin/python -m trainyard
PYTEST := $(VENV)/bin/python -m pytest

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  STACK=local (default) runs on this machine; STACK=dev runs on AWS"

$(VENV)/.ready: requirements.lock pyproject.toml $(wildcard local/toolchain/*.lock)
	@$(PYTHON) local/toolchain/bootstrap.py
	@touch $@

.PHONY: setup
setup: $(VENV)/.ready ## Make the Python environment, build or find the tools
	@$(TRAINYARD) setup

.PHONY: up
up: $(VENV)/.ready ## Bring the platform up, run its jobs, show their losses
	@$(TRAINYARD) up --stack $(STACK)

.PHONY: down
down: $(VENV)/.ready ## Destroy both stacks and prove that nothing is left
	@$(TRAINYARD) down --stack $(STACK)

.PHONY: preview
preview: $(VENV)/.ready ## Show what `up` would change, judged by the policy pack
	@$(TRAINYARD) preview --stack $(STACK)

.PHONY: plan
plan: $(VENV)/.ready ## The same as JSON, in build/plan-<project>.json
	@$(TRAINYARD) plan --stack $(STACK)

.PHONY: policy
policy: $(VENV)/.ready ## What the policy pack says of both projects: a table, and build/policy.{md,sarif,json}
	@$(TRAINYARD) policy preview --stack $(STACK)

.PHONY: policies
policies: $(VENV)/.ready ## Write docs/policies.md from the rules, and what their refused cases say
	@cd policy && ../$(VENV)/bin/python -m guardrails.reference > ../docs/policies.md
	@PYTHONPATH=policy $(VENV)/bin/python -m tests.unit.policy.messages

.PHONY: recover
recover: $(VENV)/.ready ## After a killed `up` or `down`: lift its lock, take what it made into the state
	@$(TRAINYARD) recover --stack $(STACK)

.PHONY: status
status: $(VENV)/.ready ## What runs, and which tools are installed, built or stand-ins
	@$(TRAINYARD) status --stack $(STACK)

.PHONY: logs
logs: $(VENV)/.ready ## Logs of a job: make logs JOB=pretrain-mpi
	@$(TRAINYARD) logs --stack $(STACK) "$(JOB)"

.PHONY: clean
clean: ## Stop the local stack and delete its state (what is built stays in the cache)
	@if [ -x $(VENV)/bin/python ]; then $(TRAINYARD) clean; fi
	@rm -rf build

.PHONY: fmt
fmt: $(VENV)/.ready ## Format the code
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .

.PHONY: check
check: $(VENV)/.ready ## Format, lint and types, without changing anything
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ty check
	@unformatted="$$(gofmt -l local tests)"; test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }

.PHONY: lock
lock: $(VENV)/.ready ## Rewrite the lock files from requirements.in
	@$(VENV)/bin/python -m local.toolchain.locks

.PHONY: test
test: setup ## All tests that this machine can run (pytest -m unit for the quick ones)
	@$(PYTEST) -m "unit and not slow" -q -n 2
	@$(PYTEST) -m "policy and not slow" -q -n 2
	@$(PYTEST) -m "not unit and not policy and not slow"

.PHONY: ci
ci: check test ## What the pipeline runs

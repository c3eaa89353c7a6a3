# Every target is one line of help. PORT= and DATA= choose where `make run` lives, SEED= what `make turn` draws.
PYTHON ?= python3
PORT ?= 8000
DATA ?= var/data
SEED ?= 1
POSTGRES ?= postgres://postgres@127.0.0.1:5432/postgres
PY = .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev vllm run turn test test-services check bench screenshots clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv with what running needs
	@$(PYTHON) config/environment.py run

setup-dev: ## the same, and what tests and checks need
	@$(PYTHON) config/environment.py dev

run: setup ## start everything on 127.0.0.1 (PORT=8000 DATA=var/data)
	@$(PY) -m config.launch run --port $(PORT) --data $(DATA)

turn: setup ## one whole turn of the loop on its own stack (SEED=1), report in var/turn.json
	@$(PY) -m config.launch turn --seed $(SEED)

test: setup-dev ## all tests that this machine can run; says which it cannot
	@$(PY) -m pytest

test-services: setup-dev ## the apps' tests on PostgreSQL, Redis and RabbitMQ (POSTGRES=url)
	@FLYWHEEL_DATABASE_URL=$(POSTGRES) $(PY) -m pytest tests/apps tests/services -m "not browser"

check: setup-dev ## ruff, mypy, import-linter, migrations up to date
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .
	@.venv/bin/mypy apps artifacts bench clients config domain models packs workers
	@.venv/bin/lint-imports
	@FLYWHEEL_DATA=var/check $(PY) manage.py makemigrations --check --dry-run

bench: setup-dev ## every benchmark; each is also `make bench-<name>`
	@for script in bench/*.py; do name=$$(basename $$script .py); case $$name in __init__|harness|evals_*|probe_models) ;; *) $(MAKE) --no-print-directory bench-$$name || exit 1;; esac; done

bench-%: setup-dev
	@$(PY) -m bench.$*

vllm: ## make .venv-vllm with vLLM for CPU, for the tests marked vllm
	@$(PYTHON) config/environment.py vllm

screenshots: setup-dev ## every page in light and dark into docs/screenshots
	@$(PY) -m config.launch screenshots

clean: ## remove the environment and all local data
	rm -rf .venv .venv-vllm var

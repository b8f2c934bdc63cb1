# Two commands do everything: `make demo` and `make test`. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help setup demo dev agents tmux postgres bubblewrap agents-lock lock lint test test-fast test-agents fixtures screens docs guard-score bench clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Remuda needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "Cannot create a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.run: requirements/run.txt pyproject.toml | $(BIN)/python
	@echo "Setting up $(VENV) …"
	@$(PIP) install --requirement requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(PIP) uninstall --yes setuptools 2>/dev/null  # its start-up hook would slow every command
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	@echo "Installing what the tests need …"
	@$(PIP) install --requirement requirements/dev.txt
	@touch $@

setup: $(VENV)/.run ## Create .venv with .venv/bin/remuda
	@$(BIN)/python -m compileall -q src

dev: setup $(VENV)/.dev

demo: setup ## Show the main job: no account, no server, no Node
	@$(BIN)/python examples/demo.py

agents: dev ## Install the pinned agent CLIs into the cache
	@$(BIN)/python tools/agents.py >/dev/null

tmux: dev  # installed from the system's packages where there is none
	@$(BIN)/python tools/tmux.py

postgres: dev  # likewise
	@$(BIN)/python tools/postgres.py >/dev/null

bubblewrap: dev  # likewise
	@$(BIN)/python tools/bubblewrap.py

lint: dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-fast: dev tmux postgres bubblewrap ## Everything but the real agent CLIs
	$(BIN)/python tools/suite.py -n 3 --dist worksteal tests/unit tests/integration

test-agents: dev agents tmux bubblewrap ## The real agent CLIs, in a namespace without a network
	$(BIN)/python tools/loopback.py $(BIN)/python tools/suite.py -n 3 --dist worksteal tests/agents

test: lint test-fast test-agents ## Everything; this is what CI runs

fixtures: dev agents screens ## Record the fixtures again from the real agent CLIs: streams, transcripts, screens
	$(BIN)/python tools/loopback.py $(BIN)/python tools/record_fixtures.py
	$(BIN)/python tools/loopback.py $(BIN)/python tools/record_transcripts.py

screens: dev agents tmux ## Record the screens of the terminal interfaces again
	$(BIN)/python tools/loopback.py $(BIN)/python tools/record_screens.py

docs: setup ## Write the generated pages of docs/ again
	$(BIN)/python tools/generate_docs.py

guard-score: dev ## Score the guard against labelled cases (REMUDA_GUARD_CORPUS=FOLDER)
	$(BIN)/python tools/guard_score.py

bench: dev agents ## Measure start-up and overhead against peers and floors
	$(BIN)/python bench/run.py

lock: dev ## Resolve requirements/*.txt again
	$(BIN)/python tools/lock.py

agents-lock: dev ## Resolve the lock files of agents/ again
	$(BIN)/python tools/lock.py --agents
	cd agents && $(abspath $(BIN))/npm install --package-lock-only --omit-lockfile-registry-resolved

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

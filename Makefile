# Everything below works on a fresh machine with python3 and pip alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES ?=

.PHONY: help demo test fuzz coverage clients pi-successor tools install-trial check extension lint types imports docs site bench bench-peers lock lock-site lock-peers clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(STAMP)  ## Replay the session that ships with the project and show the bill
	$(BIN)/pagein replay examples/demo-session.jsonl.gz --html out/demo.html

# In three steps, so that a broken thing is told early: one example each, many examples and slow ones, real agents.
# Real agents have timers of their own: a test that fails once is tried once more, and counted as a rerun in the last line.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

test: $(STAMP) clients tools  ## Run the tests: the fast ones first, then real coding agents against the simulated provider
	$(PYTEST) -m "not clients and not hypothesis and not slow"
	$(PYTEST) -m "not clients and (hypothesis or slow)" --hypothesis-profile same
	$(PYTEST) -m clients --reruns 1 || test $$? -eq 5  # 5: there are none

fuzz: $(STAMP)  ## The property tests with new examples, over and over (ROUNDS=10)
	for round in $$(seq $(or $(ROUNDS),10)); do \
	  $(PYTEST) -m "not clients and hypothesis" || exit 1; \
	done

coverage: $(STAMP)  ## Share of lines and branches that the tests reach, by package (TESTS="tests/store ..." for a part)
	mkdir -p out/coverage && rm -f out/coverage/data*
	$(BIN)/python -m coverage run -m pytest -q -n 2 --dist loadfile -m "not clients and not slow" --hypothesis-profile same $(TESTS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage json --quiet -o out/coverage/report.json
	$(BIN)/python scripts/show_coverage.py out/coverage/report.json

clients:  ## Install the coding agents that are tested against, at pinned versions, into the user's cache
	scripts/install_clients.sh

pi-successor:  ## Run the journeys of pi's extension with pi's successor, which wants node 22
	PAGEIN_CLIENTS=$$(scripts/install_pi_successor.sh) $(BIN)/python -m pytest -q tests/journeys/test_real_pi.py tests/journeys/test_real_pi_paging.py

tools:  ## Install what else the tests run against: PostgreSQL, Chromium and the MCP inspector, where they can be installed
	scripts/install_postgres.sh || echo "the tests of PostgreSQL will be skipped" >&2
	scripts/install_chromium.sh || echo "the tests in a browser will be skipped" >&2
	scripts/install_inspector.sh || echo "the test with the MCP inspector will be skipped" >&2
	scripts/install_axe.sh || echo "the audit of the page for accessibility will be skipped" >&2

install-trial:  ## Build wheel and sdist, install in a fresh environment, and make a call of an agent there
	scripts/try_install.sh

check: lint types imports docs test extension  ## Everything that CI runs

extension: clients  ## Types and style of pi's extension
	scripts/check_extension.sh

lint: $(STAMP)  ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## Types
	$(BIN)/mypy

imports: $(STAMP)  ## The floors of docs/architecture.md
	$(BIN)/lint-imports

docs: $(STAMP)  ## Generated parts of the docs are up to date
	$(BIN)/python scripts/generate_docs.py --check

SITE := out/site-env
$(SITE)/.installed: scripts/site.lock
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r scripts/site.lock
	@touch $@

site: $(SITE)/.installed  ## The docs as a site, in out/site; a link that leads nowhere fails
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict

bench: $(STAMP)  ## Benchmarks, as ratios and counts
	$(BIN)/python benchmarks/run.py

bench-peers: $(STAMP)  ## Others and pagein on the same sessions: docs/reference/benchmarks.md (SESSIONS="FILE ...")
	$(BIN)/python -m benchmarks.peers $(if $(SESSIONS),--sessions $(SESSIONS))

lock:  ## Write requirements.lock anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-header --extra tokens --extra symbols-all --extra git --group dev --output-file requirements.lock pyproject.toml

lock-site:  ## Write scripts/site.lock anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-annotate --no-header --group pyproject.toml:site --output-file scripts/site.lock

lock-peers:  ## Write benchmarks/peers/locks anew, at the versions of locks/*.in (needs uv)
	for peer in benchmarks/peers/locks/*.in; do uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url --no-emit-find-links --output-file $${peer%.in}.lock $$peer; done

clean:  ## Remove what the targets above made
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

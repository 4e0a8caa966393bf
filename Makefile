# Every target does its own set-up: it creates .venv, installs the pinned set it needs, and runs. The library and the service
# (service/) are both installed, in place. The stamp .venv/.installed-<extra> is renewed when a pyproject.toml or constraints.txt changes.

PYTHON  ?= python3
WORKERS ?= 2
VENV    := .venv
BIN     := $(VENV)/bin

CORE    := tests/algorithms tests/mutants tests/bounds tests/bandit tests/estimation tests/faircsc tests/fairness tests/policies \
	tests/rounds tests/test_learner.py tests/test_storage.py tests/test_words.py tests/test_errors.py \
	service/tests/ledger/test_keyring.py service/tests/ledger/test_decision_draw.py service/tests/test_settings.py

SERVICE_check := [check]
SERVICE_test  := [test]
SERVICE_dev   := [check,traces]

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PRECIOUS: $(VENV)/.installed-%
.PHONY: help demo serve check tools test numbers test-slow test-lowest test-newest package claims claims-tables torture bench lint format docs venv clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

demo: $(VENV)/.installed-study  ## the whole story in under a minute: solve, compare the learners, certify; ends with a report
	$(BIN)/evenhand demo

serve: $(VENV)/.installed-study  ## the decision service with simulated people, and its dashboard; stop it with Ctrl-C
	@bash -c 'set -m; $(BIN)/evenhand serve --demo; exit $$?'  # in a group of its own: Ctrl-C is for the service, and make ends as it does

check: $(VENV)/.installed-check  ## the core's tests, ruff and mypy, without services, browser or network: for every small change
	$(BIN)/ruff check -q . && $(BIN)/ruff format -q --check .
	$(BIN)/mypy --disable-error-code import-not-found -p evenhand.algorithms -p evenhand.bounds -p evenhand.bandit -p evenhand.faircsc -p evenhand.fairness -m evenhand.rounds -m evenhand.learner -m evenhand.learners -m evenhand.storage -p evenhand_service
	$(BIN)/pytest -q -m "not thorough and not slow and not claims and not claims_tables" -k "not postgresql" $(CORE)

tools: $(VENV)/.installed-test
	@$(BIN)/python -m scripts.install_tools

test: tools  ## run the quick tier of tests and all doctests; as root it installs the programs they need, else it says what is left out
	$(BIN)/pytest -n $(WORKERS)

numbers: $(VENV)/.installed-test  ## compare weights, decisions and interval ends with the kept ones, bit for bit; before a change of form
	$(BIN)/python -m tests.kept_numbers

test-slow: tools  ## the tests that take more than a few seconds each; before a release
	$(BIN)/pytest -n $(WORKERS) -m slow

test-lowest: tools  ## the same with the oldest versions that pyproject.toml admits
	$(BIN)/uv venv -q --seed --allow-existing --python $(BIN)/python .venv-lowest
	$(BIN)/uv pip install -q --python .venv-lowest --resolution lowest-direct -e '.[test]' -e './service[test]'
	.venv-lowest/bin/pytest -n $(WORKERS)

test-newest: tools  ## the same with the newest versions that there are
	$(BIN)/uv venv -q --seed --allow-existing --python $(BIN)/python .venv-newest
	$(BIN)/uv pip install -q --python .venv-newest --upgrade -e '.[test]' -e './service[test]'
	.venv-newest/bin/pytest -n $(WORKERS)

package: tools  ## build dist/ and try it: the sdist with its own tests, the wheel in empty environments
	$(BIN)/python scripts/check_package.py

claims: $(VENV)/.installed-test  ## measure every claim at full size (about two hours of CPU; EVENHAND_CONTINUE=1 goes on where a run was cut short)
	$(BIN)/pytest -m claims -s

claims-tables: $(VENV)/.installed-test  ## the guarantee under every rate on real tables, and what it costs (within an hour)
	$(BIN)/pytest -m claims_tables -s

torture: tools  ## the service's table of trials: target and figure, row by row
	$(BIN)/python -m service.tests.torture

bench: $(VENV)/.installed-bench  ## compare speed and quality with other solvers, side by side (half an hour; EVENHAND_CONTINUE=1 as above)
	$(BIN)/python -m bench

lint: $(VENV)/.installed-dev  ## ruff, mypy --strict, and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev  ## let ruff format and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-docs  ## build the documentation into site/; a warning is an error
	$(BIN)/sphinx-build -a -E -W --keep-going -q -j $(WORKERS) -b html -d build/doctrees docs site
	$(BIN)/python docs/check_site.py site
	@echo "The documentation is in site/index.html; it needs no network to be read."

venv: $(VENV)/.installed-dev $(VENV)/.installed-test $(VENV)/.installed-bench $(VENV)/.installed-docs  ## install everything and run nothing

clean:  ## remove .venv and everything that was generated
	rm -rf $(VENV) .venv-lowest .venv-newest site build jupyter_execute dist docs/api docs/service .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests service -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "evenhand needs Python 3.11 or newer. Hint: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed-%: pyproject.toml service/pyproject.toml constraints.txt | $(VENV)/.created
	@echo "Installing evenhand[$*] and evenhand-service$(SERVICE_$*) with the versions of constraints.txt into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[$*]' -e './service$(SERVICE_$*)'
	@touch $@

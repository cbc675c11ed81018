# Every target installs what it needs into .venv first; nothing else has to be typed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --durations 15 --durations-min 4

.PHONY: help install demo test test-slow slow campaign ci checks lint types guard layers unit docs clean

help:
	@echo "make demo       train a small encoder on generated text, adapt it to a new language, show before and after (3 minutes)"
	@echo "make test       lint, types, layers and the quick tests (10 minutes)"
	@echo "make test-slow  studies, learning checks, pages in a browser, then killed processes (make campaign) and speed (make guard)"
	@echo "make docs       build the documentation site into site/"

install: $(STAMP)

# torch first: the constraints pin a build that exists for a machine without a GPU
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (a minute or two, once)"
	@$(BIN)/pip install --quiet --disable-pip-version-check torch==$$(sed -n 's/^torch==//p' constraints.txt)
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/isoglot demo

# the static checks run beside the tests and print when they have finished
test: $(STAMP)
	@$(MAKE) --no-print-directory --jobs 2 unit checks

test-slow: slow campaign guard

# processes that are killed: one test at a time
CAMPAIGN := $(addprefix tests/pretraining/,test_kill.py test_campaign.py processes/test_liveness.py processes/test_agreement.py)

slow: $(STAMP)
	$(PYTEST) -m slow $(addprefix --ignore=,$(CAMPAIGN))

campaign: $(STAMP)
	$(BIN)/pytest -m slow $(CAMPAIGN)

# what CI runs of the slow tests, in about 6 minutes: the papers' scripts, commands and pages end to
# end, preparation on Ray, real data; then runs of every kind that are killed
CI_SLOW := $(addprefix tests/,adaptation alignment batching benchmarks cli corpus evaluation exporting \
  explore fetching remote report reproduce tasks) \
  $(addprefix tests/pretraining/,test_resume.py test_seq2seq.py processes/test_interruptions.py)

ci: $(STAMP)
	$(PYTEST) -m slow $(CI_SLOW)
	$(BIN)/pytest -m slow tests/pretraining/test_kill.py

# speeds as ratios to other libraries, compared with benchmarks/guard.json
guard: $(STAMP)
	$(BIN)/python -m benchmarks.guard

unit: $(STAMP)
	$(PYTEST) -m "not slow"

checks: $(STAMP)
	@log=$$(mktemp); $(MAKE) --no-print-directory --keep-going --jobs 1 lint types layers > $$log 2>&1; \
	code=$$?; cat $$log; rm $$log; exit $$code

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports
	$(BIN)/deptry src

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site runs corpora demo demo-compare .mypy_cache .ruff_cache .pytest_cache .hypothesis

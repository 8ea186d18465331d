# Everything a person types. `make help` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help

UV_VERSION := 0.13.7
# uv from the PATH, else one of our own below .tools. Python itself is never downloaded: the machine's is used.
UV := $(or $(shell command -v uv),.tools/bin/uv)
export UV_PYTHON_DOWNLOADS := never
export UV_FROZEN := 1
BED := $(UV) run --all-extras --all-groups --no-group fuzz --quiet python -m redrive_testbed

# Given on the command line, never taken from the environment: a context must be named on purpose.
NODES := 1
CONTEXT :=
RELEASE :=
STAGES :=
BENCH :=
INTO := --markdown docs/benchmarks.md
FAULTS :=
SOAK :=
SOAK_KUBERNETES :=
SECONDS_EACH := 60
BASE :=
WITH :=
ADVISORIES :=
export REDRIVE_CONTEXT := $(CONTEXT)

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo demo-down test check format
demo: setup ## show the main job on a cluster and a broker that it brings up
	@$(BED) demo
demo-down: broker-down cluster-down ## remove what the demo brought up
test: setup ## run every check and test; STAGES="unit integration" for some of them
	@$(BED) test $(STAGES)
check: setup ## lint, types and import contracts: the fast part of the tests
	@$(BED) test lint types contracts
format: setup ## let ruff mend what it can
	@$(UV) run ruff check --fix --quiet . ; $(UV) run ruff format .

.PHONY: faults soak bench bench-ladder bench-worker bench-letters bench-operator
# Each of them is run, whatever became of the others; and what cannot be run here has failed, and is not skipped.
faults: setup ## break things at length and account for every message: hours; FAULTS="--messages 500 --runs 1 --seed 7"
	@export CI=true; failed=0; trap 'exit 130' INT TERM; \
	PYTHONPATH=tests $(UV) run python -m faults --markdown docs/reliability.md $(FAULTS) || failed=1; \
	PYTHONPATH=tests $(UV) run python -m faults --kubernetes --markdown docs/reliability.md $(FAULTS) || failed=1; \
	$(UV) run pytest tests/faults -ra --timeout 3600 || failed=1; \
	REDRIVE_ODD_ROUNDS=47 $(UV) run pytest tests/e2e/test_operator_operation.py -k odd_objects -s || failed=1; \
	exit $$failed
soak: setup ## work for an hour with something broken every minute, and see that nothing grows, then with pods; SOAK="--seed 7" SOAK_KUBERNETES="--minutes 30"
	@failed=0; trap 'exit 130' INT TERM; \
	PYTHONPATH=tests $(UV) run python -m faults.soak --markdown docs/reliability.md $(SOAK) || failed=1; \
	PYTHONPATH=tests $(UV) run python -m faults.kubernetes_soak --markdown docs/reliability.md $(SOAK_KUBERNETES) || failed=1; \
	exit $$failed
bench: ## measure everything side by side, into docs/benchmarks.md; hours; INTO="--add-to docs/benchmarks.md" keeps its runs
	@failed=; for each in ladder worker letters operator; do $(MAKE) --no-print-directory bench-$$each || failed="$$failed bench-$$each"; done; \
	test -z "$$failed" || { echo "error: what failed:$$failed" >&2; exit 1; }
bench-ladder: setup ## the delay ladder; BENCH="--quick" or other flags
	@$(UV) run python -m bench.ladder --json bench-ladder.json $(INTO) $(BENCH)
bench-worker: setup peers ## the worker beside Dramatiq, Celery, FastStream and taskiq; BENCH="--quick" or other flags
	@$(UV) run python -m bench.worker --json bench-worker.json $(INTO) $(BENCH)
bench-letters: setup ## dead letters, looked through and put back; BENCH="--quick" or other flags
	@$(UV) run python -m bench.letters --json bench-letters.json $(INTO) $(BENCH)
bench-operator: setup cluster-up ## the operator with 1,000 consumers; leaves the cluster up; BENCH="--quick" or other flags
	@$(UV) run python -m bench.fleet --json bench-operator.json $(INTO) $(BENCH)

.PHONY: fuzz
fuzz: setup ## feed readers of what strangers write with what a fuzzer makes up; SECONDS_EACH=600
	@PYTHONPATH=tests $(UV) run --all-extras --group fuzz --quiet python -m fuzz --seconds $(SECONDS_EACH)

.PHONY: cluster-up cluster-down cluster-status
cluster-up: setup ## bring up a cluster, or heal the one that is up; CONTEXT=name uses one of yours, NODES=2
	@$(BED) cluster-up --nodes $(NODES)
cluster-down: setup ## remove every trace of the cluster
	@$(BED) cluster-down
cluster-status: setup ## say what is up
	@$(BED) cluster-status

.PHONY: broker-up broker-down broker-status
broker-up: setup ## start a RabbitMQ broker on loopback; RELEASE=3.10 for the oldest
	@$(BED) broker-up $(RELEASE)
broker-down: setup ## end that broker and remove its data
	@$(BED) broker-down
broker-status: setup ## say where that broker listens
	@$(BED) broker-status

.PHONY: images
images: setup ## build the operator's and the consumer's image, load them into the cluster that is up
	@$(BED) images

.PHONY: chart
chart: setup ## make the chart's copies of the kinds, and the table of its values, anew
	@$(BED) chart

.PHONY: dashboards
dashboards: setup ## write the dashboards of the chart anew, from testbed/redrive_dashboards
	@$(UV) run --quiet python -m redrive_dashboards build

.PHONY: release release-compare audit
release: setup ## make what a release publishes, twice, and compare: into dist; BASE=image@sha256:… for the images' base
	@$(UV) run --quiet python -m redrive_release make --base "$(BASE)"
release-compare: setup ## compare dist with somebody else's of the same commit; WITH=folder
	@$(UV) run --quiet python -m redrive_release compare dist "$(WITH)"
audit: setup ## ask for advisories on every locked dependency; ADVISORIES=folder asks a copy of PyPA's database
	@$(UV) run --quiet python -m redrive_release audit $(if $(ADVISORIES),--advisories $(ADVISORIES))

.PHONY: setup
setup: $(UV)
	@$(UV) sync --all-extras --all-groups --no-group fuzz --quiet

# In an environment of their own, apart from the project's lock: bench/peers/pyproject.toml says why.
.PHONY: peers
peers: $(UV) ## install what the worker is measured beside
	@$(UV) sync --project bench/peers --compile-bytecode --quiet

.tools/bin/uv:
	@python3 -m venv .tools || { echo "error: python3 with venv is needed (on Debian: apt-get install python3-venv)"; exit 1; }
	@.tools/bin/pip install --quiet uv==$(UV_VERSION)

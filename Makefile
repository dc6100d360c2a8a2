# Two commands do everything: `make run` and `make test`. Both install what they need by the ordinary package clients.

export PATH := $(HOME)/.cargo/bin:$(PATH)
BINARY := target/release/osmia


.DEFAULT_GOAL := help
.PHONY: help run check test test-exporters timing hostile cluster-test build bench differential simulate sensitivity fuzz build-times

## help: what there is
help:
	@sed -n 's/^## \([a-z-]*\): /  \1\t/p' Makefile | expand -t 20

## run: builds quickly and starts a node with a demo process whose instances move; data in ./osmia-data
run:
	scripts/install-tools
	cargo build --profile quick --locked -p osmia
	target/quick/osmia start --demo --data ./osmia-data

## check: in seconds: format, rules of the house, lints and unit tests of the crates that changed; ALL=1, BASE=COMMIT
check:
	scripts/install-tools check
	scripts/check

## test: everything that CI runs
test:
	scripts/install-tools test
	scripts/test

## test-exporters: the exporter against an Elasticsearch and an OpenSearch that are killed in the middle; KIND=elasticsearch|opensearch
test-exporters:
	scripts/install-tools test
	scripts/test-exporters "$(KIND)"

## timing: the tests that measure time, one after the other; only on a machine without other work do they say something
timing:
	scripts/install-tools
	cargo test --locked -p load -p osmia --test end_to_end --test requests -- --ignored --test-threads=1

## hostile: what nobody should send, to a node beside ordinary instances; ONLY=TEXT for cases with that in their name
hostile: build
	cargo build --release --locked -p hostile
	target/release/osmia-hostile --binary $(BINARY) --only "$(ONLY)"

## cluster-test: faults of three nodes for minutes, with ledgers of two clients that are audited; SEED=SEED SECONDS=SECONDS
cluster-test:
	scripts/install-tools test
	scripts/cluster-test "$(SEED)" "$(SECONDS)"

## build: the fast binary, at target/release/osmia
build:
	scripts/install-tools
	cargo build --release --locked -p osmia

## build-times: builds as `make run` does, from nothing, and prints which ten crates took longest
build-times:
	scripts/install-tools
	scripts/build-times

## bench: micro-benchmarks of the engine, the state, expressions and models; docs/benchmarks.md has those of a node
bench:
	scripts/install-tools
	cargo bench --locked -p engine -p state -p feel -p bpmn -p dmn

## differential: compares the engine with the reference engine; FILTER=TEXT, MODELS=COUNT SEED=SEED, EXPRESSIONS=COUNT, EXPRESSIONS_OF=FILE, TABLES=COUNT, UPDATE_EXPECTATIONS=1
differential:
	scripts/differential

## simulate: a whole cluster under seeded faults; SEEDS=COUNT FIRST=SEED, prints what breaks and the rate
simulate:
	scripts/install-tools
	cargo run --release --locked -p simulator -- --seeds $(or $(SEEDS),1000) --first $(or $(FIRST),1)

## sensitivity: plants known bugs one at a time and lets the simulator find them; ONLY=PATTERN, SEEDS=COUNT
sensitivity:
	scripts/install-tools
	scripts/sensitivity

## fuzz: hostile input for one target, or for each; TARGET=NAME SECONDS=SECONDS
fuzz:
	scripts/install-tools
	scripts/fuzz "$(TARGET)" "$(SECONDS)"

# The tools come from their own installers: rustup brings the toolchain of rust-toolchain.toml, apt the C compiler.

CARGO := $(or $(shell command -v cargo 2>/dev/null),$(HOME)/.cargo/bin/cargo)
BINARY := target/release/osmia

.PHONY: build run tools

## build: the release binary, at target/release/osmia
build: tools
	$(CARGO) build --release --locked -p osmia

## run: a node with a small process that always runs; data in ./osmia-data
run: build
	$(BINARY) start --demo --data ./osmia-data

tools:
	@command -v cc >/dev/null || (apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev)
	@command -v $(CARGO) >/dev/null || \
		(command -v rustup >/dev/null || (apt-get update && apt-get install -y --no-install-recommends rustup)) && \
		(command -v $(CARGO) >/dev/null || rustup toolchain install)

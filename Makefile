# make run     set up what is needed, build, and start the lab: two BIRDs, the agent, a VPP (ONCE=1: check and leave)
# make test    set up what is needed and run every test
# make test-vpp  the suite of all providers alone: on the simulated VPP, and on the real one that VPP_BIN names
# make build   one static binary, target/release/peregrine
# make check   format, purity, lints, documentation
# make bench   whole-process comparison with BIRD and FRR (a part: see benches/README.md), routes into a simulated VPP, idle sessions
# make fuzz    every fuzz target for FUZZ_SECONDS (60) each; needs cargo-fuzz and a nightly toolchain

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
TRIPLE := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
PEREGRINE := $(TARGET_DIR)/release/peregrine
FUZZ_SECONDS ?= 60

.PHONY: run test test-vpp build check bench fuzz clean

run: build
	@sh .ci/packages run
	@ONCE="$(ONCE)" deploy/lab/lab.sh "$(PEREGRINE)"

# Naming the target keeps build scripts and procedural macros dynamic.
build:
	@[ -n "$(TRIPLE)" ] || { echo "Rust is needed, and neither rustc nor cargo is on the PATH of $$(id -un): see https://rustup.rs. With sudo, keep your own PATH: sudo env \"PATH=\$$PATH\" make run" >&2; exit 1; }
	@sh .ci/packages run
	PEREGRINE_COMMIT=$$(git rev-parse --short HEAD 2>/dev/null || echo unknown) RUSTFLAGS='-C target-feature=+crt-static' cargo build --locked --release --target $(TRIPLE) --bin peregrine
	@mkdir -p $(TARGET_DIR)/release
	@cp -f $(TARGET_DIR)/$(TRIPLE)/release/peregrine $(PEREGRINE)

test:
	@sh .ci/packages test
	@skipped=$$(mktemp); status=0; \
	SKIPPED_TESTS=$$skipped cargo test --locked --workspace --no-fail-fast || status=$$?; \
	if [ -s $$skipped ]; then echo; echo "Skipped:"; sort -u $$skipped; else echo; echo "Nothing was skipped."; fi; \
	rm -f $$skipped; exit $$status

# What these tests do most of the time is wait.
test-vpp:
	@sh .ci/packages run
	cargo build --locked --bin peregrine
	@skipped=$$(mktemp); status=0; \
	SKIPPED_TESTS=$$skipped cargo test --locked -p e2e --test vpp --no-fail-fast -- --test-threads 4 $(TESTS) || status=$$?; \
	if [ -s $$skipped ]; then echo; echo "Skipped:"; sort -u $$skipped; fi; \
	rm -f $$skipped; exit $$status

check:
	cargo fmt --all --check
	sh .ci/purity
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked -q

bench:
	@sh .ci/packages test
	cargo build --locked --release --bin peregrine --bin bench-lab
	@echo "Scenarios a, b, e and f with BIRD and FRR; all of a to k with all daemons: $(TARGET_DIR)/release/bench-lab (20 minutes)"
	PEREGRINE_BIN=$(PEREGRINE) $(TARGET_DIR)/release/bench-lab --scenario a,b,e,f --daemon bird,peregrine,frr
	PEREGRINE_BIN=$(PEREGRINE) $(TARGET_DIR)/release/bench-lab --pipeline
	PEREGRINE_BIN=$(PEREGRINE) $(TARGET_DIR)/release/bench-lab --routes --replay
	PEREGRINE_BIN=$(PEREGRINE) $(TARGET_DIR)/release/bench-lab --sessions
	cargo bench --locked -q -p bench-core -- --quick

fuzz:
	@for target in $$(cd fuzz && cargo +nightly fuzz list); do \
	  (cd fuzz && cargo +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS)); done

clean:
	cargo clean

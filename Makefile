# The two commands are `make demo` and `make test`. Each builds what it needs; neither needs more than cargo, Go, make
# and a C compiler.

export CARGO_TARGET_DIR ?= $(CURDIR)/target
export RUST_BACKTRACE ?= 0
TESTCLUSTER = $(CARGO_TARGET_DIR)/debug/testcluster
DENY = $(CARGO_TARGET_DIR)/tools/bin/cargo-deny

.PHONY: demo test lint core deny docs unit fixtures

# Wedges releases with real Helm on a real API server, and repairs them.
demo: tools
	cargo build --quiet --release -p gwrepair
	cargo build --quiet -p testcluster
	$(TESTCLUSTER) run -- testdata/demo.sh

# Everything: lints, documentation, dependencies, and every test on the real control plane.
test: tools lint core deny docs
	cargo build -p testcluster
	$(TESTCLUSTER) run -- cargo test --workspace -- --include-ignored

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

# Nouns and decisions know neither kube nor tokio, and every crate builds alone.
core:
	cargo check -p helm-release --no-default-features
	for crate in goyaml helm-release operator gwrepair testcluster; do cargo check -p $$crate || exit 1; done
	! cargo tree -p helm-release --no-default-features --edges normal | grep -E ' (kube|tokio) v'

# Licences, sources and bans, offline once the crates of all platforms are there. Advisories need a download of their
# own: `cargo deny check advisories`.
deny: $(DENY)
	cargo fetch --quiet --locked
	$(DENY) --offline --log-level error check licenses bans sources
	! cargo tree --workspace --edges normal,build --format '{p} {f}' | grep -E '^[^a-z]*serde_json .*(preserve_order|arbitrary_precision)'

$(DENY):
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/tools/build cargo install cargo-deny --quiet --locked --version 0.20.2 --root $(CARGO_TARGET_DIR)/tools

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# What needs Rust alone.
unit:
	cargo test --workspace

# Writes the records of real Helm anew.
fixtures: tools
	testdata/records/regenerate.sh

.PHONY: tools
tools:
	@command -v cargo >/dev/null || { echo "cargo is missing: apt-get install rustup && rustup default stable" >&2; exit 1; }
	@command -v go >/dev/null || { echo "Go is missing: apt-get install golang" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "a C compiler is missing: apt-get install gcc" >&2; exit 1; }

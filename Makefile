# The two commands are `make demo` and `make test`. Each builds what it needs; neither needs more than cargo, Go, make
# and a C compiler.

export CARGO_TARGET_DIR ?= $(CURDIR)/target
export RUST_BACKTRACE ?= 0
TESTCLUSTER = $(CARGO_TARGET_DIR)/debug/testcluster
DENY_VERSION = 0.20.2
DENY_DIR = $(CARGO_TARGET_DIR)/tools/cargo-deny-$(DENY_VERSION)
DENY = $(DENY_DIR)/bin/cargo-deny

.PHONY: bench demo test lint core deny advisories docs unit fixtures tools

# Wedges releases with real Helm on a real API server, and repairs them.
demo: tools
	cargo build --quiet --locked --release -p gwrepair
	cargo build --quiet --locked -p testcluster
	$(TESTCLUSTER) run -- testdata/demo.sh

# Measures against real Helm and prints the table of docs/performance.md. The first run seeds 50,000 records and keeps them.
bench: tools
	cargo build --quiet --locked --release -p gwrepair
	cargo build --quiet --locked --release -p helm-release --example decode
	cargo build --quiet --locked -p testcluster
	$(TESTCLUSTER) bench --gwrepair $(CARGO_TARGET_DIR)/release/gwrepair \
		--decode $(CARGO_TARGET_DIR)/release/examples/decode

# Everything: lints, documentation, dependencies, and every test on the real control plane.
test: tools lint core deny docs
	cargo build --locked -p testcluster
	$(TESTCLUSTER) run -- cargo test --locked --workspace -- --include-ignored

lint:
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

# Nouns and decisions know neither kube nor tokio, and every crate builds alone.
core:
	cargo check --locked -p helm-release --no-default-features
	for crate in goyaml helm-release operator gwrepair sandbox testcluster; do cargo check --locked -p $$crate || exit 1; done
	tree=$$(cargo tree --locked -p helm-release --no-default-features --edges normal) && \
		! echo "$$tree" | grep -E ' (kube|tokio) v'

# Licences, bans and sources, offline once the crates of all platforms are there.
deny: $(DENY)
	cargo fetch --quiet --locked
	$(DENY) --offline --log-level error check licenses bans sources

# Known flaws of the crates we use. Not part of `make test`: it downloads a database, and fails by what others find.
advisories: $(DENY)
	$(DENY) --log-level error check advisories

# Once; three and a half minutes of processor time.
$(DENY):
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/tools/build \
		cargo install cargo-deny --quiet --locked --version $(DENY_VERSION) --root $(DENY_DIR)
	rm -rf $(CARGO_TARGET_DIR)/tools/build

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet

# What needs Rust alone.
unit:
	cargo test --locked --workspace

# Writes the records of real Helm anew.
fixtures: tools
	testdata/records/regenerate.sh

tools:
	@command -v cargo >/dev/null || { echo "cargo is missing: apt-get install -y rustup && rustup default stable" >&2; exit 1; }
	@command -v go >/dev/null || { echo "Go is missing: apt-get install -y golang-go" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "a C compiler is missing: apt-get install -y gcc" >&2; exit 1; }

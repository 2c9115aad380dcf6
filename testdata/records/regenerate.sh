#!/usr/bin/env bash
# Writes testdata/records/ and testdata/damaged/ anew, with real Helm on the real control plane.
#
# Times, uids, resource versions and random names differ each time, and with them every payload; nothing else should.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --quiet -p testcluster
testcluster=${CARGO_TARGET_DIR:-target}/debug/testcluster
exec "$testcluster" run -- "$testcluster" fixtures testdata records

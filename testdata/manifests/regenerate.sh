#!/usr/bin/env bash
# Writes what Helm builds from every manifest here, and in which orders it sorts kinds. Needs Go.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(mktemp)
trap 'rm -f "$program"' EXIT

go -C "$here/../cluster" build -o "$program" ./manifests
"$program" objects "$here"/*.yaml > "$here/objects.jsonl"
"$program" orders > "$here/orders.json"

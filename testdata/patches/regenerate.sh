#!/usr/bin/env bash
# Writes what the Kubernetes packages answer to every case here, and the table of merge rules. Needs Go.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(mktemp)
trap 'rm -f "$program"' EXIT

go -C "$here/../cluster" build -o "$program" ./patches
for cases in "$here"/*.yaml; do
  "$program" cases "$cases" > "${cases%.yaml}.jsonl"
done
"$program" random 37 240 > "$here/random.jsonl"
go -C "$here/../cluster" run ./schema > "$here/../../helm-release/src/patch/schema.txt"

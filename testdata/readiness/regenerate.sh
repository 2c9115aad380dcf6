#!/usr/bin/env bash
# Writes how kstatus judges every case here. Needs Go.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(mktemp)
trap 'rm -f "$program"' EXIT

go -C "$here/../cluster" build -o "$program" ./readiness
for cases in "$here"/*.yaml; do
  "$program" "$cases" > "${cases%.yaml}.jsonl"
done

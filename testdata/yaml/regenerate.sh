#!/usr/bin/env bash
# Answers every case here anew with the real sigs.k8s.io/yaml. Needs Go.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(mktemp)
new=$(mktemp)
trap 'rm -f "$program" "$new"' EXIT

go -C "$here/../cluster" build -o "$program" ./yamlcases
for how in parse emit; do
  "$program" $how "$here/$how.json" > "$new"
  cp "$new" "$here/$how.json"
done

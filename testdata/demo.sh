#!/usr/bin/env bash
# Wedges three releases with real Helm on a real API server, then finds, explains and repairs them. Run by `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath "${CARGO_TARGET_DIR:-target}")
export PATH="$target/release:$target/debug:${TESTCLUSTER_DIR:-$target/cluster/bin}:$PATH" KUBECONFIG=$TESTCLUSTER_KUBECONFIG
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HELM_CACHE_HOME=$work/cache HELM_CONFIG_HOME=$work/config HELM_DATA_HOME=$work/data XDG_DATA_HOME=$work/share
chart=testdata/charts/guarded
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$bold" "$*" "$plain"; }

# run CODE COMMAND…: shows a command and runs it; any other exit code than CODE ends the demo.
run() {
    local want=$1 code=0; shift
    show "$@"
    "$@" || code=$?
    if [ $code -ne 0 ]; then echo "[exit $code]"; fi
    if [ $code -ne "$want" ]; then echo "expected exit $want" >&2; exit 1; fi
}
quiet() { show "$@"; "$@" >/dev/null; }

# until_true COMMAND…: polls a condition for a minute.
until_true() {
    local end=$((SECONDS + 60))
    until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || { echo "never true: $*" >&2; exit 1; }; done
}
is() { [ "$(kubectl get "$1" "$2" -n "$3" -o "jsonpath=$4" 2>/dev/null)" = "$5" ]; }

# killed_waiting NAMESPACE MESSAGE HELM…: runs Helm, and kills it once its workload says MESSAGE and Helm waits for it.
killed_waiting() {
    local namespace=$1 message=$2; shift 2
    show "$@ &"
    "$@" >/dev/null 2>&1 &
    local pid=$!
    until_true is deployment web "$namespace" '{.spec.template.metadata.annotations.message}' "$message"
    printf '%s$ kill -9 %s%s\n' "$bold" $pid "$plain"
    kill -9 $pid
    wait $pid 2>/dev/null || true
}

for namespace in cart pay shop; do kubectl create namespace $namespace >/dev/null; done

say "A first install, killed while it waits for a pod that never becomes ready. It holds no data yet."
killed_waiting cart one helm3 install web $chart -n cart --set message=one,pod=never-ready,guarded=null --wait

say "An upgrade that brings a Namespace, a claim, a CRD and a ConfigMap, killed in the middle of them: before its write 6."
quiet helm4 install web $chart -n shop --set message=one --wait
quiet testcluster kill 6 helm4 upgrade web $chart -n shop --set 'message=two,maps={a,d},guarded={one,two}'

say "A rollback to a revision that was never ready, killed while it waits."
quiet helm3 install web $chart -n pay --set message=one,pod=never-ready
quiet helm3 upgrade web $chart -n pay --set message=two --wait
killed_waiting pay one helm3 rollback web 1 -n pay --wait

say "Helm has locked all three for ever."
run 1 helm3 upgrade --install web $chart -n pay
run 1 helm4 upgrade --install web $chart -n shop

say "Find them. Their authors may still be waiting: nothing proves that they are dead, so a repair would wait for them."
run 3 gwrepair scan -A

say "We know that they are dead, for we killed them. What would be done?"
run 3 gwrepair plan web -n shop --assume-dead

say "Do it."
for namespace in cart pay shop; do run 0 gwrepair repair web -n $namespace --assume-dead --yes -q; done

say "Nothing is stuck, and stock Helm goes on."
run 0 gwrepair scan -A
for namespace in cart pay shop; do
    quiet helm3 upgrade --install web $chart -n $namespace
    quiet helm4 upgrade --install web $chart -n $namespace
done
run 0 gwrepair history web -n shop

#!/usr/bin/env bash
# Wedges three releases with real Helm on a real API server, then finds, explains and repairs them. Run by `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
export PATH="$target/release:${TESTCLUSTER_DIR:-$target/cluster/bin}:$PATH" KUBECONFIG=$TESTCLUSTER_KUBECONFIG
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HELM_CACHE_HOME=$work/cache HELM_CONFIG_HOME=$work/config HELM_DATA_HOME=$work/data
chart=testdata/charts/guarded
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
run() { printf '%s$ %s%s\n' "$bold" "$*" "$plain"; "$@" || echo "[exit $?]"; }

# until_true COMMAND…: polls a condition for a minute.
until_true() {
    local end=$((SECONDS + 60))
    until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || { echo "never true: $*" >&2; exit 1; }; done
}
is() { [ "$(kubectl get "$1" "$2" -n "$3" -o "jsonpath=$4" 2>/dev/null)" = "$5" ]; }

# killed NAMESPACE TEMPLATE-MESSAGE HELM…: runs Helm, and kills it once its workload is written and it waits.
killed() {
    local namespace=$1 message=$2; shift 2
    printf '%s$ %s &   # then: kill -9%s\n' "$bold" "$*" "$plain"
    "$@" >/dev/null 2>&1 &
    local pid=$!
    until_true is deployment web "$namespace" '{.spec.template.metadata.annotations.message}' "$message"
    kill -9 $pid
    wait $pid 2>/dev/null || true
}

for namespace in cart pay shop; do kubectl create namespace $namespace >/dev/null; done

say "A first install, killed while it waits for a pod that never becomes ready. It holds nothing yet."
killed cart one helm3 install web $chart -n cart --set message=one,pod=never-ready,guarded=null --wait

say "An upgrade that adds a ConfigMap, a claim, a Namespace and a CRD, killed in the same way."
helm4 install web $chart -n shop --set message=one --wait >/dev/null
killed shop two helm4 upgrade web $chart -n shop --set 'message=two,pod=never-ready,maps={a,d},guarded={one,two}' --wait

say "A rollback, killed."
helm3 install web $chart -n pay --set message=one,pod=never-ready >/dev/null
helm3 upgrade web $chart -n pay --set message=two --wait >/dev/null
killed pay one helm3 rollback web 1 -n pay --wait

say "Helm has locked all three for ever."
run helm3 upgrade --install web $chart -n shop

say "Find them. Their authors may still be waiting: nothing proves that they are dead, so it would wait for them."
run gwrepair scan -A

say "We know that they are dead, for we killed them. What would be done?"
run gwrepair plan web -n shop --assume-dead

say "Do it."
for namespace in cart pay shop; do run gwrepair repair web -n $namespace --assume-dead --yes -q; done

say "Nothing is stuck, and stock Helm goes on."
run gwrepair scan -A
for namespace in cart pay shop; do
    helm3 upgrade --install web $chart -n $namespace >/dev/null && echo "helm 3 upgraded $namespace/web"
    helm4 upgrade --install web $chart -n $namespace >/dev/null && echo "helm 4 upgraded $namespace/web"
done
run gwrepair history web -n shop

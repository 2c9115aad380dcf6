#!/usr/bin/env bash
# Builds the control plane, kwok, kubectl, Helm 3 and 4 and what measures Helm into the folder $1, unless they are there already and as go.mod asks.
# Cold on 2 cores: about 9 minutes.
set -euo pipefail

cd "$(dirname "$0")"
out=$(realpath -m "${1:?usage: build.sh DIR}")
programs=(decode etcd helm3 helm4 kube-apiserver kube-controller-manager kube-scheduler kubectl kwok)
export CGO_ENABLED=0 GOFLAGS=-mod=readonly

want=$(sed -n 's/^go //p' go.mod)
need() {
    echo "Go $want or newer is needed to build the control plane: $1" >&2
    exit 1
}
command -v go >/dev/null || need 'apt-get install -y golang-go'
have=$(go env GOVERSION 2>/dev/null) || have=go0 # it refuses a go.mod that is newer than itself
[ "$(printf '%s\n' "go$want" "$have" | sort -V | head -n 1)" = "go$want" ] || need 'go env -w GOTOOLCHAIN=auto'

stamp=$(cat go.mod go.sum build.sh decode/main.go <(echo "$have") | sha256sum | cut -d' ' -f1)
fresh() {
    [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ] || return 1
    for program in "${programs[@]}"; do [ -x "$out/$program" ] || return 1; done
}

mkdir -p "$out"
exec 9>"$out/lock"
flock 9 # two test runs may come here at once
fresh && exit 0
rm -f "$out/stamp"
echo "building the control plane into $out" >&2

version() { go list -m -f '{{.Version}}' "$1"; }
k8s=$(version k8s.io/kubernetes)
helm3=$(version helm.sh/helm/v3)
helm4=$(version helm.sh/helm/v4)
minor=$(echo "$k8s" | cut -d. -f2)

# Without these the server calls itself v0.0.0-master+$Format:%H$, which Helm cannot parse, and Helm 3 renders for Kubernetes 1.20.
base=k8s.io/component-base/version
k8s_flags="-s -w -X $base.gitVersion=$k8s -X $base.gitMajor=1 -X $base.gitMinor=$minor -X $base.gitTreeState=clean"
flags3="-s -w -X helm.sh/helm/v3/internal/version.version=$helm3 -X helm.sh/helm/v3/internal/version.gitTreeState=clean"
for package in pkg/lint/rules pkg/chartutil; do
    flags3+=" -X helm.sh/helm/v3/$package.k8sVersionMajor=1 -X helm.sh/helm/v3/$package.k8sVersionMinor=$minor"
done
flags4="-s -w -X helm.sh/helm/v4/internal/version.version=$helm4 -X helm.sh/helm/v4/internal/version.gitTreeState=clean"

# A program may be running: its file is replaced, not overwritten.
build() { go build -ldflags "$2" -o "$out/$1.new" "$3" && mv "$out/$1.new" "$out/$1"; }
for program in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
    build "$program" "$k8s_flags" "k8s.io/kubernetes/cmd/$program"
done
build helm3 "$flags3" helm.sh/helm/v3/cmd/helm
build helm4 "$flags4" helm.sh/helm/v4/cmd/helm
build etcd '-s -w' go.etcd.io/etcd/server/v3
build decode '-s -w' ./decode
build kwok '-s -w' sigs.k8s.io/kwok/cmd/kwok
echo "$stamp" > "$out/stamp"

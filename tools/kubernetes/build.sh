#!/usr/bin/env bash
# Compiles a real Kubernetes control plane for tests and demos: etcd, API server, controllers and scheduler as one program, kwok (plays the
# kubelets) and Karpenter with its kwok provider. Needs Go, no cgo; about 11 minutes of two idle cores the first time, nothing afterwards.
#
#   build.sh      into ${RELEVO_CACHE:-~/.cache/relevo}/kubernetes/bin; GOCACHE (3 GB) lies beside it unless it is set
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${RELEVO_CACHE:-$HOME/.cache/relevo}/kubernetes
# kwok follows another Kubernetes minor than ours, so it is built on its own.
kwok=v0.7.0

mkdir -p "$cache/bin"
bin=$(cd "$cache/bin" && pwd)
inputs=$(cat "$here"/{go.mod,go.sum,main.go,build.sh} | sha256sum)
if [ "$(cat "$bin/built-from" 2>/dev/null || true)" = "$inputs" ]; then
  echo "up to date: $bin"
  exit
fi
command -v go > /dev/null || { echo "build.sh: Go is missing (Debian package golang-go, or go.dev/dl)" >&2; exit 1; }

export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -mod=readonly" GOCACHE="${GOCACHE:-$cache/go-build}"
cd "$here"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
done
rm -f "$bin/built-from"
go build -buildvcs=false -ldflags "$flags" -o "$bin/kube" .
(cd / && GOBIN=$bin GOFLAGS= go install -ldflags "-s -w" "sigs.k8s.io/kwok/cmd/kwok@$kwok")
go build -buildvcs=false -ldflags "$flags" -o "$bin/karpenter" sigs.k8s.io/karpenter/kwok
# The CRDs come out of the same module version as the program.
cat "$(go list -m -f '{{.Dir}}' sigs.k8s.io/karpenter)"/{pkg,kwok}/apis/crds/*.yaml > "$bin/karpenter-crds.yaml"
echo "$inputs" > "$bin/built-from"
ls -l "$bin"

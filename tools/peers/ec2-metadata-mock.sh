#!/bin/sh
# AWS's own mock of EC2's instance metadata, for the long tests: `ec2-metadata-mock.sh fetch` builds it once, into ${RELEVO_CACHE:-~/.cache/relevo}/bin (about
# 15 s); `ec2-metadata-mock.sh run PORT [ARGUMENT...]` starts it in the foreground, for IMDSv2 only; `ec2-metadata-mock.sh path` prints where it is.
set -eu

VERSION=1.13.0
BIN="${RELEVO_CACHE:-$HOME/.cache/relevo}/bin"
MOCK="$BIN/ec2-metadata-mock"

fetch() {
  if [ -x "$MOCK" ]; then return; fi
  mkdir -p "$BIN"
  GOBIN="$BIN" GOFLAGS=-mod=mod go install -ldflags '-s -w' "github.com/aws/amazon-ec2-metadata-mock/cmd/ec2-metadata-mock@v$VERSION"
}

case "${1:-}" in
  fetch) fetch ;;
  path) echo "$MOCK" ;;
  run)
    fetch
    port="${2:?a port}"
    shift 2
    exec "$MOCK" "$@" -n 127.0.0.1 -p "$port" -I
    ;;
  *)
    echo "usage: ec2-metadata-mock.sh fetch | run PORT [ARGUMENT...] | path" >&2
    exit 2
    ;;
esac

#!/bin/sh
# Pub/Sub with Cloud Monitoring's two gauges, for the long tests; needs Go. `pubsub.sh fetch` builds it once, into ${RELEVO_CACHE:-~/.cache/relevo}/bin (about
# 40 s of CPU, 22 MB), and again when its source has changed; `pubsub.sh run GRPC_PORT PORT [ARGUMENT...]` starts it in the foreground; `pubsub.sh path` prints
# where it is.
set -eu

SOURCE="$(dirname "$0")/pubsub"
BIN="${RELEVO_CACHE:-$HOME/.cache/relevo}/bin"
PEER="$BIN/pubsub-$(cat "$SOURCE"/*.go "$SOURCE/go.sum" | sha256sum | cut -c1-12)"

fetch() {
  if [ -x "$PEER" ]; then return; fi
  mkdir -p "$BIN"
  (cd "$SOURCE" && go build -ldflags '-s -w' -o "$PEER.new" .)
  mv "$PEER.new" "$PEER"
}

case "${1:-}" in
  fetch) fetch ;;
  path) echo "$PEER" ;;
  run)
    fetch
    grpc="${2:?a port for gRPC}"
    http="${3:?a port for HTTP}"
    shift 3
    exec "$PEER" -grpc "127.0.0.1:$grpc" -monitoring "127.0.0.1:$http" "$@"
    ;;
  *)
    echo "usage: pubsub.sh fetch | run GRPC_PORT PORT [ARGUMENT...] | path" >&2
    exit 2
    ;;
esac

#!/bin/sh
# moto (SQS, EventBridge, Auto Scaling and more on loopback) for the long tests: `moto.sh fetch` installs it once, into ${RELEVO_CACHE:-~/.cache/relevo}/moto
# (about 90 s, 320 MB); `moto.sh run PORT` starts it in the foreground; `moto.sh path` prints where the server is.
set -eu

VERSION=5.2.5
CACHE="${RELEVO_CACHE:-$HOME/.cache/relevo}/moto"
SERVER="$CACHE/$VERSION/bin/moto_server"

fetch() {
  if [ -x "$SERVER" ]; then return; fi
  # Half an installation is none: pip makes the server last.
  mkdir -p "$CACHE"
  rm -rf "${CACHE:?}/$VERSION"
  python3 -m venv "$CACHE/$VERSION"
  if ! "$CACHE/$VERSION/bin/pip" install --quiet --disable-pip-version-check "moto[server]==$VERSION"; then
    rm -rf "${CACHE:?}/$VERSION"
    exit 1
  fi
}

case "${1:-}" in
  fetch) fetch ;;
  path) echo "$SERVER" ;;
  run)
    fetch
    exec "$SERVER" -H 127.0.0.1 -p "${2:?a port}"
    ;;
  *)
    echo "usage: moto.sh fetch | run PORT | path" >&2
    exit 2
    ;;
esac

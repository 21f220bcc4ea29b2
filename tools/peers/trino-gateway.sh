#!/bin/sh
# trino-gateway, for the bench that compares ours with it; needs Maven, a JDK of 25 or newer and a PostgreSQL to run with. `trino-gateway.sh fetch` gets its jar
# once, into ${RELEVO_CACHE:-~/.cache/relevo}/trino-gateway (about a minute, 101 MB); `trino-gateway.sh path` prints where the jar is.
set -eu

VERSION=21
CACHE="${RELEVO_CACHE:-$HOME/.cache/relevo}/trino-gateway"
JAR="$CACHE/gateway-ha-$VERSION-jar-with-dependencies.jar"

case "${1:-}" in
  fetch)
    if [ -f "$JAR" ]; then exit 0; fi
    mkdir -p "$CACHE"
    mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
      -Dartifact="io.trino.gateway:gateway-ha:$VERSION:jar:jar-with-dependencies" -DoutputDirectory="$CACHE" >&2
    ;;
  path) echo "$JAR" ;;
  *)
    echo "usage: trino-gateway.sh fetch | path" >&2
    exit 2
    ;;
esac

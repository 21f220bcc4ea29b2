#!/bin/bash
# A real Trino server, for the demo and the long tests; needs Maven and a JDK of 25 or newer. `trino.sh fetch` gets it once, into
# ${RELEVO_CACHE:-~/.cache/relevo}/trino (2 to 4 minutes, 250 MB); `trino.sh path` prints where it is; `trino.sh java` the home of a JDK that can run it; `trino.sh jdbc` gets
# Trino's JDBC driver and prints where it is.
#
# The registry's last server tarball is an old one, so a newer server is assembled from its jars, at the versions that Trino itself builds with. Three things
# that only the tarball has are made here: the main class, the service file of each plugin, the properties of the launcher.
set -euo pipefail

VERSION=483
LAUNCHER=304
JAVA_LEAST=25
PLUGINS='tpch memory exchange-filesystem'
HOME_OF_ALL="${RELEVO_CACHE:-$HOME/.cache/relevo}/trino"
SERVER="$HOME_OF_ALL/$VERSION"

java_home() {
  local home major
  for home in "${JAVA_HOME:-}" /usr/lib/jvm/*; do
    [ -n "$home" ] && [ -x "$home/bin/javac" ] && [ -r "$home/release" ] || continue
    major=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release")
    if [ "${major:-0}" -ge "$JAVA_LEAST" ]; then
      echo "$home"
      return
    fi
  done
  echo "trino.sh: found no JDK of $JAVA_LEAST or newer in JAVA_HOME or /usr/lib/jvm; install one, or let JAVA_HOME lead to it" >&2
  return 1
}

# jars ARTIFACT FOLDER: what it needs at run time
jars() {
  mkdir -p "$work/$1"
  cat >"$work/$1/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>peer</groupId><artifactId>$1</artifactId><version>1</version><packaging>pom</packaging>
  <dependencyManagement><dependencies>
    <dependency><groupId>io.trino</groupId><artifactId>trino-root</artifactId><version>$VERSION</version><type>pom</type><scope>import</scope></dependency>
  </dependencies></dependencyManagement>
  <dependencies>
    <dependency><groupId>io.trino</groupId><artifactId>$1</artifactId><version>$VERSION</version></dependency>
  </dependencies>
</project>
POM
  mvn -B -q -f "$work/$1/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime -Dmdep.prependGroupId=true -DoutputDirectory="$2" >&2
}

main_class() {
  mkdir -p "$work/main/io/trino/server"
  cat >"$work/main/io/trino/server/TrinoServer.java" <<'JAVA'
package io.trino.server;
public final class TrinoServer {
  public static void main(String[] args) {
    new Server().start(TrinoServer.class.getPackage().getImplementationVersion());
  }
}
JAVA
  "$JAVA_HOME/bin/javac" -proc:none -cp "$new/lib/*" -d "$work/classes" "$work/main/io/trino/server/TrinoServer.java"
  printf 'Implementation-Version: %s\n' "$VERSION" >"$work/manifest"
  "$JAVA_HOME/bin/jar" cfm "$new/lib/io.trino.trino-server-main-$VERSION.jar" "$work/manifest" -C "$work/classes" .
}

# plugin NAME: its class is the one at the top of its own package that ends in Plugin
plugin() {
  local class
  jars "trino-$1" "$new/plugin/$1"
  class=$("$JAVA_HOME/bin/jar" tf "$new/plugin/$1/io.trino.trino-$1-$VERSION.jar" |
    awk '!found && sub(/Plugin\.class$/, "Plugin") { gsub("/", "."); found = $0 } END { print found }')
  [ -n "$class" ] || { echo "trino.sh: found no plugin's class in trino-$1" >&2; return 1; }
  rm -rf "$work/services"
  mkdir -p "$work/services/META-INF/services"
  echo "$class" >"$work/services/META-INF/services/io.trino.spi.Plugin"
  "$JAVA_HOME/bin/jar" cf "$new/plugin/$1/services.jar" -C "$work/services" .
}

launcher() {
  local part
  for part in bin properties; do
    mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact="io.airlift:launcher:$LAUNCHER:tar.gz:$part" -DoutputDirectory="$work" >&2
    tar xzf "$work/launcher-$LAUNCHER-$part.tar.gz" -C "$new"
  done
  printf 'main-class=io.trino.server.TrinoServer\nprocess-name=trino-server\n' >"$new/bin/launcher.properties"
  chmod +x "$new"/bin/launcher "$new"/bin/*/launcher
}

fetch() {
  local name
  if [ "$(cat "$SERVER/complete" 2>/dev/null)" = "$VERSION $PLUGINS" ]; then return; fi
  JAVA_HOME=$(java_home)
  export JAVA_HOME
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  new="$SERVER.new"
  rm -rf "$new"
  mkdir -p "$new/plugin"
  echo "trino.sh: getting the server $VERSION" >&2
  jars trino-main "$new/lib"
  main_class
  for name in $PLUGINS; do
    echo "trino.sh: getting the plugin $name" >&2
    plugin "$name"
  done
  launcher
  echo "$VERSION $PLUGINS" >"$new/complete"
  rm -rf "$SERVER"
  mv "$new" "$SERVER"
}

# Trino's own JDBC driver: one jar, 10 MB.
jdbc() {
  local jar="$HOME_OF_ALL/trino-jdbc-$VERSION.jar"
  if [ ! -f "$jar" ]; then
    echo "trino.sh: getting the JDBC driver" >&2
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact="io.trino:trino-jdbc:$VERSION" -DoutputDirectory="$work" >&2
    mkdir -p "$HOME_OF_ALL"
    mv "$work/trino-jdbc-$VERSION.jar" "$jar"
  fi
  echo "$jar"
}

case "${1:-}" in
fetch) fetch ;;
jdbc) jdbc ;;
path) echo "$SERVER" ;;
java) java_home ;;
*)
  echo "usage: trino.sh fetch | path | java | jdbc" >&2
  exit 2
  ;;
esac

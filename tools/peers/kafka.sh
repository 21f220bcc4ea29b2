#!/bin/sh
# Kafka, one broker that is its own controller, for the long tests; needs Java 17 or newer and Maven. `kafka.sh fetch` gets its jars once, into
# ${RELEVO_CACHE:-~/.cache/relevo}/kafka (about 15 s, 44 MB); `kafka.sh run DIR PORT` starts it in the foreground with its data below DIR (4 s of CPU);
# `kafka.sh path` prints where the jars are.
# PORT is open to all, who may do everything; PORT+1 is the controller's; PORT+2 is SASL (PLAIN and SCRAM) over TLS for user `relevo`, who may do nothing until
# ACLs grant it. DIR must hold the broker's certificate and key as broker.pem.
set -eu

VERSION=4.3.1
LIB="${RELEVO_CACHE:-$HOME/.cache/relevo}/kafka/$VERSION"
JAVA="java -Xms128m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn"

fetch() {
  if [ -e "$LIB/complete" ]; then return; fi
  pom="$(mktemp -d)/pom.xml"
  mkdir -p "$LIB"
  cat >"$pom" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>peer</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$VERSION</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
  mvn -q -B -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$LIB"
  rm -r "$(dirname "$pom")"
  touch "$LIB/complete"
}

configure() {
  login='org.apache.kafka.common.security'
  cat <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$(($2 + 1))
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$(($2 + 1)),SASL_SSL://127.0.0.1:$(($2 + 2))
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
log.dirs=$1/data
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.cleaner.dedupe.buffer.size=16777216
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=500
file.delete.delay.ms=100
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=$login.plain.PlainLoginModule required user_relevo="secret";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=$login.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=$login.scram.ScramLoginModule required;
listener.name.sasl_ssl.ssl.keystore.type=PEM
listener.name.sasl_ssl.ssl.keystore.location=$1/broker.pem
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
PROPERTIES
}

case "${1:-}" in
  fetch) fetch ;;
  path) echo "$LIB" ;;
  run)
    dir="${2:?a folder}"
    port="${3:?a port}"
    fetch
    configure "$dir" "$port" >"$dir/server.properties"
    if [ ! -e "$dir/data/meta.properties" ]; then
      # shellcheck disable=SC2086 # words
      $JAVA -cp "$LIB/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$dir/server.properties" \
        --add-scram 'SCRAM-SHA-256=[name=relevo,password=secret]' --add-scram 'SCRAM-SHA-512=[name=relevo,password=secret]' >/dev/null
    fi
    # shellcheck disable=SC2086
    exec $JAVA -cp "$LIB/*" kafka.Kafka "$dir/server.properties"
    ;;
  *)
    echo "usage: kafka.sh fetch | run DIR PORT | path" >&2
    exit 2
    ;;
esac

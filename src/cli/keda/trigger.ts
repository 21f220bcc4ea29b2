/** One trigger of KEDA as a signal, its target, and the connection that it needs. Secrets are never carried over: they are named where they are to be put. */
import type { SignalSpec } from "../../model/demand.ts";
import type { Authentication, Difference, ScaledObject, Trigger } from "./scaled-object.ts";

export interface TriggerContext {
  readonly trigger: Trigger;
  /** Of the trigger in its ScaledObject. */
  readonly index: number;
  readonly object: ScaledObject;
  /** That it refers to; undefined: it refers to none, or none was given. */
  readonly authentication: Authentication | undefined;
  /** The name of the connection. */
  readonly connection: string;
}

export interface ImportedTrigger {
  readonly signal: SignalSpec;
  readonly flow: string;
  /** Work that one instance is to have. */
  readonly target: number;
  /** For the file of connections; null: it needs none. */
  readonly connection: Readonly<Record<string, unknown>> | null;
  readonly differences: readonly Difference[];
}

const TODO = "TODO";

class Reader {
  readonly differences: Difference[] = [];
  readonly #context: TriggerContext;

  constructor(context: TriggerContext) {
    this.#context = context;
  }

  get field(): string {
    return `spec.triggers[${this.#context.index}]`;
  }

  tell(level: Difference["level"], key: string, sentence: string): void {
    this.differences.push({ level, field: key === "" ? this.field : `${this.field}.metadata.${key}`, sentence });
  }

  text(key: string): string | undefined {
    const value = this.#context.trigger.metadata.get(key);
    return value === undefined || value === "" ? undefined : value;
  }

  flag(key: string): boolean {
    return this.text(key) === "true";
  }

  /** What must be there; without it, something to do. */
  must(key: string): string {
    const value = this.text(key);
    if (value !== undefined) return value;
    const env = this.text(`${key}FromEnv`);
    this.tell(
      "todo",
      key,
      env === undefined ? "is not said: put it in" : `is in the workload's environment (${env}), which Relevo does not read: put it in`,
    );
    return TODO;
  }

  number(key: string, usual: number): number {
    const value = this.text(key);
    if (value === undefined) return usual;
    const number = Number(value);
    if (Number.isFinite(number) && number > 0) return number;
    this.tell("todo", key, `is no number above 0 (${value.slice(0, 50)}): ${usual} is taken`);
    return usual;
  }

  /** KEDA keeps a workload at zero up to this; here one piece of work is enough. */
  activation(key: string): void {
    const value = this.text(key);
    if (value !== undefined && Number(value) !== 0)
      this.tell("changed", key, `is ${value}: here a single piece of work is enough to leave zero, unless size.floor is above it anyway`);
  }

  /** A secret of this parameter, by where it is to be found; undefined: none is spoken of. */
  secret(parameter: string): string | undefined {
    const { authentication, connection } = this.#context;
    const name = `${connection}-${parameter}`.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
    const ref = authentication?.spec.secretTargetRef?.find((each) => each.parameter === parameter);
    const env = authentication?.spec.env?.find((each) => each.parameter === parameter)?.name ?? this.text(`${parameter}FromEnv`);
    const from =
      ref !== undefined
        ? `Secret ${ref.name}, key ${ref.key}`
        : env !== undefined
          ? `the workload's environment, ${env}`
          : this.text(parameter) === undefined
            ? undefined
            : "the trigger's own metadata";
    if (from === undefined) return undefined;
    this.tell("todo", parameter, `comes from ${from}: give it to the controller as the environment variable ${name}`);
    return `\${env:${name}}`;
  }

  /** Of an address: literally where it holds no secret. */
  address(parameter: string): string | undefined {
    const said = this.text(parameter);
    return said === undefined ? this.secret(parameter) : this.withoutLogin(parameter, said);
  }

  withoutLogin(parameter: string, address: string): string {
    // Up to the last @: a password may hold whatever ends a host, and one that is shown is worse than an address that is cut short.
    const bare = address.replace(/^([a-z][\w+.-]*:\/\/)?[\s\S]*@/i, "$1");
    if (bare !== address) this.tell("todo", parameter, "holds a login, which is not copied: give it to the controller in another way");
    return bare;
  }

  identity(): string | undefined {
    const { authentication, trigger } = this.#context;
    const ref = trigger.authenticationRef;
    if (ref !== undefined && ref !== null && authentication === undefined)
      this.tell(
        "todo",
        "",
        `refers to ${ref.kind ?? "TriggerAuthentication"} ${ref.name}, which is not in the file: its credentials are missing below`,
      );
    return authentication?.spec.podIdentity?.provider;
  }
}

/** Undefined: there is no signal of this kind, and KEDA's own metric is what remains. */
export function importTrigger(context: TriggerContext): ImportedTrigger | undefined {
  const read = READERS[context.trigger.type];
  return read?.(new Reader(context), context);
}

type Read = (from: Reader, context: TriggerContext) => ImportedTrigger | undefined;

function postgresql(from: Reader, { connection, object }: TriggerContext): ImportedTrigger {
  from.identity();
  const flow = flowOf(object);
  const query = from.must("query").trim().replace(/;+$/, "");
  from.activation("activationTargetQueryValue");
  from.tell(
    "todo",
    "query",
    `answers one number, and whose backlog it is must be known: its flow is called ${flow} here and in worker.flow`,
  );
  const whole = from.secret("connection");
  const [host, user, database] = whole === undefined ? [from.must("host"), from.must("userName"), from.must("dbName")] : [];
  const password = whole === undefined ? from.secret("password") : undefined;
  const port = from.text("port") ?? "5432";
  const login = password === undefined ? user : `${user ?? ""}:${password}`;
  const tls = from.text("sslmode") === undefined ? "" : `?sslmode=${from.text("sslmode") ?? ""}`;
  return {
    signal: { kind: "postgresql", connection, query: `SELECT (${query}) AS backlog, '${flow}' AS flow` },
    flow,
    target: from.number("targetQueryValue", 5),
    connection: {
      name: connection,
      kind: "postgresql",
      url: whole ?? `postgresql://${login ?? ""}@${host ?? TODO}:${port}/${database ?? TODO}${tls}`,
    },
    differences: from.differences,
  };
}

function redisConnection(from: Reader, name: string): Readonly<Record<string, unknown>> {
  from.identity();
  const address = from.address("address");
  const where = address ?? `${from.address("host") ?? from.must("host")}:${from.address("port") ?? "6379"}`;
  const [user, password] = [from.secret("username"), from.secret("password")];
  const login = password === undefined ? "" : `${user ?? ""}:${password}@`;
  const isTls = from.flag("enableTLS");
  if (from.flag("unsafeSsl")) from.tell("changed", "unsafeSsl", "is true: certificates are always verified here");
  return {
    name,
    kind: "redis",
    url: `${isTls ? "rediss" : "redis"}://${login}${where}/${from.text("databaseIndex") ?? "0"}`,
    ...(isTls ? { tls: {} } : {}),
  };
}

function redisList(from: Reader, { connection }: TriggerContext): ImportedTrigger {
  const list = from.must("listName");
  from.activation("activationListLength");
  from.tell(
    "note",
    "listName",
    "counts what waits: name the list into which workers move what they take as signal.processing, so that it counts too",
  );
  return {
    signal: { kind: "redis-list", connection, list },
    flow: `redis/${list}`,
    target: from.number("listLength", 5),
    connection: redisConnection(from, connection),
    differences: from.differences,
  };
}

function redisStream(from: Reader, { connection }: TriggerContext): ImportedTrigger | undefined {
  const [stream, group] = [from.must("stream"), from.text("consumerGroup")];
  if (group === undefined) return undefined;
  from.activation("activationLagCount");
  const by = ["lagCount", "pendingEntriesCount", "streamLength"].find((key) => from.text(key) !== undefined) ?? "pendingEntriesCount";
  if (by !== "lagCount")
    from.tell("changed", by, "counts entries that were delivered and not acknowledged: here those that wait for the group count too");
  return {
    signal: { kind: "redis-stream", connection, stream, group },
    flow: `redis/${stream}/${group}`,
    target: from.number(by, 5),
    connection: redisConnection(from, connection),
    differences: from.differences,
  };
}

const SASL: Readonly<Record<string, string>> = { plaintext: "PLAIN", scram_sha256: "SCRAM-SHA-256", scram_sha512: "SCRAM-SHA-512" };

function kafka(from: Reader, { connection }: TriggerContext): ImportedTrigger | undefined {
  const [topic, group] = [from.text("topic"), from.must("consumerGroup")];
  if (topic === undefined) return undefined;
  from.identity();
  from.activation("activationLagThreshold");
  if (!from.flag("allowIdleConsumers"))
    from.tell(
      "changed",
      "allowIdleConsumers",
      "is not true: KEDA makes no more replicas than the topic has partitions; set size.max to that",
    );
  for (const key of ["partitionLimitation", "excludePersistentLag", "limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions"])
    if (from.text(key) !== undefined && from.text(key) !== "false")
      from.tell("changed", key, "has no counterpart: the lag of all partitions counts");
  if (from.text("scaleToZeroOnInvalidOffset") === "true" || from.text("offsetResetPolicy") === "earliest")
    from.tell(
      "changed",
      "offsetResetPolicy",
      "a group without a committed offset is told as missing here, and the size stays; it is neither zero nor everything",
    );
  const mechanism = from.text("sasl") ?? "none";
  const sasl = SASL[mechanism];
  if (sasl === undefined && mechanism !== "none") from.tell("todo", "sasl", `is ${mechanism}: PLAIN and SCRAM are spoken here`);
  const brokers = (from.text("bootstrapServers") ?? from.must("bootstrapServers")).split(",").map((each) => each.trim());
  const login =
    sasl === undefined
      ? {}
      : { sasl: { mechanism: sasl, username: from.secret("username") ?? TODO, password: from.secret("password") ?? TODO } };
  return {
    signal: { kind: "kafka", connection, topic, group },
    flow: `kafka/${topic}/${group}`,
    target: from.number("lagThreshold", 10),
    connection: { name: connection, kind: "kafka", brokers, ...login, ...(from.text("tls") === "enable" ? { tls: {} } : {}) },
    differences: from.differences,
  };
}

function sqs(from: Reader, { connection }: TriggerContext): ImportedTrigger {
  const url = from.must("queueURL");
  const queue = url.split("/").at(-1) ?? url;
  const provider = from.identity();
  from.activation("activationQueueLength");
  if (from.text("scaleOnInFlight") === "false")
    from.tell("changed", "scaleOnInFlight", "is false: what was taken and is not finished counts here, an instance works on it");
  if (from.flag("scaleOnDelayed")) from.tell("changed", "scaleOnDelayed", "is true: delayed messages do not count here before their time");
  const [keyId, secret] = [from.secret("awsAccessKeyID"), from.secret("awsSecretAccessKey")];
  if (provider !== undefined || from.text("identityOwner") !== undefined)
    from.tell(
      "todo",
      "identityOwner",
      "the controller asks with its own identity (the credentials chain of the AWS SDK): give it sqs:GetQueueUrl and sqs:GetQueueAttributes",
    );
  const endpoint = from.text("awsEndpoint");
  return {
    signal: { kind: "sqs", connection, queue },
    flow: `sqs/${queue}`,
    target: from.number("queueLength", 5),
    connection: {
      ...{ name: connection, kind: "sqs", region: from.must("awsRegion") },
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(keyId === undefined || secret === undefined ? {} : { credentials: { accessKeyId: keyId, secretAccessKey: secret } }),
    },
    differences: from.differences,
  };
}

function pubsub(from: Reader, { connection }: TriggerContext): ImportedTrigger | undefined {
  const mode = from.text("mode") ?? "SubscriptionSize";
  if (mode !== "SubscriptionSize" || (from.text("topicName") !== undefined && from.text("subscriptionName") === undefined))
    return undefined;
  const provider = from.identity();
  const whole = from.must("subscriptionName");
  const parts = /^projects\/([^/]+)\/subscriptions\/([^/]+)$/.exec(whole);
  const [project, subscription] = [parts?.[1] ?? TODO, parts?.[2] ?? whole];
  if (parts === null)
    from.tell(
      "todo",
      "subscriptionName",
      "does not say its project, which KEDA takes from the credentials: put it in, in signal.project and worker.flow",
    );
  from.activation("activationValue");
  const isOfController =
    provider !== undefined || (from.text("credentialsFromEnv") === undefined && from.secret("GoogleApplicationCredentials") === undefined);
  if (isOfController) from.tell("todo", "", "the controller asks with its own identity: give it monitoring.viewer of the project");
  else from.tell("todo", "credentialsFromEnv", "give the controller the key file of a service account with monitoring.viewer, by its path");
  return {
    signal: { kind: "pubsub", connection, project, subscription },
    flow: `pubsub/${project}/${subscription}`,
    target: from.number(from.text("value") === undefined ? "subscriptionSize" : "value", 10),
    connection: { name: connection, kind: "google-monitoring", auth: isOfController ? "metadata" : { keyFile: TODO } },
    differences: from.differences,
  };
}

function prometheus(from: Reader, { connection, object }: TriggerContext): ImportedTrigger {
  from.identity();
  const flow = flowOf(object);
  const query = from.must("query").trim();
  from.activation("activationThreshold");
  if (from.text("ignoreNullValues") !== "false")
    from.tell("changed", "ignoreNullValues", "KEDA takes an answer without a value for 0: here it is missing, and the size stays");
  from.tell("todo", "query", `whose backlog it answers must be known: its label flow says ${flow} here, as worker.flow does`);
  for (const key of ["namespace", "customHeaders", "queryParameters", "cortexOrgID"])
    if (from.text(key) !== undefined) from.tell("todo", key, "is not sent here: put it into the URL, or a proxy before the server");
  const modes = from.text("authModes");
  if (modes !== undefined && modes !== "bearer") from.tell("todo", "authModes", `is ${modes}: a bearer token is what can be sent here`);
  if (from.flag("unsafeSsl")) from.tell("changed", "unsafeSsl", "is true: certificates are always verified here");
  const token = modes === "bearer" ? from.secret("bearerToken") : undefined;
  return {
    signal: { kind: "prometheus", connection, query: `label_replace(${query}, "flow", "${flow}", "", "")`, flowLabel: "flow" },
    flow,
    target: from.number("threshold", 100),
    connection: {
      name: connection,
      kind: "prometheus",
      url: from.withoutLogin("serverAddress", from.must("serverAddress")),
      ...(token === undefined ? {} : { bearerToken: token }),
    },
    differences: from.differences,
  };
}

/** Of what names no queue by itself. */
export function flowOf({ metadata: { namespace, name } }: ScaledObject): string {
  return `scaledobject/${namespace}/${name}`;
}

const READERS: Readonly<Record<string, Read | undefined>> = {
  postgresql,
  redis: redisList,
  "redis-streams": redisStream,
  kafka,
  "apache-kafka": kafka,
  "aws-sqs-queue": sqs,
  "gcp-pubsub": pubsub,
  prometheus,
};

/**
 * Backlog of a Trino coordinator: the queries that wait in its queue, and those that run.
 *
 * 1. Two gauges alone are asked for: all of `/metrics` are 870 KB, and an answer of more than 64 KiB is not read to its end.
 * 2. The environment is the coordinator's own word, asked at each look: another cluster at the same address is another flow's.
 * 3. A coordinator that is starting, and a worker, have a queue of zero that means nothing.
 */
import type { Agent } from "undici";
import { z } from "zod";
import { QUEUED_QUERIES, RUNNING_QUERIES } from "../../model/trino.ts";
import type { DemandReading } from "../../model/demand.ts";
import type { ConnectionOf } from "../connections.ts";
import { demandError } from "../errors.ts";
import { fetchJson, fetchText } from "../http-json.ts";
import type { DemandAdapter } from "../port.ts";
import { sharedAgents } from "../shared-agents.ts";
import type { ClientLease } from "../shared-clients.ts";

type TrinoConnection = ConnectionOf<"trino">;

const SOCKETS_MAX = 4;
const ANSWER_BYTES_MAX = 64 * 1024;

const agents = sharedAgents<TrinoConnection>(SOCKETS_MAX);

export const trinoAdapter: DemandAdapter<"trino"> = {
  kind: "trino",
  needs: {
    infrastructure: "a Trino coordinator with /metrics (tested with 483)",
    permissions: ["GET on /v1/info", "GET on /metrics as a user that the coordinator authenticates"],
  },
  flowOf: () => null,
  open(_, connection) {
    if (connection?.kind !== "trino") throw demandError("not_available", "a trino signal needs a connection of kind trino");
    const lease = agents.lease(connection);
    return {
      read: (signal) => readDemand(connection, lease, signal),
      close: () => lease.release(),
    };
  },
};

const infoSchema = z.object({ environment: z.string().min(1), coordinator: z.boolean(), starting: z.boolean() });

async function readDemand(connection: TrinoConnection, lease: ClientLease<Agent>, signal: AbortSignal): Promise<DemandReading> {
  const { name, url } = connection;
  const call = {
    who: `Trino (connection ${name})`,
    headers: headersOf(connection),
    dispatcher: await lease.client(),
    bytesMax: ANSWER_BYTES_MAX,
  };
  const base = url.replace(/\/+$/, "");
  const environment = environmentOf((await fetchJson({ ...call, url: new URL(`${base}/v1/info`) }, signal)).body, call.who);
  const address = new URL(`${base}/metrics?${[QUEUED_QUERIES, RUNNING_QUERIES].map((gauge) => `name[]=${gauge}`).join("&")}`);
  const { text, date } = await fetchText({ ...call, url: address }, signal);
  const gauges = readGauges(text);
  const backlog = gauges.get(QUEUED_QUERIES);
  if (backlog === undefined) throw demandError("missing", `${call.who} does not tell ${QUEUED_QUERIES}`, { found: text.slice(0, 200) });
  return {
    backlog,
    inFlight: gauges.get(RUNNING_QUERIES) ?? null,
    oldestAgeMs: null,
    flow: `trino/${environment}`,
    valueAt: null,
    sourceNow: date,
  };
}

/** What it may take for JSON it refuses to show as metrics. */
function headersOf({ user, password, bearerToken }: TrinoConnection): Readonly<Record<string, string>> {
  const said = { accept: "*/*", "x-trino-user": user };
  if (bearerToken !== undefined) return { ...said, authorization: `Bearer ${bearerToken}` };
  if (password === undefined) return said;
  return { ...said, authorization: `Basic ${Buffer.from(`${user}:${password}`, "utf8").toString("base64")}` };
}

function environmentOf(body: unknown, who: string): string {
  const info = infoSchema.safeParse(body);
  if (!info.success) throw demandError("type_changed", `what answers as ${who} is no Trino`, { found: body });
  if (!info.data.coordinator)
    throw demandError("missing", `${who} is a worker: only a coordinator has a queue`, {
      todo: "give the connection the coordinator's address",
    });
  if (info.data.starting) throw demandError("missing", `${who} is starting: its queue says nothing yet`);
  return info.data.environment;
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]+(\S+)/;

/** Whatever is no number becomes NaN, for others to judge. */
function readGauges(text: string): ReadonlyMap<string, number> {
  const lines = text.split("\n").flatMap((line) => {
    const [, name, value] = LINE.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, numberOf(value)] as const];
  });
  return new Map(lines);
}

function numberOf(value: string): number {
  if (/^\+?Inf$/.test(value)) return Number.POSITIVE_INFINITY;
  return value === "-Inf" ? Number.NEGATIVE_INFINITY : Number(value);
}

/** HTTP sockets to the server of a connection, shared by all signals that are read there. */
import { readFile } from "node:fs/promises";
import { Agent } from "undici";
import { SharedClients } from "./shared-clients.ts";

const CONNECT_LIMIT_MS = 3_000;

interface OverTls {
  readonly tls?: { readonly caFile?: string | undefined; readonly serverName?: string | undefined } | undefined;
}

/** At most `socketsMax` calls at a time to one server; the others wait. */
export function sharedAgents<C extends OverTls>(socketsMax: number): SharedClients<C, Agent> {
  return new SharedClients<C, Agent>(
    ({ tls }) => openAgent(tls, socketsMax),
    (agent) => agent.destroy(),
  );
}

async function openAgent(tls: OverTls["tls"], socketsMax: number): Promise<Agent> {
  const ca = tls?.caFile === undefined ? undefined : await readFile(tls.caFile, "utf8");
  return new Agent({
    connections: socketsMax,
    connect: {
      timeout: CONNECT_LIMIT_MS,
      ...(ca === undefined ? {} : { ca }),
      ...(tls?.serverName === undefined ? {} : { servername: tls.serverName }),
    },
  });
}

/** Stand-ins for the metadata of the three clouds, by their documented shapes, with the ways in which metadata is not well. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../kernel/system.ts";
import type { AzureEvent } from "../../notices/azure/read.ts";

/** `hang`: takes the connection and says nothing. */
export type Mood = "well" | "hang" | "garbage" | "failing" | "huge" | { readonly slowMs: number };

export interface MetadataServer {
  readonly url: string;
  /** What it was asked, as `METHOD path`. */
  readonly asked: string[];
  mood: Mood;
  close(): Promise<void>;
}

export interface Ec2Metadata extends MetadataServer {
  /** By path below `/latest/meta-data/`; absent is 404. */
  readonly documents: Map<string, string>;
  /** All tokens so far are refused from now on. */
  forgetTokens(): void;
}

export async function startEc2Metadata(): Promise<Ec2Metadata> {
  const tokens = new Set<string>();
  let made = 0;
  const documents = new Map([
    ["instance-id", "i-0a1b2c3d4e5f60718"],
    ["placement/availability-zone", "eu-west-1a"],
  ]);
  const server = await serve((request, response) => {
    const path = request.url ?? "";
    if (path === "/latest/api/token") {
      if (request.method !== "PUT" || !/^\d+$/.test(String(request.headers["x-aws-ec2-metadata-token-ttl-seconds"])))
        return answer(response, 400);
      const token = `token-${++made}`;
      tokens.add(token);
      return answer(response, 200, token);
    }
    if (!tokens.has(String(request.headers["x-aws-ec2-metadata-token"]))) return answer(response, 401);
    const document = documents.get(path.replace("/latest/meta-data/", ""));
    return document === undefined ? answer(response, 404) : answer(response, 200, document);
  });
  return Object.assign(server, { documents, forgetTokens: () => tokens.clear() });
}

export interface GcpMetadata extends MetadataServer {
  set(path: string, value: string): void;
}

/** Its answers have tags; with `wait_for_change` it waits until the tag is another one, or the time is over. */
export async function startGcpMetadata(): Promise<GcpMetadata> {
  const values = new Map([
    ["project/project-id", "shop-prod"],
    ["instance/zone", "projects/123456789/zones/europe-west1-b"],
    ["instance/name", "gke-workers-1"],
    ["instance/preempted", "FALSE"],
    ["instance/maintenance-event", "NONE"],
  ]);
  const waiters = new Set<() => void>();
  const server = await serve((request, response) => {
    const url = new URL(request.url ?? "", "http://metadata");
    const path = url.pathname.replace("/computeMetadata/v1/", "");
    if (request.headers["metadata-flavor"] !== "Google") return answer(response, 403);
    const tell = (): void => {
      const value = values.get(path);
      response.setHeader("metadata-flavor", "Google");
      if (value === undefined) return answer(response, 404);
      response.setHeader("etag", `tag-${value}`);
      answer(response, 200, value);
    };
    const isNews = url.searchParams.get("last_etag") !== `tag-${values.get(path)}`;
    if (url.searchParams.get("wait_for_change") !== "true" || isNews) return tell();
    const timer = systemClock.after(Number(url.searchParams.get("timeout_sec")) * 1_000, done);
    function done(): void {
      timer.cancel();
      waiters.delete(check);
      tell();
    }
    function check(): void {
      if (url.searchParams.get("last_etag") !== `tag-${values.get(path)}`) done();
    }
    waiters.add(check);
    response.once("close", () => {
      timer.cancel();
      waiters.delete(check);
    });
  });
  return Object.assign(server, {
    set: (path: string, value: string) => {
      values.set(path, value);
      for (const check of [...waiters]) check();
    },
  });
}

export interface AzureMetadata extends MetadataServer {
  /** One list for the whole scale set, as Azure broadcasts it. */
  list(...events: readonly AzureEvent[]): void;
  readonly approved: string[];
}

export const AZURE_MACHINE = "aks-workers-vmss_3";

/** An approved event is `Started` from then on. */
export async function startAzureMetadata(): Promise<AzureMetadata> {
  let events: readonly AzureEvent[] = [];
  let incarnation = 1;
  const approved: string[] = [];
  const resourceId = `/subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/mc_shop/providers/Microsoft.Compute/virtualMachineScaleSets/aks-workers-vmss/virtualMachines/3`;
  const server = await serve((request, response, body) => {
    if (request.headers["metadata"] !== "true") return answer(response, 400);
    if (request.url?.startsWith("/metadata/instance/compute"))
      return answer(response, 200, JSON.stringify({ name: AZURE_MACHINE, resourceId }));
    if (!request.url?.startsWith("/metadata/scheduledevents?api-version=2020-07-01")) return answer(response, 404);
    if (request.method === "POST") {
      const { StartRequests } = JSON.parse(body) as { readonly StartRequests: readonly { readonly EventId: string }[] };
      const ids = StartRequests.map(({ EventId }) => EventId);
      approved.push(...ids);
      events = events.map((event) => (ids.includes(event.EventId) ? { ...event, EventStatus: "Started", NotBefore: "" } : event));
      incarnation++;
      return answer(response, 200);
    }
    return answer(response, 200, JSON.stringify({ DocumentIncarnation: incarnation, Events: events }));
  });
  return Object.assign(server, {
    approved,
    list: (...listed: readonly AzureEvent[]) => {
      events = listed;
      incarnation++;
    },
  });
}

async function serve(respond: (request: IncomingMessage, response: ServerResponse, body: string) => void): Promise<MetadataServer> {
  const asked: string[] = [];
  const state: { mood: Mood } = { mood: "well" };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      asked.push(`${request.method} ${request.url}`);
      const { mood } = state;
      if (mood === "hang") return;
      if (mood === "garbage") return answer(response, 200, "<html>\u0000 not what you want");
      if (mood === "failing") return answer(response, 503);
      if (mood === "huge") return answer(response, 200, "x".repeat(2 ** 20));
      if (mood === "well") return respond(request, response, body);
      systemClock.after(mood.slowMs, () => respond(request, response, body));
    });
  });
  const url = await listen(server);
  return {
    url,
    asked,
    get mood() {
      return state.mood;
    },
    set mood(mood) {
      state.mood = mood;
    },
    close: () => close(server),
  };
}

function answer(response: ServerResponse, status: number, text = ""): void {
  response.statusCode = status;
  response.end(text);
}

/** On loopback; the URL. */
export function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}

/** Also what is under way. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/**
 * The cluster's own switchboard: what happens to its machines. On loopback only; the API server knows nothing of it, as a cloud's console is apart from a
 * cluster's API.
 *
 *     GET  /embedded/v1                              what this is
 *     GET  /embedded/v1/offerings                    what the cloud offers, and how much of it there is
 *     POST /embedded/v1/offerings/limit              {"zone": "zone-a", "instanceType": …, "capacityType": "spot", "machines": 3 or null}; absent: any
 *     GET  /embedded/v1/nodes
 *     POST /embedded/v1/nodes/NAME/drift             {"clear": false}
 *     POST /embedded/v1/nodes/NAME/interrupt         {"deadlineMs": 120000}
 *     POST /embedded/v1/nodes/NAME/kill
 *     POST /embedded/v1/nodes/NAME/return            {"sameUid": true}
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { RelevoError } from "../kernel/errors.ts";
import { isLoopbackHostHeader } from "../kernel/loopback.ts";
import { CAPACITY_TYPES } from "./provisioner/offerings.ts";
import type { OfferingSummary, Provisioner } from "./provisioner/provisioner.ts";

export interface AdminInfo {
  readonly uid: string;
  readonly apiUrl: string;
  readonly pid: number;
}

export interface AdminServer {
  readonly url: string;
  close(): Promise<void>;
}

const BODY_MAX = 16 * 1024;
const MACHINES_MAX = 10_000;
const DEADLINE_MAX_MS = 24 * 3_600_000;

const bodies = {
  drift: z.strictObject({ clear: z.boolean().default(false) }),
  interrupt: z.strictObject({ deadlineMs: z.int().min(0).max(DEADLINE_MAX_MS).default(120_000) }),
  kill: z.strictObject({}),
  return: z.strictObject({ sameUid: z.boolean().default(true) }),
  limit: z.strictObject({
    zone: z.string().optional(),
    instanceType: z.string().optional(),
    capacityType: z.enum(CAPACITY_TYPES).optional(),
    machines: z.int().min(0).max(MACHINES_MAX).nullable(),
  }),
};

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export async function startAdmin(options: {
  readonly provisioner: Provisioner;
  readonly info: AdminInfo;
  readonly port?: number | undefined;
}): Promise<AdminServer> {
  const server = createServer((request, response) => {
    void answer(options.provisioner, options.info, request)
      .catch(toAnswer)
      .then((result) => send(response, result));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new RelevoError("embedded_admin_bind", `The embedded cluster's admin interface cannot listen: ${cause.message}`, {
          found: options.port,
          cause,
        }),
      ),
    );
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(provisioner: Provisioner, info: AdminInfo, request: IncomingMessage): Promise<Answer> {
  refuseWebPages(request);
  const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
  const [root, version, collection, name, verb, ...more] = path.split("/").filter((part) => part !== "");
  if (root !== "embedded" || version !== "v1" || more.length > 0) throw notFound(path);
  if (collection === undefined && request.method === "GET") return { status: 200, body: info };
  if (collection === "offerings") return { status: 200, body: { offerings: await offerings(provisioner, name, request, path) } };
  if (collection !== "nodes") throw notFound(path);
  if (name === undefined && request.method === "GET") return { status: 200, body: { nodes: provisioner.nodes() } };
  if (name === undefined || verb === undefined || request.method !== "POST") throw notFound(path);
  return { status: 200, body: await act(provisioner, decoded(name, path), verb, await readBody(request), path) };
}

async function offerings(
  provisioner: Provisioner,
  verb: string | undefined,
  request: IncomingMessage,
  path: string,
): Promise<readonly OfferingSummary[]> {
  if (verb === undefined && request.method === "GET") return provisioner.offerings();
  if (verb !== "limit" || request.method !== "POST") throw notFound(path);
  const { machines, ...filter } = bodies.limit.parse(await readBody(request));
  return provisioner.limit(filter, machines);
}

async function act(provisioner: Provisioner, nodeName: string, verb: string, body: unknown, path: string): Promise<unknown> {
  switch (verb) {
    case "drift": {
      const { clear } = bodies.drift.parse(body);
      await provisioner.drift(nodeName, { clear });
      return { nodeName, drifted: !clear };
    }
    case "interrupt":
      return provisioner.interrupt(nodeName, bodies.interrupt.parse(body));
    case "kill":
      bodies.kill.parse(body);
      await provisioner.kill(nodeName);
      return { nodeName, killed: true };
    case "return": {
      const { sameUid } = bodies.return.parse(body);
      await provisioner.returnNode(nodeName, { sameUid });
      return { nodeName, returned: true };
    }
    default:
      throw notFound(path);
  }
}

/** A page in a browser must not be able to end machines. */
function refuseWebPages(request: IncomingMessage): void {
  const { origin, host } = request.headers;
  if (origin !== undefined || !isLoopbackHostHeader(host)) {
    throw new RelevoError("embedded_admin_refused", "The admin interface serves programs on this machine only.", {
      found: origin ?? host,
    });
  }
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request) {
    text += String(chunk);
    if (text.length > BODY_MAX) throw new RelevoError("body_too_large", "The body is too large.", { allowed: `${BODY_MAX} bytes` });
  }
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new RelevoError("body_not_json", "The body is no JSON.", { cause });
  }
}

function decoded(name: string, path: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    throw notFound(path); // no node has a name that is no text
  }
}

function notFound(path: string): RelevoError {
  return new RelevoError("path_unknown", "There is nothing at this path.", {
    found: path,
    allowed:
      "GET /embedded/v1/nodes, GET /embedded/v1/offerings, POST /embedded/v1/offerings/limit, POST /embedded/v1/nodes/NAME/(drift|interrupt|kill|return)",
  });
}

const STATUS: Readonly<Record<string, number>> = {
  path_unknown: 404,
  node_unknown: 404,
  node_claim_unknown: 404,
  embedded_admin_refused: 403,
  body_too_large: 413,
  body_not_json: 400,
  node_not_lost: 409,
};

function toAnswer(error: unknown): Answer {
  if (error instanceof z.ZodError) {
    return { status: 400, body: { code: "body_invalid", message: z.prettifyError(error) } };
  }
  if (error instanceof RelevoError) {
    const { code, message, found, allowed, todo } = error;
    return { status: STATUS[code] ?? 500, body: { code, message, found, allowed, todo } };
  }
  return { status: 500, body: { code: "internal", message: error instanceof Error ? error.message : String(error) } };
}

function send(response: ServerResponse, { status, body }: Answer): void {
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}

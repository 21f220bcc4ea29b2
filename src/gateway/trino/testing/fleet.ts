/** Two gateway replicas before two clusters, and a client of one statement at a time. */
import { type Epoch, epoch } from "../../../kernel/epoch.ts";
import type { Member, MemberReport, RoutePolicy } from "../../../model/membership.ts";
import type { Gateway } from "../../server.ts";
import { type ClientAnswer, membershipLine, send, startTestGateway, untilReady } from "../../testing/gateway.ts";
import { startCoordinator, type TestCoordinator } from "./coordinator.ts";

export const TRINO: NonNullable<RoutePolicy["trino"]> = { routing: {}, clientTimeoutMs: 60_000, transactionTimeoutMs: 60_000 };

export interface TrinoFleet {
  readonly one: TestCoordinator;
  readonly two: TestCoordinator;
  readonly gateways: readonly [Gateway, Gateway];
  /** All replicas hear it, and their checks pass. */
  apply(members: readonly Member[], given?: { readonly generation?: Epoch; readonly policy?: Partial<RoutePolicy> }): Promise<void>;
}

/** Only the first serves at first. */
export async function startFleet(policy: Partial<RoutePolicy> = {}, options: { readonly gzip?: boolean } = {}): Promise<TrinoFleet> {
  const one = await startCoordinator("trino-1", "aaaaa", options);
  const two = await startCoordinator("trino-2", "bbbbb", options);
  const gateways = [await startTestGateway(), await startTestGateway()] as const;
  let generation = 0;
  const fleet: TrinoFleet = {
    one,
    two,
    gateways,
    async apply(members, given = {}) {
      generation += 1;
      const line = membershipLine([
        {
          route: "trino",
          generation: given.generation ?? epoch(1, generation),
          policy: { trino: TRINO, ...policy, ...given.policy },
          members,
        },
      ]);
      for (const gateway of gateways) gateway.apply(line);
      await Promise.all(gateways.map(untilReady));
    },
  };
  await fleet.apply([one.member()]);
  return fleet;
}

export interface Page {
  readonly status: number;
  readonly headers: ClientAnswer["headers"];
  readonly id?: string;
  readonly nextUri?: string;
  readonly data?: unknown;
  readonly stats?: { readonly state: string };
  readonly error?: { readonly message: string; readonly errorCode: number; readonly errorName: string; readonly errorType: string };
  readonly text: string;
}

export async function post(gateway: Gateway, sql: string, headers: Record<string, string> = {}): Promise<Page> {
  return pageOf(
    await send(gateway, {
      method: "POST",
      path: "/v1/statement",
      body: sql,
      headers: { host: "trino:8443", "X-Trino-User": "ann", ...headers },
    }),
  );
}

/** Follows an address of an answer, through any replica. */
export async function follow(
  gateway: Gateway,
  uri: string | undefined,
  method = "GET",
  headers: Record<string, string> = {},
): Promise<Page> {
  const { pathname, search, host } = new URL(String(uri));
  return pageOf(await send(gateway, { method, path: `${pathname}${search}`, headers: { host, ...headers } }));
}

function pageOf({ status, headers, body }: ClientAnswer): Page {
  const parsed = headers["content-type"] === "application/json" && body !== "" ? (JSON.parse(body) as object) : {};
  return { ...parsed, status, headers, text: body };
}

/** Until there is no next page, each through the next replica. */
export async function runOut(gateways: readonly Gateway[], first: Page): Promise<Page> {
  let page = first;
  for (let turn = 0; page.nextUri !== undefined; turn++) page = await follow(gateways[turn % gateways.length] as Gateway, page.nextUri);
  return page;
}

/** Open queries, transactions and segments of an instance, as a replica reports them. */
export function sessionsAt(gateway: Gateway, instance: string): number | undefined {
  return reported(gateway, instance)?.sessions;
}

/** Why it fails this replica's check; null when it passes. */
export function healthAt(gateway: Gateway, instance: string): string | null | undefined {
  return reported(gateway, instance)?.healthReason;
}

function reported(gateway: Gateway, instance: string): MemberReport | undefined {
  return gateway
    .report()
    .routes.flatMap((route) => route.members)
    .find((member) => member.instance === instance);
}

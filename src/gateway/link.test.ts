/** The line to the controller: what comes, what goes back, and what happens when it is cut. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { systemClock } from "../kernel/system.ts";
import { type ControllerLine, type GatewayReport, gatewayReportSchema } from "../model/membership.ts";
import { linesOf } from "./link.ts";
import { membershipLine, send, startInstance, startTestGateway, until, untilReady } from "./testing/gateway.ts";

interface FakeController {
  readonly url: string;
  readonly replicas: string[];
  readonly authorizations: (string | undefined)[];
  readonly reports: { readonly at: number; readonly report: GatewayReport }[];
  /** The first line of each stream that opens. */
  first: ControllerLine;
  write(line: ControllerLine): void;
  cut(): void;
}

async function startController(first: ControllerLine, port = 0): Promise<FakeController & { stop(): Promise<void> }> {
  const streams = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://controller");
    controller.authorizations.push(request.headers.authorization);
    if (url.pathname === "/gateway/v1/reports") return void take(request, response);
    controller.replicas.push(url.searchParams.get("replica") ?? "");
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.write(`${JSON.stringify(controller.first)}\n`);
    streams.add(response);
    response.on("close", () => streams.delete(response));
  });
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += chunk;
    controller.reports.push({ at: systemClock.monotonic(), report: gatewayReportSchema.parse(JSON.parse(text)) });
    response.end();
  }
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const controller = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    replicas: [] as string[],
    authorizations: [] as (string | undefined)[],
    reports: [] as { at: number; report: GatewayReport }[],
    first,
    write: (line: ControllerLine) => {
      for (const stream of streams) stream.write(`${JSON.stringify(line)}\n`);
    },
    cut: () => {
      for (const stream of streams) stream.destroy();
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  onTestFinished(() => (server.listening ? controller.stop() : undefined));
  return controller;
}

const lastRoute = (controller: FakeController) => controller.reports.at(-1)?.report.routes[0];

test("it applies what the controller says, and reports soon what the controller waits for", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("one"));
  const controller = await startController(membershipLine([{ members: [one.member()] }], { complete: true }));
  const gateway = await startTestGateway({ controllerUrl: controller.url, token: "secret" });
  await until("it is reported as passing", () => lastRoute(controller)?.members[0]?.health === "passing");

  await send(gateway);
  const committedAt = systemClock.monotonic();
  controller.write(membershipLine([{ generation: epoch(1, 2), members: [one.member({ state: "draining" })] }]));
  await until("generation 2 is reported", () => lastRoute(controller)?.applied === "1.2");

  expect(systemClock.monotonic() - committedAt).toBeLessThan(500);
  expect(lastRoute(controller)).toEqual({
    route: "orders",
    applied: "1.2",
    members: [{ instance: "orders-1", incarnation: 1, requests: 0, upgraded: 0, sessions: 0, health: "passing", healthReason: null }],
    counts: { accepted: 1, completed: 1, inFlight: 0, queued: 0, rejected: 0, cut: 0, retried: 0 },
  });
  expect(controller.reports.map(({ report }) => report.sequence)).toEqual(controller.reports.map((_, index) => index + 1));
  expect(new Set(controller.authorizations)).toEqual(new Set(["Bearer secret"]));
  await until("a report came without a change", () => controller.reports.filter(({ at }) => at > committedAt + 600).length > 0);
});

test("an older generation is refused, and the report stays ahead of the store that was rewound", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("one"));
  const controller = await startController(membershipLine([{ generation: epoch(1, 9), members: [one.member()] }]));
  const gateway = await startTestGateway({ controllerUrl: controller.url });
  await until("it is ready", () => lastRoute(controller)?.members[0]?.health === "passing");

  controller.write(membershipLine([{ generation: epoch(1, 8), members: [] }]));
  await until("it was refused", () => gateway.core.faults.refusedGenerations === 1);

  expect((await send(gateway)).status).toBe(200);
  expect(gateway.report().routes[0]?.applied).toBe("1.9");
});

test("cut off from the controller for longer than its TTL it goes on, checks included, and applies what it missed afterwards", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("one"));
  const two = await startInstance("orders-2", (_, response) => response.end("two"));
  const controller = await startController(membershipLine([{ members: [one.member(), two.member()] }], { ttlMs: 200 }));
  const gateway = await startTestGateway({ controllerUrl: controller.url });
  await until("it is ready", () => lastRoute(controller)?.members.every((member) => member.health === "passing") === true);
  await controller.stop();
  await until("it knows that it is cut off", () => gateway.core.membership.cutOff);

  await one.kill();
  await until("its own check found out", () => gateway.core.membership.find("orders", "orders-1", 1)?.health === "failing");
  const answers = await Promise.all(Array.from({ length: 6 }, () => send(gateway)));
  expect(answers.map((answer) => answer.body)).toEqual(Array(6).fill("two"));

  const again = await startController(
    membershipLine([{ generation: epoch(1, 2), members: [two.member()] }]),
    Number(new URL(controller.url).port),
  );
  await until("the new generation is reported", () => lastRoute(again)?.applied === "1.2");
  expect(gateway.core.membership.cutOff).toBe(false);
  expect(again.replicas).toEqual([gateway.replica]);
});

test("a gateway that starts again is a new replica", async () => {
  const controller = await startController(membershipLine([]));
  const first = await startTestGateway({ controllerUrl: controller.url });
  await until("the first is there", () => controller.replicas.length === 1);
  await first.close();
  await startTestGateway({ controllerUrl: controller.url });
  await until("the second is there", () => controller.replicas.length === 2);

  expect(controller.replicas[0]).not.toBe(controller.replicas[1]);
});

test("a line that is not understood is left out, and the next one counts", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("one"));
  const controller = await startController({ type: "nonsense" } as unknown as ControllerLine);
  const gateway = await startTestGateway({ controllerUrl: controller.url });
  await until("the stream is open", () => controller.replicas.length === 1);

  controller.write(membershipLine([{ members: [one.member()] }]));

  await until("it is applied", () => gateway.core.membership.routes.size === 1);
  await untilReady(gateway);
  expect((await send(gateway)).status).toBe(200);
});

test("lines may be cut anywhere by the network, and one without an end is an error", async () => {
  async function* chunks(...texts: string[]) {
    for (const text of texts) yield Buffer.from(text);
  }
  const lines: string[] = [];
  for await (const line of linesOf(chunks('{"a"', ":1}\n{", '"b":2}\n\n', "rest"))) lines.push(line);
  expect(lines).toEqual(['{"a":1}', '{"b":2}', ""]);

  async function* endless() {
    for (;;) yield Buffer.alloc(4 * 1024 * 1024);
  }
  await expect(async () => {
    for await (const _ of linesOf(endless()));
  }).rejects.toMatchObject({ code: "controller_line_too_long" });
});

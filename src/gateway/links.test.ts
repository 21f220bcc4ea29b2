/** Lines to several controllers: by URL, and by a name with several addresses. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { Clock } from "../kernel/clock.ts";
import { systemClock } from "../kernel/system.ts";
import { type ControllerLine, gatewayReportSchema } from "../model/membership.ts";
import { LIMITS } from "./limits.ts";
import type { Resolve } from "./links.ts";
import { membershipLine, startInstance, startTestGateway, until } from "./testing/gateway.ts";

interface Controller {
  readonly url: string;
  readonly port: number;
  /** Numbers of the reports that it got. */
  readonly reports: number[];
  streams: number;
  stop(): Promise<void>;
}

async function controller(first: ControllerLine, host = "127.0.0.1", port = 0): Promise<Controller> {
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/gateway/v1/reports")) {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        made.reports.push(gatewayReportSchema.parse(JSON.parse(text)).sequence);
        response.end();
      });
      return;
    }
    made.streams += 1;
    response.on("close", () => (made.streams -= 1));
    response.writeHead(200).write(`${JSON.stringify(first)}\n`);
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const address = server.address() as AddressInfo;
  const made: Controller = {
    url: `http://${host}:${address.port}`,
    port: address.port,
    reports: [],
    streams: 0,
    async stop() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  onTestFinished(() => (server.listening ? made.stop() : undefined));
  return made;
}

/** Names are resolved thirty times as often as they are in earnest. */
const HASTY_MS = 100;
const hasty: Clock = {
  ...systemClock,
  after: (delayMs, fire) => systemClock.after(delayMs === LIMITS.resolveEveryMs ? HASTY_MS : delayMs, fire),
};

test("each of two controllers is listened to, and gets every report, under numbers that rise for both", async () => {
  const one = await startInstance("orders-1", (_, response) => response.end("one"));
  const first = await controller(membershipLine([{ members: [one.member()] }]));
  const second = await controller(membershipLine([{ route: "billing", members: [] }]));
  const gateway = await startTestGateway({ controllerUrl: [first.url, second.url] });

  await until("both routes are known", () => gateway.core.membership.routes.size === 2);
  await until("both have reports", () => first.reports.length > 1 && second.reports.length > 1);

  for (const { reports } of [first, second]) expect(reports).toEqual(reports.toSorted((a, b) => a - b));
  expect(new Set([...first.reports, ...second.reports]).size).toBe(first.reports.length + second.reports.length);
});

test("when one of them is gone, what it said stays, and the other goes on", async () => {
  const first = await controller(membershipLine([{ members: [] }]));
  const second = await controller(membershipLine([{ route: "billing", members: [] }]));
  const gateway = await startTestGateway({ controllerUrl: [first.url, second.url] });
  await until("both routes are known", () => gateway.core.membership.routes.size === 2);

  await first.stop();
  const before = second.reports.length;
  await until("the other one is told on", () => second.reports.length > before + 1);

  expect([...gateway.core.membership.routes.keys()].toSorted()).toEqual(["billing", "orders"]);
});

test("a name means each of its addresses; one that comes later gets a line, one that is gone for good loses it", async () => {
  const first = await controller(membershipLine([{ members: [] }]), "127.0.0.1");
  const second = await controller(membershipLine([{ route: "billing", members: [] }]), "127.0.0.2", first.port);
  let addresses = ["127.0.0.1"];
  const resolve: Resolve = async () => addresses;
  await startTestGateway({ controllerUrl: `http://controllers.example:${first.port}`, resolve, clock: hasty });
  await until("the first one has a line", () => first.streams === 1);

  addresses = ["127.0.0.1", "127.0.0.2"];
  await until("the second one has a line", () => second.streams === 1);
  expect(first.streams).toBe(1);

  const from = systemClock.monotonic();
  addresses = ["127.0.0.2"];
  await until("the first one has none any more", () => first.streams === 0);
  // Not at the first time that it is missing.
  expect(systemClock.monotonic() - from).toBeGreaterThan(HASTY_MS);
  expect(second.streams).toBe(1);
});

test("a name that cannot be resolved for a while costs no line", async () => {
  const first = await controller(membershipLine([{ members: [] }]));
  let asked = 0;
  const resolve: Resolve = async () => {
    asked += 1;
    if (asked > 1) throw new Error("EAI_AGAIN");
    return ["127.0.0.1"];
  };
  await startTestGateway({ controllerUrl: `http://controllers.example:${first.port}`, resolve, clock: hasty });
  await until("it was asked again", () => asked > 5);
  expect(first.streams).toBe(1);
});

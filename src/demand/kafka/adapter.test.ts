/** What becomes of brokers that are none, and of what a broker refuses; a real one is asked in test/demand/kafka.long.test.ts. */
import { createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { AuthenticationError, MultipleErrors, NetworkError, ProtocolError, UserError } from "@platformatic/kafka";
import { afterEach, expect, test } from "vitest";
import { RelevoError } from "../../kernel/errors.ts";
import { systemClock } from "../../kernel/system.ts";
import { type SignalOf, signalSchema } from "../../model/demand.ts";
import { type ConnectionOf, connectionSchema } from "../connections.ts";
import { demandError } from "../errors.ts";
import type { DemandSource } from "../port.ts";
import { look, troubleOf as lookFor, within } from "../testing/look.ts";
import { kafkaAdapter } from "./adapter.ts";
import { troubleOf } from "./troubles.ts";

const ORDERS = { topic: "orders", group: "workers" };
const servers: Server[] = [];
const sockets: Socket[] = [];
const open: DemandSource[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((source) => source.close()));
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

async function brokerThat(behaves: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    sockets.push(socket);
    behaves(socket);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const never = (): never => {
  throw new Error("nobody asks the API server");
};

function sourceOf(connection: Partial<ConnectionOf<"kafka">>): DemandSource {
  const source = kafkaAdapter.open(
    signalSchema.parse({ kind: "kafka", connection: "events", ...ORDERS }) as SignalOf<"kafka">,
    connectionSchema.parse({ kind: "kafka", name: "events", ...connection }) as ConnectionOf<"kafka">,
    { clock: systemClock, kube: { get: never, list: never }, namespace: "shop" },
  );
  open.push(source);
  return source;
}

test.each<[name: string, behaves: (socket: Socket) => void]>([
  ["closes at once", (socket) => socket.destroy()],
  ["speaks HTTP", (socket) => socket.on("data", () => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"))],
  ["answers half", (socket) => socket.on("data", () => socket.end(Buffer.from([0, 0, 0, 100, 0, 0, 0, 1])))],
  ["says nothing", () => {}],
])("a broker that %s is unreachable within the signal (K11)", async (_, behaves) => {
  const broker = await brokerThat(behaves);
  expect(await lookFor(sourceOf({ brokers: [broker] }), {}, within(300))).toBe("unreachable");
});

test("a broker that is not there is said to be so", async () => {
  expect(await look(sourceOf({ brokers: ["127.0.0.1:1"] }))).toMatch(
    /^unreachable: Kafka \(connection events\) cannot be reached: .*ECONNREFUSED/,
  );
});

test("a CA file that is not there is said at the look", async () => {
  expect(await look(sourceOf({ brokers: ["127.0.0.1:1"], tls: { caFile: "/nowhere/ca.pem" } }))).toMatch(/^unreachable: ENOENT/);
});

const broker = (...codes: readonly string[]): Error =>
  new MultipleErrors(
    "Listing offsets failed.",
    codes.map((code) => new ProtocolError(code)),
  );

test.each<[name: string, error: unknown, code: string]>([
  ["a topic that may not be described", broker("TOPIC_AUTHORIZATION_FAILED"), "demand_credentials_refused"],
  ["a group that may not be described", broker("GROUP_AUTHORIZATION_FAILED"), "demand_credentials_refused"],
  [
    "a wrong password, deep in the chain",
    new MultipleErrors("twice", [broker("SASL_AUTHENTICATION_FAILED")]),
    "demand_credentials_refused",
  ],
  ["a failed handshake", new AuthenticationError("SASL"), "demand_credentials_refused"],
  ["an unknown topic", broker("UNKNOWN_TOPIC_OR_PARTITION"), "demand_missing"],
  ["an unknown topic, in the client's words", new UserError("Unknown topic orders."), "demand_missing"],
  ["a partition without a leader", broker("LEADER_NOT_AVAILABLE"), "demand_partial"],
  ["a leader that was one", broker("NOT_LEADER_OR_FOLLOWER"), "demand_partial"],
  ["a coordinator that loads", broker("COORDINATOR_LOAD_IN_PROGRESS"), "demand_unreachable"],
  ["a broken line", new NetworkError("Connection closed"), "demand_unreachable"],
  ["a trouble that is one already", demandError("partial", "3 of 4"), "demand_partial"],
  ["something else", "what", "demand_unreachable"],
])("%s is told for what it is", (_, error, code) => {
  const trouble = troubleOf(error, "Kafka (connection events)", ORDERS);
  expect(trouble instanceof RelevoError ? trouble.code : trouble).toBe(code);
});

/** The scaler's TLS with certificates that openssl makes: who does not show one of the authority gets no answer. Level: real processes' protocol. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ChannelCredentials, credentials, makeGenericClientConstructor, type ServiceError, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { externalScalerService } from "./contract.ts";
import { startKedaScaler } from "./server.ts";

const run = promisify(execFile);
const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
let dir: string;
const file = (name: string): string => join(dir, name);
const read = (name: string): Promise<Buffer> => readFile(file(name));

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "relevo-keda-tls-"));
  await run("openssl", ["req", "-x509", ...EC, "-days", "1", "-subj", "/CN=ca", "-keyout", file("ca.key"), "-out", file("ca.crt")]);
  for (const name of ["server", "client"]) {
    await run("openssl", [
      "req",
      ...EC,
      "-subj",
      `/CN=${name}`,
      "-keyout",
      file(`${name}.key`),
      "-out",
      file(`${name}.csr`),
      "-addext",
      "subjectAltName=IP:127.0.0.1",
    ]);
    const sign = [
      "x509",
      "-req",
      "-days",
      "1",
      "-in",
      file(`${name}.csr`),
      "-CA",
      file("ca.crt"),
      "-CAkey",
      file("ca.key"),
      "-CAcreateserial",
    ];
    await run("openssl", [...sign, "-copy_extensions", "copy", "-out", file(`${name}.crt`)]);
  }
});
afterAll(() => rm(dir, { recursive: true, force: true }));

function ask(address: string, as: ChannelCredentials): Promise<unknown> {
  const Client = makeGenericClientConstructor(externalScalerService(), "externalscaler.ExternalScaler");
  const client = new Client(address, as);
  const request = { name: "web", namespace: "shop", scalerMetadata: { pool: "shop/web" } };
  type Call = (request: unknown, options: object, answer: (error: ServiceError | null, value: unknown) => void) => void;
  const call = (client as unknown as Record<string, Call>)["IsActive"];
  const deadline = new Date(systemClock.now() + 5_000);
  return new Promise((resolve) => {
    call?.call(client, request, { deadline }, (error, value) => {
      client.close();
      resolve(error === null ? value : (status[error.code] ?? "?"));
    });
  });
}

test("with an authority for clients, only its certificates are answered; plain text and strangers are not (K11)", async () => {
  const [ca, cert, key] = await Promise.all([read("ca.crt"), read("server.crt"), read("server.key")]);
  const sizes = { sizeOf: async () => 3, onChange: () => () => undefined };
  const scaler = await startKedaScaler({
    ...{ host: "127.0.0.1", port: 0, sizes, clock: systemClock, log: () => undefined },
    tls: { cert, key, clientCa: ca },
  });
  try {
    expect([
      await ask(scaler.address, credentials.createSsl(ca, await read("client.key"), await read("client.crt"))),
      await ask(scaler.address, credentials.createSsl(ca)),
      await ask(scaler.address, credentials.createInsecure()),
    ]).toEqual([{ result: true }, "UNAVAILABLE", "UNAVAILABLE"]);
  } finally {
    await scaler.close();
  }
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { expect, test } from "vitest";
import { poolOf } from "./postgres-store.ts";
import { parsePostgresUrl } from "./postgres-url.ts";

test("a URL says where, as whom and with what limits; what it does not say is safe", () => {
  expect(parsePostgresUrl("postgresql://relevo:s%40crt@db.example:6432/fleet?pool_size=4&schema=a1&statement_timeout_ms=900")).toEqual({
    host: "db.example",
    port: 6432,
    database: "fleet",
    user: "relevo",
    password: "s@crt",
    tls: { rejectUnauthorized: true },
    schema: "a1",
    applicationName: "relevo",
    poolSize: 4,
    connectTimeoutMs: 3_000,
    statementTimeoutMs: 900,
    lockTimeoutMs: 3_000,
    where: "postgresql://db.example:6432/fleet?schema=a1",
  });
});

test.each(["localhost", "127.0.0.1", "[::1]"])("on this machine (%s) nothing need be encrypted", (host) => {
  expect(parsePostgresUrl(`postgres://me@${host}/x`).tls).toBe(false);
  expect(parsePostgresUrl(`postgres://me@${host}/x?sslmode=verify-full`).tls).toEqual({ rejectUnauthorized: true });
});

test("a socket is named by its folder", () => {
  expect(parsePostgresUrl("postgresql:///fleet?host=/run/postgresql")).toMatchObject({ host: "/run/postgresql", port: 5432, tls: false });
});

test("how a connection is encrypted is chosen with libpq's words", () => {
  const folder = mkdtempSync(join(tmpdir(), "relevo-url-"));
  const ca = join(folder, "ca.pem");
  writeFileSync(ca, "PEM");
  const tls = (parameters: string) => parsePostgresUrl(`postgresql://me@db/x?${parameters}`).tls;
  expect(tls("sslmode=disable")).toBe(false);
  expect(tls("sslmode=require")).toEqual({ rejectUnauthorized: false });
  expect(tls(`sslmode=verify-ca&sslrootcert=${ca}`)).toEqual({
    rejectUnauthorized: true,
    ca: "PEM",
    checkServerIdentity: expect.any(Function),
  });
  expect(tls(`sslrootcert=${ca}&sslcert=${ca}&sslkey=${ca}`)).toEqual({ rejectUnauthorized: true, ca: "PEM", cert: "PEM", key: "PEM" });
  rmSync(folder, { recursive: true });
});

test.each([
  ["postgresql://me:secret@db:port/x", undefined],
  ["postgresql://me:secret@db/x?sslmode=prefer", "prefer"],
  ["postgresql://me:secret@db/x?sslrotcert=/x", "sslrotcert"],
  ["postgresql://me:secret@db/x?sslrootcert=/none", "/none"],
  ["postgresql://me:secret@db/x?schema=a-b", "a-b"],
  ["postgresql://me:secret@db/x?pool_size=0", "0"],
  ["postgresql://me:secret@db/x?connect_timeout_ms=1.5", "1.5"],
])("%s is refused, and its password is not shown", (url, found) => {
  const refusal = (() => {
    try {
      return parsePostgresUrl(url);
    } catch (error) {
      return error;
    }
  })();
  expect(refusal).toMatchObject({ code: "store_url_invalid", found });
  expect(JSON.stringify(refusal) + String(refusal)).not.toContain("secret");
});

test("certificates that are exchanged count for the next connection; one that cannot be read leaves the former ones", () => {
  const folder = mkdtempSync(join(tmpdir(), "relevo-tls-"));
  const file = join(folder, "ca.crt");
  writeFileSync(file, "first");
  const url = `postgresql://me:secret@db/x?sslrootcert=${file}`;
  const { pool } = poolOf({ url });
  const connection = () => {
    const { Client, options } = pool as unknown as { readonly Client: typeof pg.Client; readonly options: pg.ClientConfig };
    const { connectionParameters } = new Client(options) as unknown as {
      readonly connectionParameters: { readonly ssl: unknown; readonly host: string; readonly password: string };
    };
    const { ssl, host, password } = connectionParameters;
    return { ssl, host, password };
  };
  const trusting = (ca: string) => ({ ssl: { rejectUnauthorized: true, ca }, host: "db", password: "secret" });
  expect(connection()).toEqual(trusting("first"));
  writeFileSync(file, "second");
  expect(connection()).toEqual(trusting("second"));
  rmSync(folder, { recursive: true });
  expect(connection()).toEqual(trusting("second"));
});

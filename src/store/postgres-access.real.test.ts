import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { PostgresCluster } from "../../test/postgres/cluster.ts";
import { openStore } from "./store.ts";

const PASSWORD = "hunter2 with spaces";

let folder = "";
let cluster: PostgresCluster;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relevo-access-"));
  // One that is its own authority, for the name localhost alone.
  const [key, certificate] = [join(folder, "server.key"), join(folder, "server.crt")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  execFileSync(
    "/usr/bin/openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "2",
      ...subject,
      "-keyout",
      key,
      "-out",
      certificate,
    ],
    { stdio: "pipe" },
  );
  cluster = await PostgresCluster.start({
    settings: { ssl: "on", ssl_cert_file: "server.crt", ssl_key_file: "server.key" },
    access: [
      "hostssl all encrypted 127.0.0.1/32 trust",
      "hostnossl all encrypted 127.0.0.1/32 reject",
      "host all guarded 127.0.0.1/32 scram-sha-256",
    ],
    files: { "server.crt": readFileSync(certificate, "utf8"), "server.key": readFileSync(key, "utf8") },
  });
  const admin = new pg.Client({ host: "127.0.0.1", port: cluster.port, user: "relevo", database: "postgres" });
  await admin.connect();
  await admin.query(`create role encrypted login superuser; create role guarded login superuser password '${PASSWORD}'`);
  await admin.end();
});
afterAll(async () => {
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const as = (user: string, host: string, more = "") => cluster.url("relevo", more).replace("relevo@127.0.0.1", `${user}@${host}`);

async function opens(target: Parameters<typeof openStore>[0]): Promise<string> {
  try {
    const store = await openStore(target);
    await store.listPools();
    await store.close();
    return "opens";
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    expect(message).not.toContain(PASSWORD);
    return `${code} ${message}`;
  }
}

test("a server that demands encryption is reached with as much proof of who it is as the URL asks for", async () => {
  const authority = `&sslrootcert=${join(folder, "server.crt")}`;
  expect(await opens(as("encrypted", "127.0.0.1", "&sslmode=disable"))).toMatch(/^store_unavailable .*28000/);
  expect(await opens(as("encrypted", "127.0.0.1", "&sslmode=require"))).toBe("opens");
  expect(await opens(as("encrypted", "localhost", `&sslmode=verify-full${authority}`))).toBe("opens");
  expect(await opens(as("encrypted", "127.0.0.1", `&sslmode=verify-ca${authority}`))).toBe("opens");
  expect(await opens(as("encrypted", "127.0.0.1", `&sslmode=verify-full${authority}`))).toMatch(
    /^store_unavailable .*ERR_TLS_CERT_ALTNAME_INVALID/,
  );
  expect(await opens(as("encrypted", "localhost", "&sslmode=verify-full"))).toMatch(/^store_unavailable .*SELF_SIGNED/);
});

test("a password comes with the call, from the URL, from PGPASSWORD or from the file of PGPASSFILE; a wrong one is refused and never shown", async () => {
  expect(await opens({ path: as("guarded", "127.0.0.1"), password: PASSWORD })).toBe("opens");
  expect(await opens(as(`guarded:${encodeURIComponent(PASSWORD)}`, "127.0.0.1"))).toBe("opens");
  expect(await opens({ path: as("guarded", "127.0.0.1"), password: "wrong" })).toMatch(/^store_unavailable .*28P01/);

  const passFile = join(folder, "pass");
  writeFileSync(passFile, `127.0.0.1:*:*:guarded:${PASSWORD}\n`, { mode: 0o600 });
  vi.stubEnv("HOME", folder);
  expect(await opens(as("guarded", "127.0.0.1"))).toMatch(/^store_unavailable .*password must be a/);
  for (const [name, value] of [
    ["PGPASSWORD", PASSWORD],
    ["PGPASSFILE", passFile],
  ] as const) {
    vi.stubEnv(name, value);
    expect(await opens(as("guarded", "127.0.0.1")), name).toBe("opens");
    vi.unstubAllEnvs();
  }
  writeFileSync(join(folder, "password"), `${PASSWORD}\n`);
  expect(migrateWith("--store-password-file", join(folder, "password"))).toContain("is up to date");
});

test("a password that is exchanged while the store is open counts for the next connection; until its file has it, the store is away", async () => {
  const admin = new pg.Client({ host: "127.0.0.1", port: cluster.port, user: "relevo", database: "postgres" });
  await admin.connect();
  let password = PASSWORD;
  const store = await openStore({
    path: as("guarded", "127.0.0.1"),
    password: () => {
      if (password === "") throw new Error("the file is gone");
      return password;
    },
  });
  const exchanged = async (to: string) => {
    await admin.query(`alter role guarded password '${to}'`);
    await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'guarded'");
  };
  await exchanged("hunter3");
  await expect(store.listPools()).rejects.toMatchObject({ code: "store_unavailable", message: expect.stringContaining("28P01") });
  password = "";
  await expect(store.listPools()).rejects.toMatchObject({ code: "store_unavailable", message: expect.stringContaining("cannot be read") });
  password = "hunter3";
  expect(await store.listPools()).toEqual([]);
  await exchanged(PASSWORD);
  await store.close();
  await admin.end();
});

function migrateWith(...more: readonly string[]): string {
  const args = [join(import.meta.dirname, "../main.ts"), "store", "migrate", "--store", as("guarded", "127.0.0.1"), ...more];
  return execFileSync(process.execPath, args, { env: { PATH: process.env["PATH"], HOME: folder }, encoding: "utf8" });
}

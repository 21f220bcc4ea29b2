import { expect, test } from "vitest";
import { SharedClients } from "./shared-clients.ts";

function world() {
  const log: string[] = [];
  const faults = { isFailing: false };
  const clients = new SharedClients<{ readonly name: string }, string>(
    async ({ name }) => {
      log.push(`open ${name}`);
      if (faults.isFailing) throw new Error("not now");
      return name;
    },
    (client) => log.push(`close ${client}`),
  );
  return { log, faults, clients };
}

test("one client serves all leases of a connection, is opened by the first look and closed with the last lease", async () => {
  const { log, clients } = world();
  const [a, b] = [{ name: "a" }, { name: "b" }];
  const [first, second, other] = [clients.lease(a), clients.lease(a), clients.lease(b)];
  expect(log).toEqual([]);
  expect(await Promise.all([first.client(), second.client(), other.client()])).toEqual(["a", "a", "b"]);
  await first.release();
  await first.release(); // once more is no one more
  expect(log).toEqual(["open a", "open b"]);
  await second.release();
  expect(log).toEqual(["open a", "open b", "close a"]);
  await clients.lease(a).client();
  expect(log).toEqual(["open a", "open b", "close a", "open a"]);
});

test("what could not be opened is tried anew by the next look, and there is nothing to close", async () => {
  const { log, faults, clients } = world();
  const lease = clients.lease({ name: "a" });
  faults.isFailing = true;
  await expect(lease.client()).rejects.toThrow("not now");
  faults.isFailing = false;
  expect(await lease.client()).toBe("a");
  faults.isFailing = true;
  const unused = clients.lease({ name: "b" });
  await expect(unused.client()).rejects.toThrow("not now");
  await unused.release();
  expect(log).toEqual(["open a", "open a", "open b"]);
});

test("who has given its lease back gets no client any more: nobody would close it", async () => {
  const { log, clients } = world();
  const lease = clients.lease({ name: "a" });
  await lease.release();
  await expect(lease.client()).rejects.toMatchObject({ code: "demand_unreachable" });
  expect(log).toEqual([]);
});

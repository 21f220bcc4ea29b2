import { expect, test } from "vitest";
import { systemClock, systemRandom } from "../../../kernel/system.ts";
import { allNumbers, numbers, TrinoClients, whyOf } from "./clients.ts";

const clients = () =>
  new TrinoClients({ url: "http://127.0.0.1:1", clock: systemClock, random: systemRandom, signal: new AbortController().signal });

test("what the numbers come to is known by arithmetic, exactly", () => {
  expect(numbers(4_000_000_000).rows).toEqual([[4_000_000_000, "8000000002000000000"]]);
  expect(allNumbers(10)).toEqual({ sql: "SELECT n FROM TABLE(sequence(start => 1, stop => 10)) AS t(n)", rows: [[10, "55"]] });
});

test("what a client of another kind says is counted with the others, and its failures are kept", () => {
  const all = clients();
  for (const line of ["opened 1", "right a", "wrong b", "failed c", "committed 1", "opened 2", "lost 2", "noise d"]) {
    const [how = "", what = ""] = line.split(" ");
    all.told("voluntary", how, what);
  }

  expect(all.countsOf("voluntary")).toEqual({ sent: 3, right: 1, wrong: 1, failed: 1 });
  expect(all.total()).toEqual({ sent: 3, right: 1, wrong: 1, failed: 1 });
  expect(all.transactions).toEqual({ opened: 2, committed: 1, failed: 1 });
  expect(all.failures).toEqual([
    { act: "voluntary", sql: "b", why: "wrong" },
    { act: "voluntary", sql: "c", why: "failed" },
  ]);
});

test("a query that nobody took is counted as failed, by its reason, and nothing is thrown", async () => {
  const all = clients();
  const ended = await all.check("coordinator", all.client(), numbers(3));
  await all.close();

  expect([ended.how, whyOf(ended).includes("instance_unreachable")]).toEqual(["thrown", true]);
  expect(all.countsOf("coordinator")).toEqual({ sent: 1, right: 0, wrong: 0, failed: 1 });
});

import { request as open } from "node:http";
import { expect, test, vi } from "vitest";
import { callAnswerSchema, healthSchema, identitySchema, obligationsSchema, protocolErrorSchema } from "../model/protocol.ts";
import { createInstance } from "./index.ts";
import { start } from "./test-kit.ts";

async function read(base: string, what: string): Promise<unknown> {
  return (await fetch(`${base}/relevo/v1/${what}`)).json();
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function call(base: string, name: string, step: string, body: unknown = { bootId: "boot-0123456789" }): Promise<Answer> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${base}/relevo/v1/${name}`, { method: "POST", headers: { "idempotency-key": step }, body: text });
  return { status: response.status, body: await response.json() };
}

function codeOf(answer: Answer): string {
  return `${answer.status} ${protocolErrorSchema.parse(answer.body).error.code}`;
}

test("an instance tells who it is, how it is and what it owes, as the schemas say", async () => {
  const { base } = await start();

  expect(identitySchema.parse(await read(base, "identity"))).toEqual({
    protocol: "relevo/v1",
    instance: "orders-1",
    bootId: "boot-0123456789",
    state: "starting",
    admittedBy: null,
  });
  expect(healthSchema.parse(await read(base, "health"))).toEqual({ ok: true, bootId: "boot-0123456789", reason: null });
  expect(obligationsSchema.parse(await read(base, "obligations"))).toEqual({
    bootId: "boot-0123456789",
    requests: 0,
    upgraded: 0,
    transactions: 0,
  });
});

test("prepare, admit, drain and close lead through the states, and identity names the step that admitted", async () => {
  const { base } = await start();
  const states: unknown[] = [];
  for (const name of ["prepare", "admit", "drain", "close"])
    states.push(callAnswerSchema.parse((await call(base, name, `step-${name}`)).body));

  expect(states).toEqual([
    { bootId: "boot-0123456789", step: "step-prepare", state: "ready" },
    { bootId: "boot-0123456789", step: "step-admit", state: "admitted" },
    { bootId: "boot-0123456789", step: "step-drain", state: "draining" },
    { bootId: "boot-0123456789", step: "step-close", state: "closed" },
  ]);
  expect(await read(base, "identity")).toMatchObject({ state: "closed", admittedBy: "step-admit" });
});

test("a call that means another process is refused and changes nothing (D13)", async () => {
  const { base, instance } = await start();

  expect(codeOf(await call(base, "admit", "step-1", { bootId: "boot-former" }))).toBe("409 boot_id_mismatch");
  expect(instance.identity()).toMatchObject({ state: "starting", admittedBy: null });
});

test("the same step gets its first answer again, and its hook runs once, also when both come at once (D13)", async () => {
  const gate = Promise.withResolvers<void>();
  const onPrepare = vi.fn(() => gate.promise);
  const { base } = await start({ onPrepare });

  const both = [call(base, "prepare", "step-1"), call(base, "prepare", "step-1")];
  await expect.poll(() => onPrepare.mock.calls.length).toBe(1);
  gate.resolve();
  const answers = await Promise.all(both);
  await call(base, "admit", "step-2");
  const replayed = await call(base, "prepare", "step-1");

  expect(answers[1]).toEqual(answers[0]);
  expect(replayed).toEqual(answers[0]);
  expect(onPrepare).toHaveBeenCalledTimes(1);
});

test("the same step with another call is a conflict, and a call without a step is refused", async () => {
  const { base } = await start();
  await call(base, "prepare", "step-1");

  expect(codeOf(await call(base, "drain", "step-1"))).toBe("409 step_conflict");
  expect(codeOf(await call(base, "drain", "x".repeat(257)))).toBe("400 idempotency_key_invalid");
});

test("a step whose hook failed can be tried again", async () => {
  const onPrepare = vi.fn().mockRejectedValueOnce(new Error("cache not warm")).mockResolvedValue(undefined);
  const { base } = await start({ onPrepare });

  expect(codeOf(await call(base, "prepare", "step-1"))).toBe("500 call_failed");
  expect((await call(base, "prepare", "step-1")).status).toBe(200);
});

test("what drains is not admitted any more", async () => {
  const { base } = await start();
  await call(base, "drain", "step-1");

  expect(codeOf(await call(base, "admit", "step-2"))).toBe("409 wrong_state");
});

test("unknown calls, wrong methods and large bodies get explicit errors, and the next call is answered", async () => {
  const { base } = await start();

  expect(codeOf(await call(base, "explode", "s"))).toBe("404 unknown_call");
  expect((await fetch(`${base}/relevo/v1/admit`)).status).toBe(405);
  expect(codeOf(await call(base, "admit", "s", "x".repeat(10_000)))).toBe("413 body_too_large");
  expect(codeOf(await call(base, "admit", "s", "{"))).toBe("400 body_not_json");
  expect((await call(base, "admit", "s")).status).toBe(200);
});

test("health names the first check that fails, and one that hangs fails in time", async () => {
  let answer: boolean | string | Promise<boolean> = true;
  const { base, clock } = await start({ health: { disk: () => true, database: () => answer } });
  expect((await fetch(`${base}/relevo/v1/health`)).status).toBe(200);

  answer = "no connection";
  expect(await read(base, "health")).toEqual({ ok: false, bootId: "boot-0123456789", reason: "database: no connection" });

  answer = new Promise<boolean>(() => undefined);
  const hanging = fetch(`${base}/relevo/v1/health`);
  await expect.poll(() => clock.pendingTimers).toBe(1);
  await clock.advance(1_000);
  const response = await hanging;
  expect([response.status, await response.json()]).toEqual([
    503,
    { ok: false, bootId: "boot-0123456789", reason: "database: no answer within 1000 ms" },
  ]);
});

test("a draining instance is still healthy, a closed one is not", async () => {
  const { base } = await start();
  await call(base, "drain", "step-1");
  expect((await fetch(`${base}/relevo/v1/health`)).status).toBe(200);

  await call(base, "close", "step-2");
  expect(await read(base, "health")).toEqual({ ok: false, bootId: "boot-0123456789", reason: "closed" });
});

test("requests in flight are obligations until their answer is over, also when their client leaves", async () => {
  const answers: (() => void)[] = [];
  const { base, instance } = await start({ handler: (_request, response) => answers.push(() => response.end("done")) });
  const left = new AbortController();
  const first = fetch(base);
  const second = fetch(base, { signal: left.signal });
  await expect.poll(() => instance.obligations().requests).toBe(2);

  left.abort();
  await expect(second).rejects.toThrow();
  await expect.poll(() => instance.obligations().requests).toBe(1);
  const idle = instance.whenIdle();
  for (const answer of answers) answer();

  expect(await (await first).text()).toBe("done");
  await idle;
  expect(instance.obligations().requests).toBe(0);
});

test("after close the door is shut: not taken, while what is in flight goes on", async () => {
  const gate = Promise.withResolvers<void>();
  const { base, instance } = await start({ handler: (_request, response) => void gate.promise.then(() => response.end("done")) });
  const inFlight = fetch(base);
  await expect.poll(() => instance.obligations().requests).toBe(1);

  await call(base, "close", "step-1");
  const refused = await fetch(base, { method: "POST", body: "x".repeat(100_000) });
  gate.resolve();

  expect([refused.status, refused.headers.get("relevo-not-taken"), refused.headers.get("connection")]).toEqual([503, "1", "close"]);
  expect(await (await inFlight).text()).toBe("done");
  expect(instance.obligations().requests).toBe(0);
});

test("transactions are obligations until they end or are not used for their time", async () => {
  const expired: string[] = [];
  const { base, instance, clock } = await start({
    handler: (request, response) => {
      const [, action, id] = (request.url ?? "").split("/");
      if (action === "begin") instance.transactions.begin(id ?? "", 9_500, response, () => expired.push(id ?? ""));
      if (action === "touch") instance.transactions.touch(id ?? "");
      if (action === "end") instance.transactions.end(id ?? "", response);
      response.end();
    },
  });
  const session = async (path: string): Promise<string | null> => (await fetch(`${base}${path}`)).headers.get("relevo-session");

  expect(await session("/begin/a")).toBe("begin; ttl=10");
  expect(await session("/begin/b")).toBe("begin; ttl=10");
  await clock.advance(9_000);
  expect(await session("/touch/b")).toBe(null);
  await clock.advance(1_000);
  expect(instance.obligations().transactions).toBe(1);
  expect(expired).toEqual(["a"]);
  expect(await session("/end/b")).toBe("end");
  expect(instance.obligations().transactions).toBe(0);
  expect(instance.transactions.touch("b")).toBe(false);
});

test("without an upgrade listener a request that offers an upgrade is an ordinary one", async () => {
  const { base } = await start();
  const status = await new Promise((resolve) => {
    open(base, { headers: { connection: "upgrade", upgrade: "h2c" } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).end();
  });

  expect(status).toBe(200);
});

test("the environment is read when the instance is made, and a PORT that is none is refused", () => {
  const handler = (): void => undefined;
  expect(createInstance({ handler, env: { POD_NAME: "orders-7" } }).name).toBe("orders-7");
  expect(() => createInstance({ handler, env: { PORT: "eighty" } })).toThrow(
    expect.objectContaining({ code: "port_invalid", found: "eighty" }),
  );
});

test("work is taken from the admission on: a process that nobody looked at yet takes none (I11, D13)", async () => {
  const { instance, base } = await start({ env: { HOST: "127.0.0.1", PORT: "0", RELEVO_INSTANCE: "orders-1" } });
  const ask = async () => {
    const answer = await fetch(`${base}/work`);
    return [answer.status, answer.headers.get("relevo-not-taken"), await answer.text()];
  };
  const refusal = (state: string) =>
    JSON.stringify({ error: { code: "not_admitted", message: `The instance is ${state}: it did not take the request.` } });

  expect(await ask()).toEqual([503, "1", refusal("starting")]);
  await instance.perform("prepare", "s1", null);
  expect(await ask()).toEqual([503, "1", refusal("ready")]);
  await instance.perform("admit", "s2", null);
  expect(await ask()).toEqual([200, null, "hello"]);
  await instance.perform("drain", "s3", null);
  expect(await ask()).toEqual([200, null, "hello"]);
});

test("an instance that nobody manages serves at once", async () => {
  const { base } = await start();
  expect((await fetch(`${base}/work`)).status).toBe(200);
});

test("a drain that is only a hint is taken back by resume; any other is not, nor is a hint after which another drain came", async () => {
  const hooks: string[] = [];
  const { base } = await start({ onResume: ({ step }) => void hooks.push(step) });
  const states: unknown[] = [];
  const go = async (...calls: readonly (readonly [string, string])[]): Promise<void> => {
    for (const [name, step] of calls) states.push(callAnswerSchema.parse((await call(base, name, step)).body).state);
  };
  await go(
    ["resume", "s-0"],
    ["admit", "s-1"],
    ["drain", "hint-1"],
    ["resume", "s-2"],
    ["drain", "hint-2"],
    ["drain", "s-3"],
    ["resume", "s-4"],
  );

  expect(states).toEqual(["starting", "admitted", "draining", "admitted", "draining", "draining", "draining"]);
  expect(hooks).toEqual(["s-2"]);
});

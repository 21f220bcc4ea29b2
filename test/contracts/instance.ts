/** What every instance that speaks relevo/v1 must do, whatever it is written in, as the driver sees it. */
import { expect, test } from "vitest";
import type { InstanceDriver, InstanceTarget } from "../../src/drivers/port.ts";

export interface InstanceUnderTest {
  readonly driver: InstanceDriver;
  /** A new process each time, so that each test begins at `starting`. */
  start(): Promise<InstanceTarget>;
}

export function instanceContract(name: string, subject: InstanceUnderTest): void {
  const { driver } = subject;

  /** A fresh instance and its boot id. */
  async function begin(): Promise<{ readonly target: InstanceTarget; readonly bootId: string }> {
    const target = await subject.start();
    const identity = await driver.identity(target);
    expect(identity).toMatchObject({ protocol: "relevo/v1", state: "starting", admittedBy: null });
    return { target, bootId: identity?.bootId ?? "" };
  }

  test(`${name}: prepare, admit, drain and close are answered with the step, the boot id and the new state`, async () => {
    const { target, bootId } = await begin();
    const outcomes = [
      await driver.prepare(target, { step: "s1", bootId, deadline: null }),
      await driver.admit(target, { step: "s2", bootId, deadline: null }),
      await driver.drain(target, { step: "s3", bootId, deadline: Date.UTC(2100, 0, 1) }),
      await driver.close(target, { step: "s4", bootId, deadline: null }),
    ];

    expect(outcomes).toEqual([
      { kind: "answered", answer: { bootId, step: "s1", state: "ready" } },
      { kind: "answered", answer: { bootId, step: "s2", state: "admitted" } },
      { kind: "answered", answer: { bootId, step: "s3", state: "draining" } },
      { kind: "answered", answer: { bootId, step: "s4", state: "closed" } },
    ]);
  });

  test(`${name}: identity names the step that admitted, so that a lost reply can be looked up (D13)`, async () => {
    const { target, bootId } = await begin();
    await driver.admit(target, { step: "admit-7", bootId, deadline: null });

    expect(await driver.identity(target)).toMatchObject({ bootId, state: "admitted", admittedBy: "admit-7" });
  });

  test(`${name}: the same step gets its first answer again, whatever happened since (D13)`, async () => {
    const { target, bootId } = await begin();
    const first = await driver.admit(target, { step: "s1", bootId, deadline: null });
    await driver.drain(target, { step: "s2", bootId, deadline: null });

    expect(await driver.admit(target, { step: "s1", bootId, deadline: null })).toEqual(first);
    expect(await driver.identity(target)).toMatchObject({ state: "draining" });
  });

  test(`${name}: a call for another process is a conflict and changes nothing (D13)`, async () => {
    const { target } = await begin();

    await expect(driver.admit(target, { step: "s1", bootId: "another", deadline: null })).rejects.toMatchObject({
      code: "boot_id_mismatch",
      class: "conflict",
    });
    expect(await driver.identity(target)).toMatchObject({ state: "starting", admittedBy: null });
  });

  test(`${name}: the same step with another call is a conflict`, async () => {
    const { target, bootId } = await begin();
    await driver.prepare(target, { step: "s1", bootId, deadline: null });

    await expect(driver.drain(target, { step: "s1", bootId, deadline: null })).rejects.toMatchObject({
      code: "step_conflict",
      class: "conflict",
    });
  });

  test(`${name}: what drains is not admitted any more`, async () => {
    const { target, bootId } = await begin();
    await driver.drain(target, { step: "s1", bootId, deadline: null });

    await expect(driver.admit(target, { step: "s2", bootId, deadline: null })).rejects.toMatchObject({
      code: "wrong_state",
      class: "conflict",
    });
  });

  test(`${name}: it is well until it is closed, and owes nothing when nothing was asked of it`, async () => {
    const { target, bootId } = await begin();
    expect(await driver.health(target)).toEqual({ ok: true, bootId, reason: null });
    expect(await driver.obligations(target)).toEqual({ bootId, requests: 0, upgraded: 0, transactions: 0 });

    await driver.close(target, { step: "s1", bootId, deadline: null });
    expect(await driver.health(target)).toEqual({ ok: false, bootId, reason: "closed" });
  });

  test(`${name}: closed, it says of each request that it did not take it`, async () => {
    const { target, bootId } = await begin();
    await driver.close(target, { step: "s1", bootId, deadline: null });
    const refused = await fetch(`http://${target.host}:${target.port}/anything`);

    expect([refused.status, refused.headers.get("relevo-not-taken")]).toEqual([503, "1"]);
  });
}

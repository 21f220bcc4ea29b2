import { describe, expect, test } from "vitest";
import type { KubeApi } from "../../kube/api.ts";
import { DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS } from "../../kube/resources.ts";
import { replicaManagersOf } from "../../model/parse-scale-owner.ts";
import { makeHpa, makeWeb, withAutoscalers } from "../testing/autoscalers.ts";
import { aWorld } from "../testing/world.ts";
import { removeScaleOwner } from "./remove-scale-owner.ts";
import { scaleTarget } from "./scale-target.ts";

const WEB = { type: DEPLOYMENTS, namespace: "default", name: "web" };

async function aTarget({ autoscalers = true, more = {} }: { readonly autoscalers?: boolean; readonly more?: object } = {}) {
  const world = await aWorld();
  if (autoscalers) await withAutoscalers(world.kube);
  const made = await makeWeb(world.kube, more);
  world.effects.length = 0;
  const target = { kind: "Deployment" as const, namespace: "default", name: "web", uid: made.metadata.uid };
  const payload = { target, from: 3, to: 5, managers: [...replicaManagersOf(made)] };
  const ports = { kube: world.kube, driver: world.instances, step: { id: "scale/1" } };
  const replicas = async () => ((await world.kube.get(WEB))["spec"] as { readonly replicas: number }).replicas;
  return { world, payload, ports, replicas };
}

describe("the target's count", () => {
  test.each([[true], [false]])("is written by its scale and nothing else of it, with KEDA's kinds there: %s (K3)", async (autoscalers) => {
    const { world, payload, ports, replicas } = await aTarget({ autoscalers });
    const before = await world.kube.get(WEB);
    expect(await scaleTarget.probe(payload, ports)).toEqual({ answer: "not" });
    expect(await scaleTarget.act(payload, ports)).toEqual({ state: "done", code: "scaled" });
    expect([await replicas(), world.effects]).toEqual([5, ["patch deployments/web"]]);
    expect(await scaleTarget.probe(payload, ports)).toEqual({ answer: "happened", code: "scaled" });
    const after = await world.kube.get(WEB);
    expect({ ...(after["spec"] as object), replicas: 3 }).toEqual(before["spec"]);
    expect([after.metadata.annotations, after.metadata.labels]).toEqual([before.metadata.annotations, before.metadata.labels]);
  });

  test("written again is not written again (I27)", async () => {
    const { world, payload, ports } = await aTarget();
    await scaleTarget.act(payload, ports);
    expect(await scaleTarget.act(payload, ports)).toEqual({ state: "done", code: "scaled" });
    expect(world.effects).toEqual(["patch deployments/web"]);
  });

  test("that somebody changed meanwhile stays as that one wrote it, and the planner looks anew (I20)", async () => {
    const { world, payload, ports, replicas } = await aTarget();
    await world.kube.patch(WEB, { spec: { replicas: 7 } });
    expect(await scaleTarget.act(payload, ports)).toEqual({ state: "superseded", code: "replicas_changed", result: { replicas: 7 } });
    expect(await replicas()).toBe(7);
  });

  test("that changes between the read and the write is a conflict, which the executor tries again", async () => {
    const { world, payload, ports } = await aTarget();
    const racing: KubeApi = {
      ...world.kube,
      patchScale: async (ref, body) => {
        await world.kube.patch(WEB, { metadata: { labels: { touched: "yes" } } });
        return world.kube.patchScale(ref, body);
      },
    };
    await expect(scaleTarget.act(payload, { ...ports, kube: racing })).rejects.toMatchObject({ class: "conflict" });
  });

  test.each([
    ["is another object", { target: { uid: "another" } }, "target_replaced"],
    ["is gone", { target: { name: "gone" } }, "target_gone"],
  ])("of one that %s is not written", async (_what, more, code) => {
    const { world, payload, ports } = await aTarget();
    expect(await scaleTarget.act({ ...payload, target: { ...payload.target, ...more.target } }, ports)).toEqual({
      state: "superseded",
      code,
    });
    expect(world.effects).toEqual([]);
  });

  test("of one that is paused is not written", async () => {
    const { payload, ports, world } = await aTarget({ more: { paused: true } });
    expect(await scaleTarget.act(payload, ports)).toEqual({ state: "superseded", code: "target_paused" });
    expect(world.effects).toEqual([]);
  });

  test("is not written while an HPA is there, and that of another workload is none (I20)", async () => {
    const { world, payload, ports, replicas } = await aTarget();
    const { metadata } = await makeHpa(world.kube);
    expect(await scaleTarget.act(payload, ports)).toEqual({ state: "superseded", code: "other_owner" });
    await world.kube.delete({ type: HORIZONTAL_POD_AUTOSCALERS, namespace: "default", name: metadata.name });
    await makeHpa(world.kube, "other");
    expect([await scaleTarget.act(payload, ports), await replicas()]).toEqual([{ state: "done", code: "scaled" }, 5]);
  });
});

describe("an owner that an operator named", () => {
  async function anOwner(target = "web") {
    const { world, payload, ports } = await aTarget();
    const { metadata } = await makeHpa(world.kube, target);
    world.effects.length = 0;
    const removal = { kind: "HorizontalPodAutoscaler" as const, name: "web", uid: metadata.uid, target: payload.target };
    return { world, removal, ports };
  }

  test("is removed once, and gone is as good as removed (I8, I27)", async () => {
    const { world, removal, ports } = await anOwner();
    expect(await removeScaleOwner.probe(removal, ports)).toEqual({ answer: "not" });
    expect(await removeScaleOwner.act(removal, ports)).toEqual({ state: "done", code: "removed" });
    expect(await removeScaleOwner.act(removal, ports)).toEqual({ state: "done", code: "removed" });
    expect(await removeScaleOwner.probe(removal, ports)).toEqual({ answer: "happened", code: "removed" });
    expect(world.effects).toEqual(["delete horizontalpodautoscalers/web"]);
  });

  test("made anew, or of another workload, stays (I8)", async () => {
    const { world, removal, ports } = await anOwner();
    expect(await removeScaleOwner.act({ ...removal, uid: "another" }, ports)).toEqual({ state: "superseded", code: "owner_replaced" });
    const other = await anOwner("other");
    expect(await removeScaleOwner.act(other.removal, other.ports)).toEqual({ state: "superseded", code: "owner_of_another" });
    expect([world.effects, other.world.effects]).toEqual([[], []]);
  });
});

/** An API that holds these objects and is only read. */
import { type KubeApi, KubeApiError, type KubeObject } from "../../../kube/api.ts";

export function fakeKube(objects: readonly KubeObject[]): Pick<KubeApi, "get" | "list"> {
  return {
    async get({ type, name }) {
      const found = objects.find((each) => each.kind === type.kind && each.metadata.name === name);
      if (found === undefined) throw new KubeApiError({ code: 404, reason: "NotFound" }, `${type.kind} ${name}`);
      return found;
    },
    async list(type, { labelSelector } = {}) {
      const wanted = (labelSelector ?? "").split(",").map((each) => each.split("=") as [string, string]);
      const items = objects.filter(
        ({ kind, metadata }) => kind === type.kind && wanted.every(([name, value]) => metadata.labels?.[name] === value),
      );
      return { items: [...items], resourceVersion: "1" };
    },
  };
}

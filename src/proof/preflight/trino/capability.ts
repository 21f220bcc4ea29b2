/** Whether an operator's CRD has a field (T2): a free-form map takes any key and promises nothing. */
import { z } from "zod";
import { fine, found, type Judgement } from "./facts.ts";

export type Capability = "supported" | "unsupported" | "absent";

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>> | undefined;
  readonly additionalProperties?: unknown;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean | undefined;
}
const schemaSchema: z.ZodType<Schema> = z.lazy(() =>
  z.looseObject({
    properties: z.record(z.string(), schemaSchema).optional(),
    additionalProperties: z.unknown().optional(),
    "x-kubernetes-preserve-unknown-fields": z.boolean().optional(),
  }),
);
const crdSchema = z.object({
  spec: z.object({
    versions: z.array(z.object({ name: z.string(), served: z.boolean(), schema: z.object({ openAPIV3Schema: schemaSchema }).nullish() })),
  }),
});

/** `absent`: the schema has neither the field nor a map that would take it, so that the API server drops it. */
export function capabilityOf(schema: unknown, path: readonly string[]): Capability {
  let at = schemaSchema.safeParse(schema).data;
  for (const name of path) {
    if (at === undefined) return "absent";
    const next: Schema | undefined = at.properties !== undefined && Object.hasOwn(at.properties, name) ? at.properties[name] : undefined;
    if (next === undefined)
      return at["x-kubernetes-preserve-unknown-fields"] === true || (at.additionalProperties ?? false) !== false ? "unsupported" : "absent";
    at = next;
  }
  return at === undefined ? "absent" : "supported";
}

/** Of a CustomResourceDefinition as it is served now. `path`: `spec.clusterConfig.faultTolerantExecution`. */
export function judgeCapability(crd: unknown, version: string, path: string): Judgement {
  const served = crdSchema.safeParse(crd).data?.spec.versions.find((each) => each.name === version && each.served);
  if (served?.schema === undefined || served.schema === null)
    return found("held", `the schema of ${version} cannot be read`, "let the controller read CustomResourceDefinitions");
  switch (capabilityOf(served.schema.openAPIV3Schema, path.split("."))) {
    case "supported":
      return fine(`the schema of ${version} has ${path}`);
    case "unsupported":
      return found(
        "refused",
        `${path} would be a key in a free-form map: unsupported, however well it is taken`,
        "use an operator whose schema has the field",
      );
    case "absent":
      return found(
        "refused",
        `the schema of ${version} has no ${path}: the API server drops it`,
        "use an operator whose schema has the field",
      );
  }
}

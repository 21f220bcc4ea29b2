/** Lists as tables, which is what `kubectl get` asks for. */
import type { Instant } from "../../kernel/clock.ts";
import type { KubeObject } from "../../kube/api.ts";
import type { KindSpec } from "../kinds.ts";
import type { JsonObject } from "../store/json.ts";
import { age, cellOf } from "./cells.ts";

/** What of the object stands in a row. */
export type IncludeObject = "None" | "Metadata" | "Object";

export interface TableOptions {
  readonly now: Instant;
  readonly include: IncludeObject;
  /** Only the first table of a watch names its columns. */
  readonly withColumns: boolean;
}

export function isTableWanted(accept: string | undefined): boolean {
  return accept?.split(",").some((part) => /;\s*as=Table\b/.test(part) && part.includes("application/json")) ?? false;
}

/** Only the metadata of each object of a list. */
export function isMetadataWanted(accept: string | undefined): boolean {
  return accept?.split(",").some((part) => /;\s*as=PartialObjectMetadataList\b/.test(part) && part.includes("application/json")) ?? false;
}

export function metadataOf({ metadata }: KubeObject): JsonObject {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata };
}

export function tableOf(kind: KindSpec, objects: readonly KubeObject[], metadata: JsonObject, options: TableOptions): JsonObject {
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: options.withColumns ? kind.columns.map((column) => columnDefinition(column, kind.custom)) : null,
    rows: objects.map((object) => ({ cells: cellsOf(kind, object, options.now), object: rowObject(object, options.include) })),
  };
}

/** Of built-in kinds the server writes the age itself; of custom ones the client is told that it is a date. */
function columnDefinition(column: KindSpec["columns"][number], isCustom: boolean): JsonObject {
  return {
    name: column.name,
    type: column.type === "date" && !isCustom ? "string" : column.type,
    format: column.name === "Name" ? "name" : "",
    description: `${column.name} of the object.`,
    priority: column.wide ? 1 : 0,
  };
}

function cellsOf(kind: KindSpec, object: KubeObject, now: Instant): readonly unknown[] {
  return kind.columns.map((column) => {
    const cell = cellOf(object, column.value, now);
    return column.type === "date" && typeof cell === "string" ? age(cell, now) : cell;
  });
}

function rowObject(object: KubeObject, include: IncludeObject): JsonObject | undefined {
  if (include === "None") return undefined;
  if (include === "Object") return object;
  return metadataOf(object);
}

/** Kinds that a user adds by a CustomResourceDefinition. */
import type { KubeObject } from "../../kube/api.ts";
import type { PrinterColumn } from "../columns.ts";
import type { KindSpec } from "../kinds.ts";
import { isJsonObject, type JsonObject, valueAt } from "./json.ts";

/** The definition with the conditions that a real server adds once it serves the kind. */
export function establish(definition: JsonObject, at: string): JsonObject {
  const condition = (type: string, reason: string, message: string) => ({ type, status: "True", lastTransitionTime: at, reason, message });
  const names = valueAt(definition, "spec.names");
  return {
    ...definition,
    status: {
      acceptedNames: names,
      conditions: [
        condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
      ],
      storedVersions: versionsOf(definition).map((version) => version["name"]),
    },
  };
}

/** One kind per served version. Versions do not share their objects: there is no conversion. */
export function kindsOfDefinition(definition: KubeObject): readonly KindSpec[] {
  const group = valueAt(definition, "spec.group");
  const names = valueAt(definition, "spec.names");
  if (typeof group !== "string" || !isJsonObject(names)) return [];
  const kind = String(names["kind"]);
  return versionsOf(definition).map((version) => ({
    group,
    version: String(version["name"]),
    kind,
    plural: String(names["plural"]),
    namespaced: valueAt(definition, "spec.scope") === "Namespaced",
    singular: typeof names["singular"] === "string" ? names["singular"] : kind.toLowerCase(),
    shortNames: texts(names["shortNames"]),
    categories: texts(names["categories"]),
    subresources: isJsonObject(valueAt(version, "subresources.status")) ? ["status"] : [],
    columns: columnsOf(version),
    custom: true,
    hasGeneration: true,
    statusOnCreate: "drop",
    statusTakesLabels: false,
    selectableFields: [],
    description: `${kind} of ${group}, as a CustomResourceDefinition defines it.`,
  }));
}

function versionsOf(definition: JsonObject): readonly JsonObject[] {
  const versions = valueAt(definition, "spec.versions");
  return Array.isArray(versions)
    ? versions.filter((version): version is JsonObject => isJsonObject(version) && version["served"] !== false)
    : [];
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

const COLUMN_TYPES: readonly string[] = ["string", "integer", "date", "number", "boolean"];

function columnsOf(version: JsonObject): readonly PrinterColumn[] {
  const given: readonly unknown[] = Array.isArray(version["additionalPrinterColumns"]) ? version["additionalPrinterColumns"] : [];
  const columns = given.filter(isJsonObject).map((column) => ({
    name: String(column["name"]),
    type: (COLUMN_TYPES.includes(String(column["type"])) ? column["type"] : "string") as PrinterColumn["type"],
    value: `=path:${String(column["jsonPath"])}`,
    wide: typeof column["priority"] === "number" && column["priority"] > 0,
  }));
  const name: PrinterColumn = { name: "Name", type: "string", value: "metadata.name" };
  const age: PrinterColumn = { name: "Age", type: "date", value: "metadata.creationTimestamp" };
  return [name, ...(columns.length > 0 ? columns : [age])];
}

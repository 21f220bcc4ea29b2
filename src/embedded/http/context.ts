/** What every part of the API server's HTTP face works with. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../kernel/clock.ts";
import type { KubeObject } from "../../kube/api.ts";
import { badRequest, invalid } from "../store/api-errors.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { PodLogs } from "./pod-logs.ts";

export interface ApiContext {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly podLogs: PodLogs;
  readonly texts: ObjectTexts;
  /** Ends the streams when the server closes. */
  readonly closing: AbortSignal;
}

/** Objects never change, and one event often goes to many watchers: its text is made once. */
export class ObjectTexts {
  #object: KubeObject | undefined;
  #text = "";

  of(object: KubeObject): string {
    if (object !== this.#object) {
      this.#text = JSON.stringify(object);
      this.#object = object;
    }
    return this.#text;
  }
}

/** One request with its answer. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export function isTrue(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value === "true" || value === "1";
}

/** Undefined when absent. Throws a 400 for what is no whole number. */
export function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null || value === "") return undefined;
  if (!/^\d{1,12}$/.test(value)) throw badRequest(`Invalid value: ${JSON.stringify(value)}: ${name} must be a whole number`);
  return Number(value);
}

export function textOf(query: URLSearchParams, name: string): string | undefined {
  return query.get(name) ?? undefined;
}

export function isDryRun(query: URLSearchParams, options: "CreateOptions" | "UpdateOptions" | "PatchOptions" | "DeleteOptions"): boolean {
  const value = query.get("dryRun");
  if (value === null || value === "") return false;
  if (value === "All") return true;
  throw invalid({ group: "meta.k8s.io", plural: options, kind: options }, "", [
    { field: "dryRun", message: `${JSON.stringify([value])}: supported values: "All"`, reason: "FieldValueNotSupported" },
  ]);
}

/** What is refused: by the rules of the API for every object, by those of the kind, and by validators that others plug in. */
import type { KubeObject } from "../../kube/api.ts";
import { kindKey } from "../kind-key.ts";
import type { KindSpec } from "../kinds.ts";
import { changeProblems, kindProblems, metadataProblems, microTimeProblem } from "./admission.ts";
import { badRequest, type FieldProblem, invalid, undecodablePatch } from "./api-errors.ts";
import { equalJson, type JsonObject } from "./json.ts";

/** What is wrong with an object of a kind, by its schema; empty when it is well. */
export type Validator = (object: KubeObject) => readonly FieldProblem[];

export class ObjectRules {
  readonly #validators: Map<string, Validator>;

  /** By `kindKey`. */
  constructor(validators: Readonly<Record<string, Validator>>) {
    this.#validators = new Map(Object.entries(validators));
  }

  add(key: string, validator: Validator): void {
    this.#validators.set(key, validator);
  }

  checkNew(kind: KindSpec, object: KubeObject): void {
    const badTime = microTimeProblem(object, kind);
    if (badTime !== undefined) throw badRequest(badTime);
    refuseIf(kind, object, [...metadataProblems(metadataOf(object), kind), ...this.#contentProblems(kind, object)]);
  }

  /** A status cannot break the rest; and what stands already must stay deletable even when it would no longer be accepted. */
  checkChange(kind: KindSpec, before: KubeObject, after: KubeObject): void {
    const isContentSame = equalJson({ ...before, metadata: null, status: null }, { ...after, metadata: null, status: null });
    const badTime = isContentSame ? undefined : microTimeProblem(after, kind);
    if (badTime !== undefined) throw undecodablePatch(badTime);
    // What stands was looked at when it was written.
    const ofMetadata = after.metadata === before.metadata ? [] : metadataProblems(metadataOf(after), kind);
    const ofContent = isContentSame ? [] : this.#contentProblems(kind, after);
    refuseIf(kind, before, [...ofMetadata, ...ofContent, ...changeProblems(kind, before, after), ...newFinalizers(before, after)]);
  }

  #contentProblems(kind: KindSpec, object: KubeObject): readonly FieldProblem[] {
    return [...kindProblems(object, kind), ...(this.#validators.get(kindKey(kind))?.(object) ?? [])];
  }
}

function metadataOf(object: KubeObject): JsonObject {
  return object.metadata as unknown as JsonObject;
}

function refuseIf(kind: KindSpec, object: KubeObject, problems: readonly FieldProblem[]): void {
  if (problems.length > 0) throw invalid(kind, object.metadata.name, problems);
}

function newFinalizers(before: KubeObject, after: KubeObject): readonly FieldProblem[] {
  if (before.metadata.deletionTimestamp === undefined) return [];
  const added = (after.metadata.finalizers ?? []).filter((finalizer) => !(before.metadata.finalizers ?? []).includes(finalizer));
  if (added.length === 0) return [];
  const message = `no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`;
  return [{ field: "metadata.finalizers", message, reason: "FieldValueForbidden" }];
}

/** What is asked of an API server, reduced to what a server tells apart: the verb, the kind and subresource, and how the body is meant. */

/** Of one request; undefined for what concerns no kind (discovery, health). Sorted and unique they are a picture of the traffic. */
export function trafficLine(method: string, url: string, contentType: string | undefined, accept: string | undefined): string | undefined {
  const { pathname, searchParams } = new URL(url, "http://any");
  const parts = pathname.split("/").filter((part) => part !== "");
  const isCore = parts[0] === "api";
  if ((!isCore && parts[0] !== "apis") || parts.length < (isCore ? 3 : 4)) return undefined;
  const groupVersion = isCore ? parts[1] : `${parts[1]}/${parts[2]}`;
  const rest = parts.slice(isCore ? 2 : 3);
  const isScoped = rest[0] === "namespaces" && rest.length > 2;
  const [plural, name, subresource] = isScoped ? rest.slice(2) : rest;
  const target = [plural, subresource].filter((part) => part !== undefined).join("/");
  return [verbOf(method, name, searchParams, contentType), groupVersion, target, ...extrasOf(searchParams, accept)].join(" ");
}

const PATCHES: Readonly<Record<string, string>> = {
  "application/merge-patch+json": "merge-patch",
  "application/strategic-merge-patch+json": "strategic-patch",
  "application/json-patch+json": "json-patch",
  "application/apply-patch+yaml": "apply",
};

function verbOf(method: string, name: string | undefined, query: URLSearchParams, contentType: string | undefined): string {
  switch (method) {
    case "GET":
      return query.get("watch") === "true" || query.get("watch") === "1" ? "watch" : name === undefined ? "list" : "get";
    case "POST":
      return "create";
    case "PUT":
      return "replace";
    case "PATCH":
      return PATCHES[contentType?.split(";")[0] ?? ""] ?? "patch";
    case "DELETE":
      return name === undefined ? "delete-collection" : "delete";
    default:
      return method;
  }
}

const TOLD = ["sendInitialEvents", "dryRun", "fieldSelector", "labelSelector", "fieldValidation", "limit", "continue"];

function extrasOf(query: URLSearchParams, accept: string | undefined): readonly string[] {
  const asTable = accept?.includes("as=Table") ? ["table"] : accept?.includes("as=PartialObjectMetadataList") ? ["metadata"] : [];
  return [...asTable, ...TOLD.filter((name) => query.has(name) && query.get(name) !== "").toSorted()];
}

/**
 * Which of the Trino routes under one host takes a statement. A group that its client asks for comes first, then the operators' rules on user and source; what
 * neither names goes to a pool without both. Of several that would, the first by name that can serve.
 */
import type { Routing } from "../../model/trino.ts";
import { mayServe } from "../balancer.ts";
import { LIMITS } from "../limits.ts";
import type { RouteState } from "../membership.ts";

export interface StatementWish {
  readonly group: string | undefined;
  readonly user: string | undefined;
  readonly source: string | undefined;
}

export function chooseRoute(routes: readonly RouteState[], wish: StatementWish): RouteState | undefined {
  if (wish.group !== undefined) return firstServing(routes.filter((route) => routingOf(route).group === wish.group));
  const byRule = routes.filter((route) => hasRules(routingOf(route)) && matches(routingOf(route), wish));
  return firstServing(byRule) ?? restOf(routes);
}

/** Where goes what no rule names. */
export function restOf(routes: readonly RouteState[]): RouteState | undefined {
  return firstServing(routes.filter((route) => !hasRules(routingOf(route)) && routingOf(route).group === undefined));
}

const NO_ROUTING: Routing = {};

function routingOf(route: RouteState): Routing {
  return route.policy.trino?.routing ?? NO_ROUTING;
}

function hasRules({ user, source }: Routing): boolean {
  return user !== undefined || source !== undefined;
}

function firstServing(routes: readonly RouteState[]): RouteState | undefined {
  return routes.find((route) => route.members.some(mayServe)) ?? routes[0];
}

function matches(routing: Routing, wish: StatementWish): boolean {
  return matchesOne(routing.user, wish.user) && matchesOne(routing.source, wish.source);
}

/** Patterns are the operators' own; values are anybody's, so their length is bounded. */
function matchesOne(pattern: string | undefined, value: string | undefined): boolean {
  if (pattern === undefined) return true;
  if (value === undefined || value.length > LIMITS.trinoRoutedChars) return false;
  return compiled(pattern)?.test(value) === true;
}

const patterns = new Map<string, RegExp | null>();

/** Null when it cannot be read, which the schema of a Pool refuses. */
function compiled(pattern: string): RegExp | null {
  let found = patterns.get(pattern);
  if (found !== undefined) return found;
  try {
    found = new RegExp(`^(?:${pattern})$`, "u");
  } catch {
    found = null;
  }
  if (patterns.size >= LIMITS.trinoPatterns) patterns.clear();
  patterns.set(pattern, found);
  return found;
}

/**
 * Who may do what on the HTTP API: one row for each route. A route without a row does not start, so that none is open by oversight.
 */

export const ROLES = ["viewer", "operator", "admin"] as const;
/** Each may do what those before it may. */
export type Role = (typeof ROLES)[number];

/**
 * What a route asks of its caller: a role; `gateway`: a gateway replica, for itself alone; `sender`: who sends notices or says that it lives; `instance`: the
 * route looks at the token of the admission itself; `public`: nothing.
 */
export type Need = Role | "gateway" | "sender" | "instance" | "public";

export const ROUTE_NEEDS: Readonly<Record<string, Need>> = {
  // nothing here is secret, and probes have no token
  "GET /healthz": "public",
  "GET /readyz": "public",
  "GET /metrics": "public",
  "GET /openapi.json": "public",

  "GET /v1/pools": "viewer",
  "GET /v1/pools/:namespace/:name": "viewer",
  "GET /v1/pools/:namespace/:name/plan": "viewer",
  "GET /v1/pools/:namespace/:name/protection": "viewer",
  "GET /v1/capacity": "viewer",
  "GET /v1/explain": "viewer",
  "GET /v1/instances": "viewer",
  "GET /v1/evidence": "viewer",
  "GET /v1/steps": "viewer",
  "GET /v1/workloads": "viewer",
  "GET /v1/events": "viewer",
  "GET /v1/notices": "viewer",
  "GET /v1/sources": "viewer",
  "GET /v1/cordons": "viewer",
  "GET /v1/nodes": "viewer",
  "GET /v1/controllers": "viewer",
  "GET /v1/gateways": "viewer",
  "GET /v1/store": "viewer",
  "GET /v1/examination": "viewer",
  "GET /v1/watch": "viewer",
  "GET /v1/whoami": "viewer",
  "GET /v1/forced-seals": "viewer",
  "GET /v1/scale": "viewer",
  "GET /v1/exceptions": "viewer",
  "GET /v1/pools/:namespace/:name/followed": "viewer",

  // what holds back, and what lets work end in good order
  "POST /v1/instances/:instance/drain": "operator",
  "POST /v1/nodes/:node/uncordon": "operator",
  "POST /v1/freeze": "operator",
  "POST /v1/unfreeze": "operator",
  "POST /v1/release": "operator",
  "PUT /v1/pools/:namespace/:name/proven": "operator",
  "POST /v1/pools/:namespace/:name/exceptions": "operator",
  "POST /v1/exceptions/:exception/follow-ups/:index/done": "operator",
  // calls others with the controller's credentials, as the document says that somebody applied
  "GET /v1/pools/:namespace/:name/check": "operator",
  "GET /v1/pools/:namespace/:name/effect": "operator",
  "GET /v1/pools/:namespace/:name/suspension": "operator",
  "POST /v1/pools/:namespace/:name/suspend": "operator",
  "POST /v1/pools/:namespace/:name/resume": "operator",

  // what makes workloads, gives obligations up, or overrules what the store or another owner says
  "POST /v1/apply": "admin",
  // as apply: the document says what is asked with the controller's credentials
  "POST /v1/check": "admin",
  "POST /v1/instances/:instance/force-seal": "admin",
  "POST /v1/pools/:namespace/:name/adopt": "admin",
  "POST /v1/store/recover": "admin",

  "POST /v1/notices/:source": "sender",
  "POST /v1/sources/:source/heartbeat": "sender",
  "GET /gateway/v1/stream": "gateway",
  "POST /gateway/v1/reports": "gateway",
  "POST /v1/leases/renew": "instance",
};

/** By method and the route's pattern. HEAD is GET without its body. Undefined: there is no row. */
export function needOf(method: string, url: string | undefined): Need | undefined {
  return url === undefined ? undefined : ROUTE_NEEDS[`${method === "HEAD" ? "GET" : method} ${url}`];
}

export function isRole(need: Need): need is Role {
  return (ROLES as readonly string[]).includes(need);
}

export function mayActAs(role: Role, wanted: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(wanted);
}

/** The role, then those above it. */
export function rolesFrom(role: Role): readonly Role[] {
  return ROLES.slice(ROLES.indexOf(role));
}

/** Which role does for a caller that is none of those whom the route is for. */
export function roleFor(need: Exclude<Need, "public" | "instance">): Role {
  switch (need) {
    case "gateway":
      return "admin";
    case "sender":
      return "operator";
    default:
      return need;
  }
}

/**
 * Dependencies point inwards. One line per folder of src/: what it may import besides itself. A path that ends in `.ts` admits that file alone (a port).
 * Tests may import anything.
 */
const PORTS = ["store/port.ts", "kube/api.ts", "kube/find-object.ts", "kube/resources.ts", "kube/types.ts"];

const MAY_IMPORT = {
  kernel: [],
  model: ["kernel"],
  store: ["kernel", "model"],
  kube: ["kernel", "model"],
  plan: ["kernel", "model", "store/port.ts"],
  lease: ["kernel", "model", "store/port.ts"],
  log: ["kernel", "model"],
  checkpoint: ["kernel", "model"],
  sdk: ["kernel", "model"],
  drivers: ["kernel", "model", "plan", ...PORTS],
  act: ["kernel", "model", "plan", "drivers", ...PORTS],
  notices: ["kernel", "model", "plan", ...PORTS],
  observe: ["kernel", "model", "plan", "drivers", "demand", "notices", "kube", "store/port.ts"],
  server: ["kernel", "model", "plan", "lease", "notices/registry.ts", ...PORTS],
  control: [
    "kernel",
    "model",
    "plan",
    "act",
    "observe",
    "notices",
    "drivers",
    "lease",
    "kube",
    "store/port.ts",
    "server/control-plane.ts",
    "server/scale-state.ts",
    "server/adoption-state.ts",
    "server/metrics.ts",
    "server/log.ts",
  ],
  demand: ["kernel", "model", "sdk/queue-client.ts", "server/line-stream.ts", ...PORTS],
  gateway: ["kernel", "model"],
  agent: ["kernel", "model", "kube", "notices"],
  embedded: ["kernel", "model", "kube"],
  proof: ["kernel", "model", "plan", "kube", "drivers", "demand", "store/port.ts"],
  sim: [
    "kernel",
    "model",
    "plan",
    "act",
    "control",
    "observe",
    "notices",
    "drivers",
    "lease",
    "log",
    "checkpoint",
    "kube",
    "embedded",
    "store",
    "gateway",
    "demand",
    "server",
    "sdk",
  ],
  cli: [
    "kernel",
    "model",
    "plan",
    "server/views.ts",
    "server/scale-views.ts",
    "server/adoption-view.ts",
    "server/access.ts",
    "sdk/queue-client.ts",
    "demand/connections.ts",
    "demand/feed.ts",
    "demand/read-connections.ts",
    "notices/eventbridge/compose.ts",
    "embedded/admin-api.ts",
    "sim",
    ...PORTS,
  ],
};

/** Where the parts are put together; only main.ts and these may reach every folder. */
const COMPOSE = "^src/(main\\.ts|cli/(processes|demo|gate)/)";
const TEST = "(\\.test\\.ts$|/testing/|/test-kit\\.ts$)";

const escape = (path) => path.replaceAll(".", "\\.");

const inward = Object.entries(MAY_IMPORT).map(([folder, others]) => ({
  name: `inward-${folder}`,
  comment: `src/${folder} may import ${others.length === 0 ? "nothing of src" : others.join(", ")}`,
  severity: "error",
  from: { path: `^src/${folder}/`, pathNot: [TEST, COMPOSE] },
  to: { path: "^src/", pathNot: [folder, ...others].map((other) => (other.endsWith(".ts") ? `^src/${escape(other)}$` : `^src/${other}/`)) },
}));

export default {
  forbidden: [
    ...inward,
    {
      name: "known-folder",
      comment: "a new folder of src/ needs a line in MAY_IMPORT",
      severity: "error",
      from: { path: "^src/", pathNot: [`^src/(${Object.keys(MAY_IMPORT).join("|")})/`, "^src/main\\.ts$", TEST] },
      to: {},
    },
    {
      name: "only-main-composes",
      comment: "nothing imports main.ts",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^src/main\\.ts$" },
    },
    {
      name: "sim-only-from-cli-and-tests",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/(sim|cli)/", TEST] },
      to: { path: "^src/sim/" },
    },
    {
      name: "no-test-in-production",
      severity: "error",
      from: { path: "^src/", pathNot: TEST },
      to: { path: [TEST, "^(test|bench|tools)/"] },
    },
    {
      name: "no-dev-dependency-in-production",
      comment: "the published package does not have it",
      severity: "error",
      from: { path: "^src/", pathNot: TEST },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["type-only"] },
    },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|\\.relevo)/" },
    enhancedResolveOptions: {
      extensions: [".ts", ".js", ".mjs"],
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
    },
  },
};

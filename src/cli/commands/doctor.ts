/**
 * `relevo doctor`: what is wrong with the installation, each finding with what to do. `refused` means that Relevo's claims do not hold as it stands (exit code
 * 3); `held` that something waits for an operator (4); a warning is worth knowing (0).
 */
import { formatInstant, parseInstant } from "../../kernel/clock.ts";
import {
  cordonView,
  forcedSealView,
  type GatewayView,
  gatewayView,
  healthView,
  type NodeView,
  nodeView,
  type PoolView,
  poolView,
  readinessView,
  stepView,
  storeView,
} from "../../server/views.ts";
import { type ControllerClient, connect } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { palette, renderDocument } from "../output.ts";
import { readRunFile, runFilePath } from "../run-file.ts";
import { describeError, RelevoError } from "../../kernel/errors.ts";

export interface Finding {
  readonly check: string;
  readonly state: "ok" | "warning" | "held" | "refused";
  readonly message: string;
  readonly todo: string | null;
}

/** More than this apart, times that people compare mislead. */
const CLOCK_OFFSET_MS = 1_000;
const MAX_STEPS = 1000;

const ok = (check: string, message: string): Finding => ({ check, state: "ok", message, todo: null });
const bad = (check: string, state: Exclude<Finding["state"], "ok">, message: string, todo: string): Finding => ({
  check,
  state,
  message,
  todo,
});

export async function doctor(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const findings = await examine(context, options);
  const document = renderDocument({ at: formatInstant(context.clock.now()), findings }, options.output);
  context.out(document ?? findings.map((finding) => lineOf(context, finding)).join(""));
  if (findings.some(({ state }) => state === "refused")) return EXIT.refused;
  return findings.some(({ state }) => state === "held") ? EXIT.held : EXIT.done;
}

function lineOf(context: CliContext, { check, state, message, todo }: Finding): string {
  const { green, yellow, red } = palette(context);
  const colour = state === "ok" ? green : state === "refused" ? red : yellow;
  return `${colour(state.padEnd(8))} ${check}: ${message}${todo === null ? "" : `; ${todo}`}\n`;
}

async function examine(context: CliContext, options: GlobalOptions): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  let client: ControllerClient;
  try {
    if (options.server === undefined && context.env.RELEVO_SERVER === undefined) findings.push(...checkRunFile(context));
    client = connect(context, options);
    findings.push(...(await checkController(context, client)));
  } catch (error) {
    const todo = error instanceof RelevoError ? error.todo : undefined;
    return [
      ...findings,
      bad(
        "controller",
        "refused",
        (error instanceof Error ? error.message : String(error)).replace(/\.$/, ""),
        todo ?? "start it with npx relevo up",
      ),
    ];
  }
  // Each part may be refused for its own reason, and the others still tell.
  const parts = [checkReadiness, checkStoreItself, checkGateways, checkNodes, checkPools, checkCordons, checkSteps, checkForcedSeals];
  for (const part of parts) {
    try {
      findings.push(...(await part(client)));
    } catch (error) {
      findings.push(bad("controller", "refused", describeError(error), "see the controller's log"));
    }
  }
  return findings;
}

function checkRunFile(context: CliContext): readonly Finding[] {
  const run = readRunFile(context.cwd);
  if (run === undefined)
    return [
      bad(
        "run file",
        "refused",
        `${runFilePath(context.cwd)} is not there`,
        "start npx relevo up here, or name a controller with --server",
      ),
    ];
  const dead = Object.entries(run.pids).filter(([, pid]) => pid !== null && !context.isAlive(pid));
  if (dead.length === 0) return [ok("run file", "names processes that live")];
  return [
    bad(
      "run file",
      "warning",
      `names processes that are gone: ${dead.map(([name, pid]) => `${name} ${pid}`).join(", ")}`,
      "start npx relevo up again",
    ),
  ];
}

async function checkController(context: CliContext, client: ControllerClient): Promise<readonly Finding[]> {
  const before = context.clock.now();
  const { now, version } = await client.get("/healthz", healthView);
  const after = context.clock.now();
  const offset = Math.round((parseInstant(now) ?? before) - (before + after) / 2);
  const reach = ok("controller", `version ${version} answers at ${client.url}`);
  if (Math.abs(offset) <= CLOCK_OFFSET_MS + (after - before)) return [reach, ok("clock", `the controller's differs by ${offset} ms`)];
  return [
    reach,
    bad(
      "clock",
      "warning",
      `the controller's differs by ${offset} ms`,
      "synchronise the clocks: deadlines and ages that are shown mislead, no safety rests on them",
    ),
  ];
}

async function checkReadiness(client: ControllerClient): Promise<readonly Finding[]> {
  const { checks } = await client.get("/readyz", readinessView);
  return checks.map(({ name, ok: isOk, message }) =>
    isOk ? ok(name, message) : bad(name, "refused", message, WHAT_TO_DO[name] ?? "see the controller's log"),
  );
}

const WHAT_TO_DO: Readonly<Record<string, string>> = {
  store: "free space or repair the disk: nothing is admitted, sealed or deleted until the store can be written",
  cluster: "make the Kubernetes API reachable: nothing is created or deleted there until it is",
};

async function checkStoreItself(client: ControllerClient): Promise<readonly Finding[]> {
  const { era, recovered, pools } = await client.get("/v1/store", storeView);
  const findings = pools.flatMap(({ pool, rewound, strangers }) => [
    ...(rewound === null
      ? []
      : [
          bad(
            `store, ${pool}`,
            "held",
            `it was rewound: ${rewound.witness} has seen ${rewound.what} ${rewound.seen}, the store has ${rewound.stored ?? "none"}`,
            "npx relevo store recover --reason WHY, once it is the newest backup that there is",
          ),
        ]),
    ...(strangers.length === 0
      ? []
      : [
          bad(
            `store, ${pool}`,
            "warning",
            `does not know the instances of these objects: ${strangers.join(", ")}`,
            `npx relevo explain ${pool}: what was there before the recovery is deleted by itself`,
          ),
        ]),
  ]);
  if (findings.length > 0) return findings;
  return [ok("store epochs", `era ${era}${recovered === null ? "" : `, recovered at ${recovered.at}`}; nobody has seen more`)];
}

async function checkGateways(client: ControllerClient): Promise<readonly Finding[]> {
  const gateways = await client.list("/v1/gateways", gatewayView);
  if (gateways.length === 0)
    return [bad("gateways", "refused", "no replica is registered: nothing can be admitted", "start npx relevo gateway --controller URL")];
  return gateways.map(findingOfGateway);
}

function findingOfGateway({ replica, silent, connected, routes }: GatewayView): Finding {
  const check = `gateway ${replica}`;
  if (silent)
    return bad(
      check,
      "warning",
      "is silent for longer than its TTL",
      "restart it, or leave it: seals no longer wait for it, and are assumed",
    );
  if (!connected)
    return bad(check, "warning", "is cut off and serves what it knew last", "see its log: seals wait for it until its TTL ends");
  const behind = routes.filter(({ applied, current }) => applied !== current);
  if (behind.length === 0) return ok(check, "is connected and current");
  return bad(
    check,
    "warning",
    `has not yet applied ${behind.map(({ route, applied, current }) => `${current} of ${route} (it has ${applied})`).join(", ")}`,
    "look again: this lasts a second at most while all is well",
  );
}

/** D17: a replacement is safe only where every node that a pool's pods may land on is owned by a provisioner that the pool declares. */
async function checkNodes(client: ControllerClient): Promise<readonly Finding[]> {
  const [nodes, pools] = await Promise.all([client.list("/v1/nodes", nodeView), client.list("/v1/pools", poolView)]);
  const active = pools.filter(({ mode, provisioners }) => mode === "Act" && !provisioners.includes("none"));
  if (nodes.length === 0) return [bad("nodes", "warning", "no node is known", "see kubectl get nodes")];
  if (active.length === 0) return [ok("nodes", `${nodes.length} are known; no pool is in mode Act`)];
  const findings = active.flatMap((pool) => {
    const foreign = nodes.filter((node) => !isOwned(node, pool));
    if (foreign.length === 0) return [];
    const names = foreign.map(({ name, owner }) => `${name} (${owner?.provisioner ?? "none"})`).join(", ");
    return [
      bad(
        `nodes for ${pool.pool}`,
        "refused",
        `belong to no declared provisioner (${pool.provisioners.join(", ")}): ${names}`,
        "declare their owner in spec.disruption.provisioners, or keep the pool's pods off them",
      ),
    ];
  });
  return findings.length > 0 ? findings : [ok("nodes", `all ${nodes.length} belong to a declared provisioner`)];
}

function isOwned({ owner }: NodeView, { provisioners }: PoolView): boolean {
  return owner !== null && provisioners.includes(owner.provisioner);
}

async function checkPools(client: ControllerClient): Promise<readonly Finding[]> {
  const pools = await client.list("/v1/pools", poolView);
  if (pools.length === 0) return [bad("pools", "warning", "there is none", "npx relevo apply -f pool.yaml")];
  return pools.flatMap((pool) => findingsOfPool(pool));
}

function findingsOfPool({ pool, mode, serving, floor, desired, freeze }: PoolView): readonly Finding[] {
  const check = `pool ${pool}`;
  const findings: Finding[] = [];
  if (serving < floor) findings.push(bad(check, "refused", `${serving} serve and its floor is ${floor}`, `npx relevo explain ${pool}`));
  else if (serving < desired)
    findings.push(bad(check, "warning", `${serving} serve and ${desired} are desired`, `npx relevo explain ${pool}`));
  if (freeze)
    findings.push(
      bad(
        check,
        "held",
        `frozen until ${freeze.until} by ${freeze.by}: ${freeze.why}`,
        freeze.by.startsWith("ConfigMap ") ? `delete or change ${freeze.by}` : `npx relevo unfreeze ${pool}`,
      ),
    );
  if (mode !== "Act")
    findings.push(
      bad(check, "warning", `disruption.mode is ${mode}: no instance is replaced before its node goes`, "set spec.disruption.mode to Act"),
    );
  return findings.length > 0 ? findings : [ok(check, `${serving} of ${desired} serve, mode ${mode}`)];
}

async function checkCordons(client: ControllerClient): Promise<readonly Finding[]> {
  const cordons = await client.list("/v1/cordons", cordonView);
  if (cordons.length === 0) return [ok("own cordons", "none")];
  return cordons.map(({ node, evidence }) =>
    bad(
      "own cordon",
      "warning",
      `${node} is cordoned by Relevo${evidence === null ? "" : ` for evidence ${evidence}`}`,
      `when it shall be used again: npx relevo uncordon ${node}`,
    ),
  );
}

async function checkSteps(client: ControllerClient): Promise<readonly Finding[]> {
  const total = (await client.list("/v1/pools", poolView)).reduce((sum, { heldSteps }) => sum + heldSteps, 0);
  const held = (await client.list(`/v1/steps?limit=${MAX_STEPS}`, stepView)).filter(({ state }) => state === "held");
  if (held.length === 0 && total === 0) return [ok("held steps", "none")];
  if (held.length < total)
    return [bad("held steps", "held", `${total}, some older than the last ${MAX_STEPS} steps`, "see relevo get steps --pool POOL")];
  return held.map(({ id, kind, instance, reason }) =>
    bad(
      "held step",
      "held",
      `${kind} ${id} of ${instance ?? "its pool"}: ${reason.sentence}`,
      `look at its object; nobody can tell whether it happened: npx relevo release ${id} --reason WHY, and it is decided anew`,
    ),
  );
}

/** Exceptions that an operator made: named until they are closed. */
async function checkForcedSeals(client: ControllerClient): Promise<readonly Finding[]> {
  const seals = await client.list("/v1/forced-seals", forcedSealView);
  return seals.map(({ instance, pool, by, why, until, obligations, phase }) =>
    bad(
      "forced seal",
      "warning",
      `${instance} of ${pool} (${phase}) by ${by}: ${why}; ${obligations ?? "unknown"} requests and sessions were given up`,
      `look after what was lost; it is named until the instance is gone and ${until} is over`,
    ),
  );
}

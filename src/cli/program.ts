/** The commands, their options and their help. What a command does is imported when it is called, so that `--help` is quick. */
import { Command, Option } from "commander";
import { RelevoError } from "../kernel/errors.ts";
import { addGate } from "./add-gate.ts";
import { addProcesses } from "./add-processes.ts";
import { addScaling, addVerifyScaling } from "./add-scaling.ts";
import { type CliContext, type GlobalOptions, OUTPUTS } from "./context.ts";
import { EXIT, type ExitCode, tellError } from "./exit.ts";
import { collect, count, whole } from "./option-values.ts";
import { optionsOf, optionsOfNested } from "./options-of.ts";
import type { ProcessCommands } from "./process-commands.ts";
import { VERSION } from "./version.ts";

/** Runs one command line (without the program's name) and returns its exit code. Never throws. */
export async function runProgram(args: readonly string[], context: CliContext, processes: ProcessCommands): Promise<ExitCode> {
  let code: ExitCode = EXIT.done;
  const isJson = wantsJson(args);
  const program = buildProgram(context, processes, isJson ? () => undefined : context.err, (result) => {
    code = result;
  });
  try {
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    return tellError(
      asInterrupted(error, context),
      context,
      isJson ? { ...program.opts<Partial<GlobalOptions>>(), output: "json" } : program.opts<Partial<GlobalOptions>>(),
    );
  }
}

/** What was waiting when the user interrupted knows of a signal alone. */
function asInterrupted(error: unknown, { signal }: CliContext): unknown {
  if (!signal.aborted || !(error instanceof Error) || error.name !== "AbortError") return error;
  return new RelevoError("interrupted", "The command was interrupted.", { class: "cancelled", cause: error });
}

/** Told by the words alone: where they are wrong, their options may not have been understood. */
function wantsJson(args: readonly string[]): boolean {
  return args.some((arg, at) => /^(-o=?json|--output=json)$/.test(arg) || (arg === "json" && /^(-o|--output)$/.test(args[at - 1] ?? "")));
}

const HELP = `
To begin with: relevo demo, or relevo up and then relevo apply -f examples/orders/pool.yaml.

Environment:
  RELEVO_SERVER          the controller's API, as --server
  RELEVO_TOKEN           what the controller demands of its callers
  RELEVO_TOKEN_FILE      where that is read, at each use
  RELEVO_WEBHOOK_SECRET  with which notices are signed
  NO_COLOR               no colours

Exit codes: 0 done, 1 failed, 2 the command line or a file is wrong, 3 refused, 4 held: it was noted and waits`;

type Ended = (code: ExitCode) => void;

/** `tellUsage` gets what is wrong in the command line, as text. */
function buildProgram(context: CliContext, processes: ProcessCommands, tellUsage: CliContext["err"], ended: Ended): Command {
  const program = new Command("relevo")
    .description("Keeps fleets of long-running, expensive-to-kill work alive on capacity that can vanish.")
    .version(VERSION)
    .exitOverride()
    .configureOutput({ writeOut: context.out, writeErr: tellUsage })
    .showHelpAfterError("(relevo --help shows what there is)")
    .configureHelp({ showGlobalOptions: true })
    .addHelpText("after", HELP)
    .option("--server <url>", "the controller's API (default: RELEVO_SERVER, or what relevo up wrote here)")
    .addOption(new Option("-o, --output <form>", "how things are printed").choices(OUTPUTS).default("table"))
    .option("-n, --namespace <name>", "where pools are that are named without one", "default")
    .option("--debug", "adds the stack to errors");
  addProcesses(program, context, processes, ended);
  addPools(program, context, ended);
  addStore(program, context, processes, ended);
  addTokens(program, context, ended);
  addOperations(program, context, ended);
  addScaling(program, context, ended);
  addGate(program, context, ended);
  // Global options may stand behind the command, where people write them.
  for (const command of program.commands) {
    inherit(command, program);
    pointToHelp(command);
    for (const nested of command.commands) {
      inherit(nested, program);
      pointToHelp(nested, command);
    }
  }
  return program;
}

/** A mistake in the command line points to the help of the command that it is of. */
function pointToHelp(command: Command, parent?: Command): void {
  const name = parent === undefined ? command.name() : `${parent.name()} ${command.name()}`;
  command.showHelpAfterError(`(relevo ${name} --help shows what there is)`);
}

function inherit(command: Command, program: Command): void {
  for (const option of program.options) {
    const isTaken = command.options.some(({ long, short }) => long === option.long || (short !== undefined && short === option.short));
    if (option.long !== "--version" && !isTaken) command.addOption(new Option(option.flags, option.description).hideHelp());
  }
  command.hook("preAction", (_this, action) => {
    for (const option of program.options) {
      const name = option.attributeName();
      const given = action.getOptionValueSource(name) === "cli" ? (action.getOptionValue(name) as unknown) : undefined;
      if (given === undefined) continue;
      const choices = option.argChoices;
      if (choices && !choices.includes(String(given)))
        action.error(`error: option '${option.flags}' argument '${given}' is invalid. Allowed choices are ${choices.join(", ")}.`);
      program.setOptionValueWithSource(name, given, "cli");
    }
  });
}

function addPools(program: Command, context: CliContext, ended: Ended): void {
  program
    .command("apply")
    .description("create or replace pools from YAML; all of them, or none when one has a mistake")
    .requiredOption("-f, --filename <file>", "a file, or - for standard input; may be repeated", collect)
    .option("--dry-run", "checks it and changes nothing")
    .action(async (_options, command: Command) => ended(await (await import("./commands/apply.ts")).apply(context, optionsOf(command))));

  program
    .command("get")
    .description(
      "show pools, instances, evidence, workloads, steps, scale, exceptions, events, notices, sources, cordons, nodes, gateways, controllers or capacity",
    )
    .argument("<kind>", "one of these; in the singular too")
    .argument("[name]", "only this one")
    .option("--pool <pool>", "only of this pool")
    .option("--limit <n>", "at most so many", count)
    .option("--all", "deleted instances too")
    .option("-w, --watch", "again whenever something changes")
    .action(async (kind: string, name: string | undefined, _options, command: Command) =>
      ended(await (await import("./commands/get.ts")).get(context, kind, name, optionsOf(command))),
    );

  program
    .command("explain")
    .description("why a pool or an instance does what it does, or nothing")
    .argument("<pool|instance>")
    .action(async (subject: string, _options, command: Command) =>
      ended(await (await import("./commands/explain.ts")).explain(context, subject, optionsOf(command))),
    );

  program
    .command("plan")
    .description("what the planner wants now, on the live state; changes nothing")
    .argument("<pool>")
    .action(async (pool: string, _options, command: Command) =>
      ended(await (await import("./commands/explain.ts")).plan(context, pool, optionsOf(command))),
    );
}

function addOperations(program: Command, context: CliContext, ended: Ended): void {
  program
    .command("notify")
    .description("send a notice as AWS EventBridge does")
    .argument("[machine]", "the cloud's id of the machine")
    .option("--node <name>", "the machine under this node")
    .addOption(
      new Option("--kind <kind>", "what is announced")
        .choices(["spot-interruption", "rebalance", "state-change"])
        .default("spot-interruption"),
    )
    .option("--state <state>", "the new state, with --kind state-change", "stopping")
    .option("--id <id>", "the event's id; the same again is a duplicate")
    .action(async (machine: string | undefined, _options, command: Command) =>
      ended(await (await import("./commands/notify.ts")).notify(context, machine, optionsOf(command))),
    );

  program
    .command("drain")
    .description("replace an instance and let it finish its work")
    .argument("<instance>")
    .option("--reason <why>", "is noted", "an operator asked for it")
    .action(async (instance: string, _options, command: Command) =>
      ended(await (await import("./commands/operator.ts")).drain(context, instance, optionsOf(command))),
    );

  program
    .command("uncordon")
    .description("take back a cordon that Relevo made; never anybody else's")
    .argument("<node>")
    .action(async (node: string, _options, command: Command) =>
      ended(await (await import("./commands/operator.ts")).uncordon(context, node, optionsOf(command))),
    );

  program
    .command("freeze")
    .description("no new decisions; traffic, health checks and accepted deadlines go on")
    .argument("[pool]")
    .option("--all", "all pools")
    .requiredOption("--for <duration>", "how long, such as 2h")
    .requiredOption("--reason <why>", "is noted and shown")
    .action(async (pool: string | undefined, _options, command: Command) =>
      ended(await (await import("./commands/operator.ts")).freeze(context, pool, optionsOf(command))),
    );

  program
    .command("unfreeze")
    .description("decide again before a freeze ends")
    .argument("[pool]")
    .option("--all", "all pools")
    .action(async (pool: string | undefined, _options, command: Command) =>
      ended(await (await import("./commands/operator.ts")).unfreeze(context, pool, optionsOf(command))),
    );

  program
    .command("storm")
    .description("make many nodes of the embedded cluster go at once")
    .requiredOption("--nodes <n>", "how many")
    .addOption(new Option("--kind <kind>", "what happens to them").choices(["interrupt", "drift", "kill"]).default("interrupt"))
    .option("--deadline <duration>", "when interrupted nodes are taken; the controller reckons with its --spot-lead", "2m")
    .option("--no-notice", "interrupts them without telling the controller")
    .option("--wait", "follows it until everybody has moved, and says what was lost; exit code 1 when something was")
    .option("--admin <url>", "the embedded cluster's admin interface (default: what relevo up wrote here)")
    .action(async (_options, command: Command) => ended(await (await import("./commands/storm.ts")).storm(context, optionsOf(command))));

  program
    .command("simulate")
    .description("what Relevo would do with pools or a fleet if …: a scenario in a virtual world; nothing real is touched")
    .requiredOption("-f, --filename <file>", "a scenario (docs/scenarios.md), or - for standard input")
    .option("--seeds <range>", "one, or a range such as 1..1000; the same seed is always the same run", "1")
    .option("--baselines", "of a fleet: the same storms without Relevo too; done anyway for a single seed")
    .option("--no-baselines", "not even for a single seed")
    .action(async (_options, command: Command) =>
      ended(await (await import("./commands/simulate.ts")).simulate(context, optionsOf(command))),
    );

  program
    .command("adopt")
    .description("a Pool takes over the replica count of its target; who owns it now is named, and removed only by name and UID")
    .argument("<pool>")
    .option("--remove-owner <kind/name>", "the autoscaler that goes: HorizontalPodAutoscaler/NAME or ScaledObject/NAME")
    .option("--uid <uid>", "its UID, as it was named")
    .option("--accept-manager <name>", "a field manager that leaves the count alone from now on; may be repeated", collect)
    .option("--dry-run", "only says what would be done, or refused")
    .option("--release", "the Pool gives its target back: it keeps its replicas")
    .action(async (pool: string, _options, command: Command) =>
      ended(await (await import("./commands/adopt.ts")).adopt(context, pool, optionsOf(command))),
    );

  program
    .command("import")
    .description("what other tools were told, as documents for relevo apply; nothing is applied")
    .command("keda")
    .description("ScaledObjects and their TriggerAuthentications as Pools with a target, and in what they differ")
    .requiredOption("-f, --filename <file>", "YAML, or - for standard input")
    .option("--trigger <n>", "which trigger becomes the signal, from 0 (default: the first that can)", whole)
    .action(async (_options, command: Command) =>
      ended(await (await import("./commands/import-keda.ts")).importKeda(context, optionsOfNested(command))),
    );

  program
    .command("release")
    .description("gives up a step whose effect nobody can tell: what is to be done is decided anew from what is seen")
    .argument("<operation>", "an operation, or the id of a step, as relevo get steps shows it")
    .requiredOption("--reason <why>", "is noted")
    .action(async (operation: string, _options, command: Command) =>
      ended(await (await import("./commands/overrule.ts")).release(context, operation, optionsOf(command))),
    );

  program
    .command("seal")
    .description("ends the drain of an instance with what it still has: that is lost, and outside the zero-loss claim")
    .argument("<instance>")
    .option("--force", "without it nothing is sealed by hand")
    .requiredOption("--reason <why>", "is noted and shown")
    .option("--until <duration>", "so long somebody looks after what was lost, and doctor says so", "24h")
    .action(async (instance: string, _options, command: Command) =>
      ended(await (await import("./commands/overrule.ts")).seal(context, instance, optionsOf(command))),
    );

  program
    .command("bundle")
    .description("writes what somebody needs to see who helps, without secrets, into one file")
    .option("--file <file>", "where to; - for standard output (default: relevo-bundle-<time>.json)")
    .option("--logs <file or folder>", "the end of these too; may be repeated", collect)
    .action(async (_options, command: Command) => ended(await (await import("./commands/bundle.ts")).bundle(context, optionsOf(command))));

  const verify = program.command("verify").description("by effect, on the real thing");
  addVerifyScaling(verify, context, ended);
  verify
    .command("disruption")
    .description(
      "how each live pod is protected, changing nothing; with --replace, what becomes of requests while a node's instances are replaced",
    )
    .argument("<pool>")
    .option("--replace <node>", "drains the pool's instances on this node, under requests")
    .option("--gateway <url>", "where the requests go: the gateway, with a path that answers a plain GET")
    .option("--rate <number>", "requests a second", "20")
    .option("--within <duration>", "how long the replacement may take", "15m")
    .action(async (pool: string, _options, command: Command) =>
      ended(await (await import("./commands/verify.ts")).verifyDisruption(context, pool, optionsOfNested(command))),
    );

  program
    .command("doctor")
    .description("what is wrong with the installation, and what to do")
    .action(async (_options, command: Command) => ended(await (await import("./commands/doctor.ts")).doctor(context, optionsOf(command))));
}

function addStore(program: Command, context: CliContext, processes: ProcessCommands, ended: Ended): void {
  const store = program
    .command("store")
    .description("the store itself: to move and migrate it, whether it was rewound, and to go on with it");
  store
    .command("check")
    .description("who has seen more of the store than is in it; exit code 4 while a pool is held for it")
    .action(async (_options, command: Command) =>
      ended(await (await import("./commands/store.ts")).checkStore(context, optionsOfNested(command))),
    );
  store
    .command("recover")
    .description("after an old backup was restored: raises the era above all that was seen, and decides again")
    .requiredOption("--reason <why>", "is noted and shown")
    .option("--force", "also when nobody is left who has seen more; every writer lease ends")
    .action(async (_options, command: Command) =>
      ended(await (await import("./commands/store.ts")).recoverStore(context, optionsOfNested(command))),
    );
  const onStore = (name: string, description: string) =>
    store
      .command(name)
      .description(description)
      .option("--store <file or URL>", "a SQLite file, or postgresql://user@host/database (default: RELEVO_STORE, or .relevo/store.db)")
      .option("--store-password-file <file>", "of PostgreSQL (default: RELEVO_STORE_PASSWORD_FILE, PGPASSWORD, PGPASSFILE)");
  onStore("migrate", "brings the schema up to this version; old replicas may go on running meanwhile")
    .option("--dry-run", "only says what it would do")
    .action(async (_options, command: Command) => ended(await processes.store(context, "migrate", optionsOfNested(command))));
  onStore("export", "writes everything as lines of JSON with a checksum; a SQLite file must not be in use")
    .option("--file <file>", "where to (default: standard output); it holds the key of writer leases")
    .action(async (_options, command: Command) => ended(await processes.store(context, "export", optionsOfNested(command))));
  onStore("import", "fills an empty store with an export, whatever database either is")
    .option("--file <file>", "where from (default: standard input)")
    .option("--dry-run", "does all of it and takes it back")
    .action(async (_options, command: Command) => ended(await processes.store(context, "import", optionsOfNested(command))));
}

function addTokens(program: Command, context: CliContext, ended: Ended): void {
  program
    .command("token")
    .description("tokens of a controller with --token-file")
    .command("create")
    .description("prints a new token, once, and its line for the file; writes nothing")
    .requiredOption("--name <name>", "who gets it; of a gateway its --replica, of an agent its node")
    .addOption(
      new Option("--role <role>", "what it is good for").choices(["viewer", "operator", "admin", "gateway", "agent"]).makeOptionMandatory(),
    )
    .action(async (_options, command: Command) =>
      ended(await (await import("./commands/token.ts")).createToken(context, optionsOfNested(command))),
    );
}

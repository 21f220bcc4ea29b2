/** The load client as a process of its own, so that nothing else disturbs its event loop; driven by `client-process.ts` over the IPC channel. */
import { RelevoError } from "../../../kernel/errors.ts";
import { systemClock, systemIds, systemRandom } from "../../../kernel/system.ts";
import { LoadClient } from "./client.ts";
import type { ClientAnswer, ClientCommand } from "./client-process.ts";

let client: LoadClient | null = null;

async function perform(command: ClientCommand): Promise<unknown> {
  if (command.call === "start") {
    client = new LoadClient(command.options, { clock: systemClock, random: systemRandom, ids: systemIds });
    return client.start();
  }
  if (client === null) throw new RelevoError("load_not_started", "The load was not started.", { class: "conflict" });
  switch (command.call) {
    case "startAct":
      return client.startAct(command.name, command.mix ?? undefined);
    case "endAct":
      return client.endAct(command.name);
    case "snapshot":
      return client.snapshot();
    case "stop":
      return client.stop();
    default:
      return command satisfies never;
  }
}

function answer(message: ClientAnswer): void {
  if (process.connected) process.send?.(message);
}

process.on("message", (message: { readonly seq: number; readonly command: ClientCommand }) => {
  perform(message.command).then(
    (value) => answer({ seq: message.seq, ok: true, value: value ?? null }),
    (error: unknown) =>
      answer({
        seq: message.seq,
        ok: false,
        code: error instanceof RelevoError ? error.code : "load_failed",
        message: error instanceof Error ? error.message : String(error),
      }),
  );
});
// The parent is gone: so is the reason for the load.
process.once("disconnect", () => process.exit(0));

/** `relevo store check, recover`: a store that was restored from an old backup is seen, and gone on with. */
import { storeView, type StoreView } from "../../server/views.ts";
import { connect } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { renderDocument } from "../output.ts";

/** Exit code 4 while a pool is held because the store was rewound. */
export async function checkStore(context: CliContext, options: GlobalOptions): Promise<ExitCode> {
  const state = await connect(context, options).get("/v1/store", storeView);
  context.out(renderDocument(state, options.output) ?? describe(state));
  return state.pools.some(({ rewound }) => rewound !== null) ? EXIT.held : EXIT.done;
}

export interface RecoverOptions extends GlobalOptions {
  readonly reason: string;
  readonly force?: boolean;
}

export async function recoverStore(context: CliContext, options: RecoverOptions): Promise<ExitCode> {
  const body = { why: options.reason, by: context.user, force: options.force === true };
  const state = await connect(context, options).post("/v1/store/recover", body, storeView);
  context.out(
    renderDocument(state, options.output) ??
      `the store goes on in era ${state.era}: every pool is owned anew, every writer lease has ended\n${describe(state)}`,
  );
  return EXIT.done;
}

function describe({ era, recovered, pools }: StoreView): string {
  const head = `era ${era}${recovered === null ? "" : `, recovered at ${recovered.at} by ${recovered.by}: ${recovered.why}`}\n`;
  return head + (pools.length === 0 ? "no pool\n" : pools.map(describePool).join(""));
}

function describePool({ pool, authorityEpoch, generation, rewound, strangers }: StoreView["pools"][number]): string {
  const unknown = strangers.length === 0 ? "" : `; not known to the store: ${strangers.join(", ")}`;
  if (rewound === null) return `${pool}: sound (authority ${authorityEpoch ?? "?"}, generation ${generation ?? "?"})${unknown}\n`;
  const { witness, what, seen, stored } = rewound;
  return `${pool}: rewound: ${witness} has seen ${what} ${seen}, the store has ${stored ?? "none"}; held until relevo store recover --reason …${unknown}\n`;
}

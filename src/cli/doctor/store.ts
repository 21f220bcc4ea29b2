/** Whether somebody has seen more of the store than is in it. */
import { bad, type Finding, ok } from "../../model/finding.ts";
import { storeView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";

export async function checkStoreItself(client: ControllerClient): Promise<readonly Finding[]> {
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
            recovered === null
              ? "another controller with another store acts here, or the store was lost: make sure that no other controller runs, then npx relevo store recover --reason WHY"
              : `npx relevo explain ${pool}: what was there before the recovery is deleted by itself`,
          ),
        ]),
  ]);
  if (findings.length > 0) return findings;
  return [ok("store epochs", `era ${era}${recovered === null ? "" : `, recovered at ${recovered.at}`}; nobody has seen more`)];
}

/** What the controller itself finds in the cluster and under its store, and who sends notices. */
import { bad, type Finding, ok } from "../../model/finding.ts";
import { findingView, senderView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";

export async function checkCluster(client: ControllerClient): Promise<readonly Finding[]> {
  return client.list("/v1/examination", findingView);
}

export async function checkSources(client: ControllerClient): Promise<readonly Finding[]> {
  const senders = await client.list("/v1/sources", senderView);
  if (senders.length === 0) return [ok("notices", "no queue and no agent sends any here: only what the cluster shows, and webhooks")];
  return senders.map(({ source, from, state, lastHeardAt, trouble }) => {
    const check = `notices of ${source}`;
    if (state === "heard" && trouble === null) return ok(check, `${from} was heard at ${lastHeardAt ?? "?"}`);
    const what = `${from} ${state === "heard" ? "is heard" : state === "silent" ? `is silent since ${lastHeardAt ?? "?"}` : "was never heard"}`;
    return bad(
      check,
      "warning",
      `${what}${trouble === null ? "" : `: ${trouble}`}`,
      source === "sqs" ? "see docs/notices.md, The queue" : "see its log; another replica may hear it: relevo get sources",
    );
  });
}

/** The embedded cluster's API alone: no controllers, no scheduler, no nodes, as the real one is recorded. */
import { startEmbeddedApi } from "../../src/embedded/http/server.ts";
import { bootstrapCluster } from "../../src/embedded/store/bootstrap.ts";
import { ObjectStore } from "../../src/embedded/store/object-store.ts";
import { systemClock as clock, systemIds as ids } from "../../src/kernel/system.ts";

export async function startEmbedded(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const store = new ObjectStore({ clock, ids });
  bootstrapCluster(store);
  return startEmbeddedApi({ store, clock, podLogs: { read: () => ReadableStream.from([]) } });
}

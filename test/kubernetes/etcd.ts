/** What is done to the store of a real API server behind its back. */
import { request } from "undici";
import type { RealCluster } from "./cluster.ts";

/** Forgets all history up to now, as the API server itself does every five minutes. */
export async function compactEtcd({ etcdUrl }: RealCluster): Promise<void> {
  const { header } = await post(`${etcdUrl}/v3/kv/range`, { key: Buffer.from("/").toString("base64") });
  await post(`${etcdUrl}/v3/kv/compaction`, { revision: header.revision, physical: true });
}

interface Answer {
  readonly header: { readonly revision: string };
}

async function post(url: string, body: object): Promise<Answer> {
  const response = await request(url, { method: "POST", body: JSON.stringify(body) });
  const text = await response.body.text();
  if (response.statusCode !== 200) throw new Error(`etcd answered ${response.statusCode}: ${text}`);
  return JSON.parse(text) as Answer;
}

/** The store of a controller, and the key of the lease tokens, which belongs to it: who restores the one needs the other, and replicas that share the one share both. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { newSecret } from "../../kernel/system.ts";
import { givenLeaseKey, leaseKeyIn } from "../../lease/key-file.ts";
import type { Store } from "../../store/port.ts";
import { isPostgresUrl, openStore, type StoreOptions } from "../../store/store.ts";

/** Under which PostgreSQL keeps the key; a file has it beside itself. */
export const LEASE_KEY = "lease-key";

export interface ControllerStoreOptions {
  /** The SQLite file, or a `postgresql://` URL. */
  readonly store: string;
  /** Of PostgreSQL; absent: PGPASSWORD, PGPASSFILE or what the URL has. */
  readonly storePassword?: StoreOptions["password"] | undefined;
  /** The same for all replicas; absent: the store's own. */
  readonly leaseKeyFile?: string | undefined;
}

/** Errors: those of `openStore` and `leaseKeyIn`. */
export async function openControllerStore(options: ControllerStoreOptions): Promise<{ readonly store: Store; readonly leaseKey: string }> {
  const { store: path, storePassword, leaseKeyFile } = options;
  const isShared = isPostgresUrl(path);
  if (!isShared) mkdirSync(dirname(path), { recursive: true });
  const store = await openStore({ path, ...(storePassword === undefined ? {} : { password: storePassword }) });
  if (leaseKeyFile !== undefined) return { store, leaseKey: givenLeaseKey(leaseKeyFile) };
  return { store, leaseKey: isShared ? await store.sharedSecret(LEASE_KEY, newSecret()) : leaseKeyIn(leaseKeyFileOf(path)) };
}

export function leaseKeyFileOf(path: string): string {
  return `${path}.lease-key`;
}

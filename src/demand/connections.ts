/**
 * What the operator of a controller lets Pools read demand from: `relevo controller --connections FILE`. Pools name them; addresses and secrets are here alone.
 * `${env:NAME}` and `${file:/path}` in text values are filled in when the file is read, so that it can be kept without a secret in it.
 */
import { z } from "zod";
import { rfc1123Label } from "../model/names.ts";

const name = rfc1123Label;

/** It becomes a header: what cannot stand in one would be told, with all of it, by whoever refuses it. */
const token = z.string().refine((text) => /^[\x20-\x7e]+$/.test(text), "it must be one line of printable ASCII");
/** An address alone: a password in it would be shown wherever the address is. */
const httpUrl = z.string().refine(isHttpUrl, "it must be a URL of http or https, without user and password");

const common = {
  /** Several may have one name where no site has two of them: a route and a credential of its own for each. */
  name,
  /** Where it exists; absent: at every site. */
  sites: z.array(z.string()).min(1).optional(),
  /** Whose Pools may use it; absent: all. */
  namespaces: z.array(z.string()).min(1).optional(),
};
const tls = z.strictObject({ caFile: z.string().optional(), serverName: z.string().optional() }).optional();

export const connectionSchema = z.discriminatedUnion("kind", [
  z.strictObject({ ...common, kind: z.literal("queue"), url: httpUrl, token }),
  z.strictObject({ ...common, kind: z.literal("postgresql"), url: z.string().min(1) }),
  z.strictObject({ ...common, kind: z.literal("redis"), url: z.string().min(1), tls }),
  z.strictObject({
    ...common,
    kind: z.literal("kafka"),
    brokers: z.array(z.string().min(1)).min(1).max(50),
    sasl: z
      .strictObject({ mechanism: z.enum(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]), username: z.string(), password: z.string() })
      .optional(),
    tls,
  }),
  z.strictObject({
    ...common,
    kind: z.literal("sqs"),
    region: z.string().min(1),
    endpoint: httpUrl.optional(),
    /** Absent: the credentials chain of the AWS SDK. */
    credentials: z.strictObject({ accessKeyId: z.string(), secretAccessKey: z.string() }).optional(),
  }),
  z.strictObject({
    ...common,
    kind: z.literal("google-monitoring"),
    endpoint: httpUrl.default("https://monitoring.googleapis.com"),
    /** A service account's key file, or the machine's own identity. */
    auth: z.union([z.strictObject({ keyFile: z.string() }), z.literal("metadata"), z.literal("none")]).default("metadata"),
  }),
  z.strictObject({ ...common, kind: z.literal("prometheus"), url: httpUrl, bearerToken: token.optional(), tls }),
  z
    .strictObject({
      ...common,
      kind: z.literal("trino"),
      /** Of one coordinator. */
      url: httpUrl,
      user: token.default("relevo"),
      password: z.string().optional(),
      bearerToken: token.optional(),
      tls,
    })
    .refine(({ url, password, bearerToken }) => url.startsWith("https:") || (password ?? bearerToken) === undefined, {
      path: ["url"],
      message: "a password or a token goes over https alone: a coordinator takes none otherwise",
    }),
]);
export type Connection = z.output<typeof connectionSchema>;
export type ConnectionKind = Connection["kind"];
export type ConnectionOf<K extends ConnectionKind> = Extract<Connection, { readonly kind: K }>;

export const connectionsSchema = z
  .strictObject({ connections: z.array(connectionSchema).max(200) })
  .refine(({ connections }) => connections.every(isTheOnlyOne), "two connections have one name at one site");

function isHttpUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}

function isTheOnlyOne(connection: Connection, index: number, all: readonly Connection[]): boolean {
  return all.slice(0, index).every((other) => other.name !== connection.name || !shareASite(other, connection));
}

function shareASite(one: Connection, other: Connection): boolean {
  return one.sites === undefined || other.sites === undefined || one.sites.some((site) => other.sites?.includes(site));
}

/** Whether it exists there. */
export function isAt({ sites }: Connection, site: string): boolean {
  return sites === undefined || sites.includes(site);
}

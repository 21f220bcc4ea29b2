/** Addresses of spooled segments carry no query id: each gets a signed token that says which cluster it leads to. */
const PARAMETER = "relevo";
const SPOOLED = "/v1/spooled/";

/** An address as it stands in a page. What rows or texts hold cannot look like it: their quotes are escaped. */
const ADDRESS = /("(?:uri|ackUri)"\s*:\s*)("(?:[^"\\]|\\.)*")/g;

/**
 * The page with the addresses of its spooled segments changed by `sign`, as far as they lead here; undefined when there is none. Only these texts change: numbers
 * and rows stay as they were written.
 */
export function signSegments(page: Buffer, base: string, sign: () => string): Buffer | undefined {
  const text = page.toString();
  const signed = new Map<string, string>();
  for (const addresses of segmentAddresses(text)) {
    const own = addresses.filter((address) => leadsHere(address, base));
    if (own.length === 0) continue;
    // A segment's address and that of its acknowledgement are one session.
    const token = sign();
    for (const address of own) signed.set(address, withToken(address, token));
  }
  if (signed.size === 0) return undefined;
  const changed = text.replace(ADDRESS, (whole, name: string, literal: string) => {
    const address = signed.get(JSON.parse(literal) as string);
    return address === undefined ? whole : `${name}${JSON.stringify(address)}`;
  });
  return Buffer.from(changed);
}

function segmentAddresses(text: string): readonly (readonly string[])[] {
  let page: unknown;
  try {
    page = JSON.parse(text);
  } catch {
    return []; // it passes as it is
  }
  const segments = field(field(page, "data"), "segments");
  if (!Array.isArray(segments)) return [];
  return segments
    .filter((segment) => field(segment, "type") === "spooled")
    .map((segment) => [field(segment, "uri"), field(segment, "ackUri")].filter((address) => typeof address === "string"));
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}

/** Others lead to the storage itself, and are signed by it. */
function leadsHere(address: string, base: string): boolean {
  if (!URL.canParse(address) || !URL.canParse(base)) return false;
  const { host, pathname } = new URL(address);
  return host === new URL(base).host && pathname.startsWith(SPOOLED);
}

function withToken(address: string, token: string): string {
  return `${address}${address.includes("?") ? "&" : "?"}${PARAMETER}=${token}`;
}

/** The path as the cluster knows it, and the token that it came with. */
export function withoutToken(path: string): { readonly path: string; readonly token: string | undefined } {
  const at = path.indexOf("?");
  if (at < 0) return { path, token: undefined };
  const parts = path.slice(at + 1).split("&");
  const kept = parts.filter((part) => !part.startsWith(`${PARAMETER}=`));
  const token = parts.find((part) => part.startsWith(`${PARAMETER}=`))?.slice(PARAMETER.length + 1);
  return { path: kept.length === 0 ? path.slice(0, at) : `${path.slice(0, at)}?${kept.join("&")}`, token };
}

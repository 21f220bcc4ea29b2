/** Which names and addresses can only mean this machine. */
import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Of a host without its port. `127.evil.example` is a name that anybody may point anywhere: only whole addresses count, and `localhost`. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(bare);
  return family === 0 ? bare === "localhost" : LOOPBACK.check(bare, family === 4 ? "ipv4" : "ipv6");
}

/** Of a Host header, with or without a port; false when there is none. */
export function isLoopbackHostHeader(header: string | undefined): boolean {
  return isLoopback((header ?? "").replace(/:\d+$/, ""));
}

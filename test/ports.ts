/** Ports of this machine for servers in tests. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";

const HOST = "127.0.0.1";

/** Any free port of loopback; resolves to it. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, HOST);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Different ones, each free a moment ago: for programs that open their port by themselves. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(servers.map(listen));
  await Promise.all(
    servers.map((server) => {
      server.close();
      return once(server, "close");
    }),
  );
  return ports;
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** The ledger as a process of its own: `node ledger-main.ts FILE [PORT]`. Its first line on stdout is `{"url": …}`; it ends when its stdin does. */
import { Ledger } from "./ledger.ts";
import { serveLedger } from "./ledger-server.ts";

const [path, port] = process.argv.slice(2);
if (path === undefined) {
  console.error("usage: ledger-main FILE [PORT]");
  process.exit(2);
}
const ledger = await Ledger.open(path);
const server = await serveLedger(ledger, port === undefined ? 0 : Number(port));
console.log(JSON.stringify({ url: server.url }));

// The parent holds the other end: when it goes, however it goes, the ledger goes too.
process.stdin.resume();
process.stdin.once("end", async () => {
  await server.close();
  await ledger.close();
  process.exit(0);
});

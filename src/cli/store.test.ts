import { expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import type { StorePoolState, StoreState } from "../server/control-plane.ts";
import { aPool, FakeControlPlane, NOON } from "../server/testing/fake-control-plane.ts";
import { runCli } from "./testing/run-cli.ts";

const SOUND: StorePoolState = {
  pool: "default/orders",
  authorityEpoch: epoch(0, 3),
  generation: epoch(0, 7),
  rewound: null,
  strangers: [],
};

const REWOUND: StorePoolState = {
  ...SOUND,
  rewound: { witness: "gateway gw-1", what: "generation", seen: epoch(0, 9), stored: epoch(0, 7) },
};

function controllerWith(state: Partial<StoreState>): FakeControlPlane {
  return new FakeControlPlane({ pools: [aPool()], store: { era: 0, recovered: null, pools: [], ...state } });
}

test("store check tells of each pool whether anybody has seen more than the store", async () => {
  const fake = controllerWith({ pools: [SOUND, { ...SOUND, pool: "default/shop", strangers: ["shop-x", "shop-y"] }] });
  expect(await runCli(["store", "check"], { fake })).toEqual({
    code: 0,
    err: "",
    out: [
      "era 0",
      "default/orders: sound (authority 0.3, generation 0.7)",
      "default/shop: sound (authority 0.3, generation 0.7); not known to the store: shop-x, shop-y",
      "",
    ].join("\n"),
  });
});

test("store check of a store that was rewound says who saw what, and ends as held", async () => {
  expect(await runCli(["store", "check"], { fake: controllerWith({ pools: [REWOUND] }) })).toEqual({
    code: 4,
    err: "",
    out: [
      "era 0",
      "default/orders: rewound: gateway gw-1 has seen generation 0.9, the store has 0.7; held until relevo store recover --reason …",
      "",
    ].join("\n"),
  });
});

test("store recover asks with who and why, and tells what there is then; global options may stand behind it", async () => {
  const fake = controllerWith({ pools: [REWOUND] });
  const run = await runCli(["store", "recover", "--reason", "yesterday's backup", "-o", "json"], { fake });
  expect([run.code, run.err, JSON.parse(run.out)]).toEqual([
    0,
    "",
    {
      era: 1,
      recovered: { at: new Date(NOON).toISOString(), from: 0, why: "yesterday's backup", by: "ann" },
      pools: [{ ...SOUND, strangers: [] }],
    },
  ]);
  expect(fake.calls).toEqual([{ call: "recoverStore", with: { why: "yesterday's backup", by: "ann", force: false } }]);
  const forced = await runCli(["store", "recover", "--reason", "r", "--force"], { fake });
  expect([forced.code, forced.out.split("\n")[0]]).toEqual([
    0,
    "the store goes on in era 1: every pool is owned anew, every writer lease has ended",
  ]);
  expect(fake.calls.at(-1)).toMatchObject({ with: { force: true } });
});

test("store recover without a reason is a mistake of usage, and asks nothing", async () => {
  const fake = controllerWith({ pools: [REWOUND] });
  const run = await runCli(["store", "recover"], { fake });
  expect([run.code, fake.calls]).toEqual([2, []]);
  expect(run.err).toContain("--reason");
});

test("doctor tells of a store that was rewound, and of what it does not know", async () => {
  const lines = async (pools: readonly StorePoolState[], recovered: StoreState["recovered"] = null) =>
    (await runCli(["doctor"], { fake: controllerWith({ pools, recovered }) })).out.split("\n").filter((line) => line.includes("store, "));
  expect(await lines([REWOUND])).toEqual([
    "held     store, default/orders: it was rewound: gateway gw-1 has seen generation 0.9, the store has 0.7; npx relevo store recover --reason WHY, once it is the newest backup that there is",
  ]);
  expect(await lines([{ ...SOUND, strangers: ["orders-x"] }])).toEqual([
    "warning  store, default/orders: does not know the instances of these objects: orders-x; another controller with another store acts here, or the store was lost: make sure that no other controller runs, then npx relevo store recover --reason WHY",
  ]);
  expect(await lines([{ ...SOUND, strangers: ["orders-x"] }], { at: NOON, from: 0, why: "a backup", by: "ann" })).toEqual([
    "warning  store, default/orders: does not know the instances of these objects: orders-x; npx relevo explain default/orders: what was there before the recovery is deleted by itself",
  ]);
});

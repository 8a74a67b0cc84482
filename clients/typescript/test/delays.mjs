// Run by tests/clients/test_typescript.py: a machine with delays, in a process that is restarted.
//   node test/delays.mjs URL TOKEN STATE_FILE COMMAND
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { assign, createActor, setup } from "xstate";
import { Tocsin } from "../src/client.js";
import { durableDelays } from "../src/xstate.js";

const [url, token, file, command] = process.argv.slice(2);
const stored = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;

const machine = setup({ actions: { count: assign({ fired: ({ context }) => context.fired + 1 }) } }).createMachine({
  id: "order",
  context: { fired: 0 },
  initial: "idle",
  states: {
    idle: { on: { WAIT: "waiting", LONG: "far" } },
    waiting: { after: { 2000: { target: "reminded", actions: "count" } }, on: { CANCEL: "idle" } },
    far: { after: { 600000: "reminded" }, on: { CANCEL: "idle" } },
    reminded: { type: "final" },
  },
});

const tocsin = new Tocsin({ url, token });
const delays = await durableDelays(tocsin, { owner: "shop", system: "order-7", after: stored?.seq });
const actor = delays.attach(createActor(machine, stored ? { snapshot: stored.snapshot } : {}));
actor.start();
if (command === "await") {
  await new Promise((resolve) => actor.subscribe({ complete: resolve, next: (s) => s.status === "done" && resolve() }));
} else {
  for (const type of command.split(",")) if (type !== "STOP") actor.send({ type });
  if (command.includes("STOP")) delays.cancelAll(actor);
}
await delays.settled();
writeFileSync(file, JSON.stringify({ seq: delays.seq, snapshot: actor.getPersistedSnapshot() }));
console.log(JSON.stringify({ value: actor.getSnapshot().value, fired: actor.getSnapshot().context.fired }));
process.exit(0);

// A scheduler for XState 5 whose delays (`after`, `raise` and `sendTo` with a delay) survive restarts.
//
// A delay becomes a schedule of Tocsin. When it fires, its record reaches this process through the feed, and
// the event goes to its actor. A process that was away reads the records that it missed, from the seq that
// the service stored with its snapshot.
//
//     const delays = await durableDelays(tocsin, { owner: "shop", system: "order-7", after: stored?.seq });
//     const actor = createActor(machine, { snapshot: stored?.snapshot });
//     delays.attach(actor);
//     actor.start();
//
// Store `delays.seq` together with `actor.getPersistedSnapshot()`.

const TYPE = "xstate-delay";
const MAX_NAME = 128;

export async function durableDelays(tocsin, { owner, system, after, onError = reportError }) {
  const position = after ?? (await newestSeq(tocsin));
  return new DurableDelays(tocsin, owner, system, position, onError);
}

class DurableDelays {
  #tocsin; #owner; #system; #onError;
  #root = undefined;
  #changes = Promise.resolve();
  #stop = new AbortController();
  // Delays that no change has stored or cancelled yet: the path of their source, by name.
  #waiting = new Map();

  constructor(tocsin, owner, system, seq, onError) {
    this.#tocsin = tocsin;
    this.#owner = owner;
    this.#system = system;
    this.#onError = onError;
    this.seq = seq;
  }

  // Replace the scheduler of the actor's system. Before `start`, because that may schedule.
  attach(actor) {
    this.#root = actor;
    actor.system.scheduler = this;
    this.#follow();
    return actor;
  }

  schedule(source, target, event, delay, id = Math.random().toString(36).slice(2)) {
    const name = this.#name(source, id);
    const body = {
      owner: this.#owner,
      name,
      at: new Date(Date.now() + delay).toISOString(),
      type: TYPE,
      payload: { system: this.#system, source: pathOf(source), target: pathOf(target), event, id },
    };
    this.#waiting.set(name, pathOf(source));
    this.#change(() => this.#put(name, body));
  }

  cancel(source, id) {
    this.#cancelName(this.#name(source, id));
  }

  cancelAll(actor) {
    const source = pathOf(actor);
    for (const [name, of] of this.#waiting) if (of === source) this.#waiting.delete(name);
    this.#change(async () => {
      for (const found of await this.#active()) {
        if (found.payload.system === this.#system && found.payload.source === source) await this.#cancelId(found.id);
      }
    });
  }

  // Resolves when Tocsin has stored every change so far. Wait for it before you store a snapshot.
  settled() {
    return this.#changes;
  }

  async close() {
    this.#stop.abort();
    await this.#changes;
  }

  #name(source, id) {
    return nameOf(`${this.#system}/${pathOf(source)}/${id}`);
  }

  // One change after the other, so that a cancel never overtakes its schedule.
  #change(work) {
    this.#changes = this.#changes.then(work).catch((error) => this.#onError(error));
  }

  async #put(name, body) {
    if (!this.#waiting.delete(name)) return; // cancelled meanwhile
    const found = await this.#find(name);
    if (found === undefined) {
      await this.#tocsin.request("POST", "/v1/schedules", { body });
      return;
    }
    const { owner: _owner, name: _name, ...content } = body;
    const headers = { "if-match": `"${found.generation}"` };
    await this.#tocsin.request("PUT", `/v1/schedules/${found.id}`, { body: content, headers });
  }

  #cancelName(name) {
    this.#waiting.delete(name);
    this.#change(async () => {
      const found = await this.#find(name);
      if (found?.status === "active") await this.#cancelId(found.id);
    });
  }

  async #cancelId(id) {
    await this.#tocsin.request("POST", `/v1/schedules/${id}:cancel`);
  }

  async #active() {
    const found = [];
    let cursor;
    do {
      const query = { owner: this.#owner, type: TYPE, status: "active", limit: 500, cursor };
      const page = await this.#tocsin.request("GET", "/v1/schedules", { query });
      found.push(...page.items);
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    return found;
  }

  async #find(name) {
    const page = await this.#tocsin.request("GET", "/v1/schedules", { query: { owner: this.#owner, name } });
    return page.items[0];
  }

  async #follow() {
    const query = `type:${TYPE} owner:"${this.#owner}"`;
    try {
      for await (const record of this.#tocsin.records({ after: this.seq, query, signal: this.#stop.signal })) {
        this.seq = record.seq;
        if (record.data?.system === this.#system) this.#deliver(record.data);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#onError(error);
    }
  }

  #deliver({ source, target, event }) {
    const [from, to] = [actorAt(this.#root, source), actorAt(this.#root, target)];
    if (to !== undefined) this.#root.system._relay(from ?? to, to, event);
  }
}

// The name of a schedule: letters, digits, "_" and "-". Two texts never have the same name.
function nameOf(text) {
  const name = text.replace(/[^A-Za-z0-9-]/gu, (sign) => `_${sign.codePointAt(0).toString(16)}_`);
  if (name.length > MAX_NAME) throw new RangeError(`${text}: the ids of system, actor and delay are too long together`);
  return name;
}

// The ids of an actor and its parents: the same after a restart, unlike its session id.
function pathOf(actor) {
  const ids = [];
  for (let at = actor; at !== undefined; at = at._parent) ids.unshift(at._parent === undefined ? "root" : at.id);
  return ids.join(".");
}

function actorAt(root, path) {
  const [, ...ids] = path.split(".");
  return ids.reduce((actor, id) => actor?.getSnapshot().children?.[id], root);
}

async function newestSeq(tocsin) {
  const page = await tocsin.request("GET", "/v1/events", { query: { limit: 1 } });
  return page.items[0]?.seq ?? 0;
}

function reportError(error) {
  queueMicrotask(() => { throw error; });
}

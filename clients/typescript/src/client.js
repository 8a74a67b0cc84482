// Client of the HTTP API of Tocsin. It needs `fetch`, and nothing else.
//
// A request that got no answer is sent again, a write with the same Idempotency-Key, so that it has its
// effect once. A problem document (RFC 9457) becomes a `Problem`.

const RETRIED = new Set([408, 429, 502, 503, 504]);

export class Problem extends Error {
  constructor(document) {
    super(document.remedy ? `${document.detail}: ${document.remedy}` : document.detail);
    this.name = "Problem";
    this.status = document.status;
    this.document = document;
  }
}

export class Tocsin {
  constructor({ url, token, attempts = 5, pauseMs = 200, fetch = globalThis.fetch }) {
    this.url = url.replace(/\/+$/, "");
    this.token = token;
    this.attempts = attempts;
    this.pauseMs = pauseMs;
    this.fetch = fetch;
  }

  async request(method, path, { query, body, headers, signal } = {}) {
    const sent = { authorization: `Bearer ${this.token}`, ...headers };
    if (body !== undefined) sent["content-type"] = "application/json";
    if (method !== "GET") sent["idempotency-key"] ??= globalThis.crypto.randomUUID();
    const options = { method, headers: sent, signal, body: body === undefined ? undefined : JSON.stringify(body) };
    for (let attempt = 1; ; attempt += 1) {
      const response = await this.#once(this.url + path + queryText(query), options, attempt);
      if (response !== undefined) return await answerOf(response);
      await pause(this.pauseMs * 2 ** (attempt - 1), signal);
    }
  }

  // The response, or undefined if the request should be sent again.
  async #once(url, options, attempt) {
    const isLast = attempt >= this.attempts;
    let response;
    try {
      response = await this.fetch(url, options);
    } catch (error) {
      if (isLast || options.signal?.aborted) throw error;
      return undefined;
    }
    if (isLast || !RETRIED.has(response.status)) {
      if (isLast || response.status !== 409) return response;
      // A request with the same key may be under way, of a process that has died.
      const problem = await response.clone().json();
      return problem.detail?.includes("is under way") ? undefined : response;
    }
    await response.body?.cancel();
    return undefined;
  }

  // The records after a seq, without end: `for await (const record of tocsin.records({ after: 0 }))`.
  async *records({ after, query = "", wait = 30, signal } = {}) {
    let position = after;
    while (!signal?.aborted) {
      const page = await this.request("GET", "/v1/records", { query: { after: position, wait, query, limit: 500 }, signal });
      yield* page.items;
      position = page.after;
    }
  }
}

function queryText(query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

async function answerOf(response) {
  const text = await response.text();
  if (!response.ok) {
    throw new Problem(response.headers.get("content-type") === "application/problem+json"
      ? JSON.parse(text)
      : { status: response.status, detail: `the server answered ${response.status}` });
  }
  return text ? JSON.parse(text) : undefined;
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

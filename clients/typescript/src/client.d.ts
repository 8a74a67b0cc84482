import type { Operations, Problem as ProblemDocument } from "./openapi.js";

export type { Operations } from "./openapi.js";

export interface TocsinOptions {
  url: string;
  token: string;
  /** How often a request without an answer is sent, 5 by default. */
  attempts?: number;
  /** The pause before the second attempt; it doubles. */
  pauseMs?: number;
  fetch?: typeof fetch;
}

export interface RequestOptions<Body = unknown> {
  query?: Record<string, string | number | boolean | undefined>;
  body?: Body;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** A CloudEvent of the record log. */
export interface LiveRecord {
  seq: number;
  id: string;
  type: string;
  time?: string;
  owner?: string;
  data: Record<string, unknown>;
  [attribute: string]: unknown;
}

export class Problem extends Error {
  readonly status: number;
  readonly document: ProblemDocument;
}

export class Tocsin {
  constructor(options: TocsinOptions);
  /** `request("GET", "/v1/alarms")`; for a path with parameters, name the operation: `request<Operations["..."]>`. */
  request<Key extends keyof Operations & `${string} ${string}`>(
    ...of: Key extends `${infer Method} ${infer Path}`
      ? [method: Method, path: Path, options?: RequestOptions<Operations[Key]["body"]>]
      : never
  ): Promise<Operations[Key]["answer"]>;
  request<Operation extends { body: unknown; answer: unknown } = { body: unknown; answer: any }>(
    method: string,
    path: string,
    options?: RequestOptions<Operation["body"]>,
  ): Promise<Operation["answer"]>;
  /** The records after a seq, without end. */
  records(options: { after: number; query?: string; wait?: number; signal?: AbortSignal }): AsyncGenerator<LiveRecord>;
}

import type { AnyActorRef, AnyEventObject } from "xstate";
import type { Tocsin } from "./client.js";

export interface DelayOptions {
  /** The owner of the schedules. The token needs the roles `author` and `viewer` for it. */
  owner: string;
  /** The name of this system of actors: the same after a restart. */
  system: string;
  /** The seq that was stored with the snapshot; without one, only delays that fire from now on. */
  after?: number;
  onError?: (error: unknown) => void;
}

export interface DurableDelays {
  /** The seq of the newest delay that was delivered. Store it with the snapshot. */
  readonly seq: number;
  attach<T extends AnyActorRef>(actor: T): T;
  schedule(source: AnyActorRef, target: AnyActorRef, event: AnyEventObject, delay: number, id?: string): void;
  cancel(source: AnyActorRef, id: string): void;
  cancelAll(actor: AnyActorRef): void;
  /** Resolves when Tocsin has stored every change so far. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

export function durableDelays(tocsin: Tocsin, options: DelayOptions): Promise<DurableDelays>;

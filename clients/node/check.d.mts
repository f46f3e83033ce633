export declare const defaultURL: string;
export declare const defaultSocket: string;

/** Names a counter, and units of it. */
export interface Query {
  /** A RateLimitPolicy in the pod's namespace that selects the pod. */
  policy: string;
  /** One of its limits. */
  limit: string;
  /** The value that has a counter of its own, or the values of a key of several parts. */
  key?: string | string[];
  /** Who is charged, where the limit has fairness. */
  tenant?: string;
  /** Units; 1 by default. */
  cost?: number;
}

export interface Decision {
  /** Whether to go on, after delayMs. */
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Until nothing counts any more. */
  resetAfterMs: number;
  /** Until it may be allowed; 0 when waiting does not help. */
  retryAfterMs: number;
  delayMs: number;
}

export type Source = "Lease" | "Store" | "LocalShare" | "FailureAction" | "Drain" | "Bypass";
export type Reason = "Exhausted" | "TooLarge" | "Amnesia" | "ClockBehind";
export type Admission = "Now" | "Later" | "Never" | "Unknown";

interface Known {
  /** Units that the sidecar holds. */
  credits: number;
  /** Who would decide. */
  source: Source;
  /** Why the cost is refused. */
  reason?: Reason;
  /** How long ago the store was read, at most. */
  storeAgeMs?: number;
  /** Why it was not. */
  unread?: string;
  /** The key would share a counter. */
  shared?: boolean;
  /** The limit refuses nothing. */
  shadow?: boolean;
}

export interface State extends Decision, Known {}

export interface Peek {
  allowed: boolean;
  retryAfterMs: number;
  limits: State[];
}

export interface Outlook extends Known {
  admitted: Admission;
  /** With Now and Later. */
  afterMs?: number;
  delayMs: number;
  remaining: number;
  fullAfterMs: number;
}

export interface Forecast {
  admitted: Admission;
  afterMs?: number;
  limits: Outlook[];
}

export declare class CheckError extends Error {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
}

export declare class Client {
  /** The url is http://HOST:PORT, or unix:// and the path of a socket; defaultURL by default. */
  constructor(options?: { url?: string; timeoutMs?: number });
  check(query: Query): Promise<Decision>;
  peek(...queries: Query[]): Promise<Peek>;
  forecast(...queries: Query[]): Promise<Forecast>;
}

/** Any value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type Kind = "fix_input" | "retry" | "denied" | "unavailable" | "exhausted" | "bug";

export class Failure extends Error {
  constructor(message: string, kind?: Kind);
  kind: Kind;
}

export type Verdict = { decision: string; [key: string]: Json };
export type Change = { change: "unchanged" } | { change: "replaced"; value: Json };

export function allow(): Verdict;
export function deny(reason: string): Verdict;
export function ask(question: string): Verdict;
export function unchanged(): Change;
export function replaced(value: Json): Change;

export interface State<T extends Json> {
  get(): T | null;
  update(change: (old: T | null) => T): T;
}

/** A summary, or a summary with a content and data. */
export type Output = string | [summary: string, content?: string, data?: Json];

export interface Run {
  task: string;
  run: number;
  trigger: string;
  due_ms: number;
  attempt: number;
}

export class Feature {
  settings: { [key: string]: Json };
  tool(name: string, answer: (args: any) => Output | Promise<Output>): void;
  hook(name: string, answer: (view: any) => Verdict | Change | null | Promise<Verdict | Change | null>): void;
  task(name: string, answer: (run: Run) => void | Promise<void>): void;
  service(name: string, answer: (method: string, params: Json) => Json | Promise<Json>): void;
  state<T extends Json>(name: string): State<T>;
  log(text: string, level?: string): void;
  notify(text: string, key?: string | null): void;
  alert(text: string, level?: "info" | "warning" | "error"): void;
  ask(method: string, params?: { [key: string]: Json }): any;
  run(): Promise<void>;
}

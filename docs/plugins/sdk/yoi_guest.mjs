// The kit for guests of yoi in Node: one file, no dependencies. Copy it into your package; yoi_guest.d.mts has its types.
//
//     import { Feature, allow, deny } from "./yoi_guest.mjs";
//
//     const feature = new Feature();
//     const seen = feature.state("seen");
//
//     feature.tool("acme_note", ({ text }) => `${seen.update((old) => [...(old ?? []), text]).length} noted`);
//     feature.hook("no-force", (call) => (JSON.stringify(call.arguments).includes("--force") ? deny("not with force") : allow()));
//     feature.run();

import { readSync, writeSync } from "node:fs";

const CONTRACT = 1;

/** Longer data is written in parts: a line has at most 1 MiB. */
const MAX_DATA_IN_LINE = 512 << 10;
const PART = 128 << 10;

/** An error that the model reads; `kind` is fix_input, retry, denied, unavailable, exhausted or bug. */
export class Failure extends Error {
  constructor(message, kind = "fix_input") {
    super(message);
    this.kind = kind;
  }
}

/** The answer of a gate that lets it pass. */
export const allow = () => ({ decision: "allow" });

/** The answer of a gate that refuses; the model reads the reason. */
export const deny = (reason) => ({ decision: "deny", reason });

/** The answer of a gate that lets a person decide. */
export const ask = (question) => ({ decision: "ask", question });

/** The answer of a transform that keeps the value. */
export const unchanged = () => ({ change: "unchanged" });

/** The answer of a transform with another value. */
export const replaced = (value) => ({ change: "replaced", value });

/** A value that the host keeps; the manifest declares its name. */
class State {
  constructor(feature, name) {
    this.feature = feature;
    this.name = name;
  }

  /** The newest value; null before the first update. */
  get() {
    return this.feature.ask("state.get", { name: this.name }).value;
  }

  /** Replaces the value by `change(value)`, again if it changed meanwhile, and returns it once it is durable. */
  update(change) {
    for (let tries = 0; tries < 16; tries += 1) {
      const now = this.feature.ask("state.get", { name: this.name });
      const value = change(now.value);
      try {
        this.feature.ask("state.replace", { name: this.name, revision: now.revision, value });
        return value;
      } catch (failure) {
        if (!(failure instanceof Failure) || failure.kind !== "retry") throw failure;
      }
    }
    throw new Failure(`the state ${this.name} changes all the time`, "retry");
  }
}

/** The tools, hooks, tasks and services of a feature, under their names in the manifest. */
export class Feature {
  settings = {};
  #answers = { tool: new Map(), hook: new Map(), task: new Map(), service: new Map() };
  #asked = 0;
  #read = Buffer.alloc(0);
  #part = Buffer.alloc(64 << 10);

  constructor() {
    // What else is written to standard output must not stand between the lines of the contract.
    Object.defineProperty(process, "stdout", { get: () => process.stderr });
    globalThis.console = new console.Console(process.stderr);
  }

  /** Registers a function that gets the arguments, and returns a summary, or a list of a summary, a content and data. */
  tool(name, answer) {
    this.#answers.tool.set(name, answer);
  }

  /** Registers a function that gets the view of its point and returns an answer; that of an observer is null. */
  hook(name, answer) {
    this.#answers.hook.set(name, answer);
  }

  /** Registers a function that gets what started a run of a background task; an error makes it fail. */
  task(name, answer) {
    this.#answers.task.set(name, answer);
  }

  /** Registers a function that gets a method and its parameters, and returns what the service answers. */
  service(name, answer) {
    this.#answers.service.set(name, answer);
  }

  state(name) {
    return new State(this, name);
  }

  /** Writes into the log of the host, which `YOI_LOG=debug` shows. */
  log(text, level = "info") {
    this.ask("log", { level, text });
  }

  /** Tells the model with its next step, at most once for a key. */
  notify(text, key = null) {
    this.ask("notify", { text, key });
  }

  /** Shows a text to the people who watch. */
  alert(text, level = "warning") {
    this.ask("alert", { level, text });
  }

  /** Asks the host for anything else of the contract, such as `fs.read` or `http.request`, and returns its answer. */
  ask(method, params = {}) {
    this.#asked += 1;
    this.#write({ jsonrpc: "2.0", id: this.#asked, method, params });
    const { result, error } = JSON.parse(this.#line());
    if (error) throw new Failure(error.message, error.data?.kind ?? "bug");
    return result;
  }

  /** Answers requests until the host ends this process. */
  async run() {
    for (let line = this.#line(); line !== null; line = this.#line()) {
      const { id, method, params } = JSON.parse(line);
      const answer = { jsonrpc: "2.0", id };
      try {
        answer.result = (await this.#answer(method, params ?? {})) ?? null;
      } catch (error) {
        const isExpected = error instanceof Failure;
        if (!isExpected) console.error(error);
        const message = isExpected ? error.message : `${error?.name}: ${error?.message}`;
        answer.error = { code: -32000, message, data: { kind: isExpected ? error.kind : "bug" } };
      }
      this.#write(answer);
      if (method === "shutdown") break;
    }
    process.exit(0);
  }

  async #answer(method, params) {
    switch (method) {
      case "initialize":
        this.settings = params.settings;
        return { contract: CONTRACT };
      case "tool.call":
        return this.#output(await this.#of("tool", params.tool)(params.arguments));
      case "hook.ask":
      case "hook.tell":
        return this.#of("hook", params.hook)(params.view);
      case "task.run":
        await this.#of("task", params.task)(params);
        return null;
      case "service.call":
        return this.#of("service", params.service)(params.method, params.params);
      case "shutdown":
        return null;
      default:
        throw new Failure(`${method} is not known`);
    }
  }

  #of(kind, name) {
    const answer = this.#answers[kind].get(name);
    if (!answer) throw new Failure(`there is no ${kind} ${name}`, "bug");
    return answer;
  }

  #output(said) {
    const [summary, content = "", data = null] = Array.isArray(said) ? said : [said];
    const text = JSON.stringify(data);
    if (Buffer.byteLength(text) <= MAX_DATA_IN_LINE) return { summary, content, data };
    for (let at = 0, end; at < text.length; at = end) {
      end = at + PART;
      // Not between the halves of a character.
      if (text.codePointAt(end - 1) > 0xffff) end += 1;
      this.ask("output.write", { text: text.slice(at, end), data: true });
    }
    return { summary, content };
  }

  /** The next line; null at the end. */
  #line() {
    for (;;) {
      const end = this.#read.indexOf(10);
      if (end >= 0) {
        const line = this.#read.subarray(0, end).toString();
        this.#read = this.#read.subarray(end + 1);
        return line;
      }
      const bytes = readSync(0, this.#part);
      if (bytes === 0) return null;
      this.#read = Buffer.concat([this.#read, this.#part.subarray(0, bytes)]);
    }
  }

  #write(message) {
    let left = Buffer.from(`${JSON.stringify(message)}\n`);
    while (left.length > 0) left = left.subarray(writeSync(1, left));
  }
}

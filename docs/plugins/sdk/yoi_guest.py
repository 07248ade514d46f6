"""The kit for guests of yoi in Python: one file, no dependencies. Copy it into your package.

    from yoi_guest import Feature, allow, deny

    feature = Feature()
    seen = feature.state("seen")

    @feature.tool("acme_note")
    def note(text):
        return f"{len(seen.update(lambda old: (old or []) + [text]))} noted"

    @feature.hook("no-force")
    def judge(call):
        return deny("not with force") if "--force" in str(call["arguments"]) else allow()

    feature.run()
"""

import json
import os
import sys
import traceback
from typing import Any, Callable, Optional

CONTRACT = 1

# Longer data is written in parts: a line has at most 1 MiB.
MAX_DATA_IN_LINE = 512 << 10
PART = 256 << 10


class Failure(Exception):
    """An error that the model reads; `kind` is fix_input, retry, denied, unavailable, exhausted or bug."""

    def __init__(self, message: str, kind: str = "fix_input"):
        super().__init__(message)
        self.kind = kind


def allow() -> dict:
    """The answer of a gate that lets it pass."""
    return {"decision": "allow"}


def deny(reason: str) -> dict:
    """The answer of a gate that refuses; the model reads the reason."""
    return {"decision": "deny", "reason": reason}


def ask(question: str) -> dict:
    """The answer of a gate that lets a person decide."""
    return {"decision": "ask", "question": question}


def unchanged() -> dict:
    """The answer of a transform that keeps the value."""
    return {"change": "unchanged"}


def replaced(value: Any) -> dict:
    """The answer of a transform with another value."""
    return {"change": "replaced", "value": value}


class State:
    """A value that the host keeps; the manifest declares its name."""

    def __init__(self, feature: "Feature", name: str):
        self._feature, self._name = feature, name

    def get(self) -> Any:
        """The newest value; None before the first update."""
        return self._feature.ask("state.get", name=self._name)["value"]

    def update(self, change: Callable[[Any], Any]) -> Any:
        """Replaces the value by `change(value)`, again if it changed meanwhile, and returns it once it is durable."""
        for _ in range(16):
            now = self._feature.ask("state.get", name=self._name)
            value = change(now["value"])
            try:
                self._feature.ask("state.replace", name=self._name, revision=now["revision"], value=value)
                return value
            except Failure as failure:
                if failure.kind != "retry":
                    raise
        raise Failure(f"the state {self._name} changes all the time", "retry")


class Feature:
    """The tools, hooks, tasks and services of a feature, under their names in the manifest."""

    def __init__(self) -> None:
        self.settings: dict = {}
        self._tools: dict = {}
        self._hooks: dict = {}
        self._tasks: dict = {}
        self._services: dict = {}
        self._asked = 0
        # What else is written to standard output must not stand between the lines of the contract.
        self._in = os.fdopen(os.dup(0), "rb")
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def tool(self, name: str) -> Callable:
        """Registers a function that gets the arguments by name, and returns a summary, or a summary, a content and data."""
        return lambda function: self._tools.setdefault(name, function)

    def hook(self, name: str) -> Callable:
        """Registers a function that gets the view of its point and returns an answer; that of an observer is None."""
        return lambda function: self._hooks.setdefault(name, function)

    def task(self, name: str) -> Callable:
        """Registers a function that gets what started a run of a background task; an error makes it fail."""
        return lambda function: self._tasks.setdefault(name, function)

    def service(self, name: str) -> Callable:
        """Registers a function that gets a method and its parameters, and returns what the service answers."""
        return lambda function: self._services.setdefault(name, function)

    def state(self, name: str) -> State:
        return State(self, name)

    def log(self, text: str, level: str = "info") -> None:
        """Writes into the log of the host, which `YOI_LOG=debug` shows."""
        self.ask("log", level=level, text=text)

    def notify(self, text: str, key: Optional[str] = None) -> None:
        """Tells the model with its next step, at most once for a key."""
        self.ask("notify", text=text, key=key)

    def alert(self, text: str, level: str = "warning") -> None:
        """Shows a text to the people who watch."""
        self.ask("alert", level=level, text=text)

    def note(self, text: str) -> None:
        """Adds a note to the report of the feature."""
        self.ask("note", text=text)

    def run(self) -> None:
        """Answers requests until the host ends this process."""
        for line in self._in:
            request = json.loads(line)
            answer = {"jsonrpc": "2.0", "id": request["id"]}
            try:
                answer["result"] = self._answer(request["method"], request.get("params") or {})
            except Failure as failure:
                answer["error"] = _error(str(failure), failure.kind)
            except Exception as error:
                traceback.print_exc()
                answer["error"] = _error(f"{type(error).__name__}: {error}", "bug")
            self._write(answer)
            if request["method"] == "shutdown":
                break

    def _answer(self, method: str, params: dict) -> Any:
        if method == "initialize":
            self.settings = params["settings"]
            return {"contract": CONTRACT}
        if method == "tool.call":
            said = self._tools[params["tool"]](**params["arguments"])
            return self._output(*(said if isinstance(said, tuple) else (said,)))
        if method in ("hook.ask", "hook.tell"):
            return self._hooks[params["hook"]](params["view"])
        if method == "task.run":
            self._tasks[params["task"]](params)
            return None
        if method == "service.call":
            return self._services[params["service"]](params["method"], params["params"])
        if method == "shutdown":
            return None
        raise Failure(f"{method} is not known")

    def ask(self, method: str, /, **params: Any) -> Any:
        """Asks the host for anything else of the contract, such as `fs.read` or `http.request`, and returns its answer."""
        self._asked += 1
        self._write({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        answer = json.loads(self._in.readline())
        if "error" in answer:
            error = answer["error"]
            raise Failure(error["message"], error.get("data", {}).get("kind", "bug"))
        return answer["result"]

    def _output(self, summary: str, content: str = "", data: Any = None) -> dict:
        text = json.dumps(data)
        if len(text) <= MAX_DATA_IN_LINE:
            return {"summary": summary, "content": content, "data": data}
        for at in range(0, len(text), PART):
            self.ask("output.write", text=text[at : at + PART], data=True)
        return {"summary": summary, "content": content}

    def _write(self, message: dict) -> None:
        self._out.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self._out.flush()


def _error(message: str, kind: str) -> dict:
    return {"code": -32000, "message": message, "data": {"kind": kind}}

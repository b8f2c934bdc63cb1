"""The part that plugins in JavaScript share: calling hook programs about a tool call, and about a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from remuda.hooks.events import Event
from remuda.runtimes.wiring import TIMEOUT

_ASK = """\
// Remuda's guard. Made by 'remuda guard install'; 'remuda guard remove' takes it away.
import { spawn } from "node:child_process";

const programs = %(programs)s;
const failed = "the guard could not be asked, or gave no answer";

// What a hook program says to an event, with its exit code; undefined if it does not answer.
const answered = (event, fields) =>
  new Promise((resolve) => {
    const child = spawn(programs[event], [], { stdio: ["pipe", "pipe", "ignore"] });
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      resolve(undefined);
    }, %(milliseconds)d);
    let said = "";
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (text) => (said += text));
    child.stdin.on("error", () => {});
    child.on("error", () => {
      clearTimeout(late);
      resolve(undefined);
    });
    child.on("close", (code) => {
      clearTimeout(late);
      resolve({ code, said });
    });
    child.stdin.end(JSON.stringify(fields));
  });

// Why a tool call must not run; undefined if it may. Whatever goes wrong is a reason.
const objection = async (call) => {
  const answer = await answered("PreToolUse", call);
  if (answer === undefined) return failed;
  if (answer.code === 0 && answer.said.trim() === "{}") return undefined;
  try {
    const { reason } = JSON.parse(answer.said);
    return typeof reason === "string" && reason ? reason : failed;
  } catch {
    return failed;
  }
};

// What a session is to be told at an event of its own, if anything; one event after the other. Whatever goes
// wrong is nothing.
let before = Promise.resolve();
const message = (event, fields) =>
  (before = before.then(async () => {
    try {
      const { reason, hookSpecificOutput } = JSON.parse((await answered(event, fields)).said);
      return reason ?? hookSpecificOutput?.additionalContext;
    } catch {
      return undefined;
    }
  }));

"""


def asking(programs: Mapping[Event, Path]) -> str:
    """A module's beginning, with ``objection(call)`` and ``message(event, fields)``: it needs nothing but
    Node's own modules."""
    called = {event: str(path) for event, path in programs.items()}
    return _ASK % {"programs": json.dumps(called, indent=2), "milliseconds": TIMEOUT * 1000}

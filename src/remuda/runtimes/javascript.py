"""The part that plugins in JavaScript share: asking a hook program about a tool call."""

from __future__ import annotations

import json
from pathlib import Path

from remuda.runtimes.wiring import TIMEOUT

_ASK = """\
// Remuda's guard. Made by 'remuda guard install'; 'remuda guard remove' takes it away.
import { spawn } from "node:child_process";

const program = %(program)s;
const failed = "the guard could not be asked, or gave no answer";

const reasonIn = (said) => {
  try {
    const { reason } = JSON.parse(said);
    return typeof reason === "string" && reason ? reason : failed;
  } catch {
    return failed;
  }
};

// Why a tool call must not run; undefined if it may. Whatever goes wrong is a reason.
const objection = (call) =>
  new Promise((resolve) => {
    const child = spawn(program, [], { stdio: ["pipe", "pipe", "ignore"] });
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      resolve(failed);
    }, %(milliseconds)d);
    let said = "";
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (text) => (said += text));
    child.stdin.on("error", () => {});
    child.on("error", () => resolve(failed));
    child.on("close", (code) => {
      clearTimeout(late);
      resolve(code === 0 && said.trim() === "{}" ? undefined : reasonIn(said));
    });
    child.stdin.end(JSON.stringify(call));
  });

"""


def asking(program: Path) -> str:
    """A module's beginning, with ``objection(call)``: it needs nothing but Node's own modules."""
    return _ASK % {"program": json.dumps(str(program)), "milliseconds": TIMEOUT * 1000}

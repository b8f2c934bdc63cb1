"""The extensions that Pi is started with: another model endpoint, and the permissions it has none of itself.

An extension that does not load stops Pi before it does anything, and one that throws blocks the tool call.
"""

from __future__ import annotations

import msgspec

ENDPOINT = "remuda-endpoint.js"
GUARD = "remuda-guard.js"
APPROVAL = "remuda-approval.js"
PROVIDER = "remuda"
DEFAULT_MODEL = "claude-sonnet-4-5"

READING = ("read", "grep", "find", "ls")
WRITING = ("edit", "write")
REFUSAL = "Not permitted by Remuda:"

TITLE, READY, ALLOW = "remuda-guard", "ready", "remuda:allow"
LONGEST = 16 * 1024 * 1024
"""Characters of a call beyond which nobody is asked, for the question would be lost on the way."""

_ENDPOINT = """\
export default (pi) => {
  pi.registerProvider(%(provider)s, %(config)s);
};
"""

_GUARD = """\
const freely = %(freely)s;

export default (pi) => {
  pi.on("tool_call", async ({ toolName, input }, ctx) => {
    if (freely.includes(toolName)) return;
    if (ctx.hasUI && (await ctx.ui.confirm(`Allow ${toolName}?`, JSON.stringify(input)))) return;
    return { block: true, reason: `%(refusal)s ${toolName} needs an approval that nobody gave` };
  });
};
"""

_APPROVAL = """\
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const { title, allow, ready, refusal, longest } = %(words)s;

// As Pi itself reads a path. What is absolute and has no such spaces, it reads as it stands.
const meant = (path) => {
  const plain = path.replace(/[\\u00A0\\u2000-\\u200A\\u202F\\u205F\\u3000]/g, " ").replace(/^@/, "");
  if (plain === "~" || plain.startsWith("~/")) return join(homedir(), plain.slice(1));
  return plain.startsWith("file://") ? fileURLToPath(plain) : plain;
};

const ask = async ({ toolCallId, toolName, input }, ctx) => {
  if (typeof input.path === "string") input.path = resolve(ctx.cwd, meant(input.path));
  const call = () => JSON.stringify({ id: toolCallId, tool: toolName, cwd: ctx.cwd, input });
  const shown = call();
  if (shown.length > longest) return `${refusal} the call is too long to be judged`;
  const answer = await ctx.ui.input(title, shown);
  if (answer === allow && call() === shown) return allow;
  return typeof answer === "string" && answer !== allow ? answer : `${refusal} the guard gave no answer`;
};

export default (pi) => {
  pi.on("session_start", (_event, ctx) => ctx.ui.setStatus(title, ready));
  pi.on("tool_call", async (event, ctx) => {
    let answer = `${refusal} the guard could not be asked`;
    try {
      answer = await ask(event, ctx);
    } catch {}
    if (answer !== allow) return { block: true, reason: answer };
  });
};
"""


class _Words(msgspec.Struct, frozen=True):
    """What the approving extension and our side of the connection have agreed upon."""

    title: str
    allow: str
    ready: str
    refusal: str
    longest: int


class _Cost(msgspec.Struct, frozen=True, rename="camel"):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class _Model(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    name: str
    reasoning: bool = False
    input: tuple[str, ...] = ("text", "image")
    cost: _Cost = _Cost()
    context_window: int = 200_000
    max_tokens: int = 16_384


class _Provider(msgspec.Struct, frozen=True, rename="camel"):
    """A model provider. Its dialect is the one that counts what is written to a cache, too."""

    base_url: str
    models: tuple[_Model, ...]
    api: str = "anthropic-messages"
    api_key: str = "remuda-endpoint-key"


def _javascript(value: object) -> str:
    return msgspec.json.encode(value).decode()


def endpoint(url: str, model: str) -> str:
    """An extension that adds a provider at another address, for this run only."""
    provider = _Provider(url, (_Model(model, model),))
    return _ENDPOINT % {"provider": _javascript(PROVIDER), "config": _javascript(provider)}


def guard() -> str:
    """An extension that lets tools read, and asks about all others where there is somebody to ask."""
    return _GUARD % {"freely": _javascript(READING), "refusal": REFUSAL}


def approval() -> str:
    """An extension that reports at the start of the session, and then lets no tool run to which the other end
    of the connection has not agreed."""
    return _APPROVAL % {"words": _javascript(_Words(TITLE, ALLOW, READY, REFUSAL, LONGEST))}

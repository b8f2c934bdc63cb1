"""The extensions that Pi is started with: another model endpoint, and the permissions it has none of itself.

An extension that does not load stops Pi before it does anything, and one that throws blocks the tool call.
"""

from __future__ import annotations

import msgspec

ENDPOINT = "remuda-endpoint.js"
GUARD = "remuda-guard.js"
PROVIDER = "remuda"
DEFAULT_MODEL = "claude-sonnet-4-5"

READING = ("read", "grep", "find", "ls")
WRITING = ("edit", "write")
REFUSAL = "Not permitted by Remuda:"

_ENDPOINT = """\
export default (pi) => {
  pi.registerProvider(%(provider)s, %(config)s);
};
"""

_GUARD = """\
import { lstatSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const freely = %(freely)s;
const bounded = %(below)s;

// What is not there yet lies where its nearest folder really is; a link to nowhere may lead anywhere.
const real = (path) => {
  if (lstatSync(path, { throwIfNoEntry: false })) return realpathSync(path);
  return join(real(dirname(path)), basename(path));
};

// As Pi itself reads a path.
const meant = (path) => {
  const plain = path.replace(/[\\u00A0\\u2000-\\u200A\\u202F\\u205F\\u3000]/g, " ").replace(/^@/, "");
  if (plain === "~" || plain.startsWith("~/")) return join(homedir(), plain.slice(1));
  return plain.startsWith("file://") ? fileURLToPath(plain) : plain;
};

const within = (cwd, path) => {
  try {
    const folder = real(cwd);
    const target = real(resolve(cwd, meant(path)));
    const below = target.startsWith(folder.endsWith(sep) ? folder : folder + sep);
    return below ? `./${relative(folder, target)}` : undefined;
  } catch {
    return undefined;
  }
};

export default (pi) => {
  pi.on("tool_call", async ({ toolName, input }, ctx) => {
    if (freely.includes(toolName)) return;
    if (bounded.includes(toolName)) {
      const path = within(ctx.cwd, input.path);
      if (path === undefined) return { block: true, reason: `%(refusal)s ${toolName} outside the folder` };
      input.path = path;
      return;
    }
    if (%(asks)s && ctx.hasUI && (await ctx.ui.confirm(`Allow ${toolName}?`, JSON.stringify(input)))) return;
    return { block: true, reason: `%(refusal)s ${toolName} needs an approval that nobody gave` };
  });
};
"""


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


def guard(*, below: tuple[str, ...] = (), asks: bool = False) -> str:
    """An extension that lets tools read, lets those in ``below`` write below the working folder, and refuses
    all else; it ``asks`` first where there is somebody to ask."""
    return _GUARD % {
        "freely": _javascript(READING),
        "below": _javascript(below),
        "refusal": REFUSAL,
        "asks": _javascript(asks),
    }

"""Puts one question to several agents at once and shows their answers side by side.

Usage: python examples/compare.py PROMPT AGENT…      for example: … "explain this repo" claude codex
"""

from __future__ import annotations

import asyncio
import sys

from remuda import AsyncRemuda


async def main(prompt: str, agents: list[str]) -> None:
    remuda = AsyncRemuda()
    asked = (remuda.run(prompt, agent=agent, capability="reviewer", timeout=600) for agent in agents)
    for agent, result in zip(agents, await asyncio.gather(*asked), strict=True):
        answer = result.text if result.error is None else f"{result.error.kind}: {result.error.message}"
        print(f"## {agent}\n\n{answer.strip()}\n")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2:]))

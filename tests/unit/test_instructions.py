"""The project's own instructions, as they are given to a model whose program leaves them out."""

from __future__ import annotations

from pathlib import Path

from remuda.operations.instructions import LARGEST, project_instructions

NAMES = ("CLAUDE.md", "AGENTS.md")


def test_from_the_top_of_the_repository_down_to_the_folder(tmp_path: Path) -> None:
    below = tmp_path / "repo" / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("not of this repository")
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / "AGENTS.md").write_text("all\n")
    (below / "AGENTS.md").write_text("second choice")
    (below / "CLAUDE.md").write_text("here")
    told = project_instructions(below, NAMES)
    assert told == (
        "Instructions of this project, from AGENTS.md:\n\nall\n\n"
        "Instructions of this project, from CLAUDE.md:\n\nhere"
    )
    assert project_instructions(below, ()) == ""


def test_what_is_no_file_of_the_repository_is_passed_over(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("a key")
    (repo / "CLAUDE.md").symlink_to(secret)
    assert project_instructions(repo, NAMES) == ""
    (repo / "AGENTS.md").mkdir()
    assert project_instructions(repo, NAMES) == ""
    (repo / "CLAUDE.md").unlink()
    (repo / "CLAUDE.md").write_bytes(b"x" * (LARGEST + 1))
    assert project_instructions(repo, NAMES) == ""
    (repo / "CLAUDE.md").write_bytes(b"caf\xe9 \0 \n")
    assert "caf\ufffd" in project_instructions(repo, NAMES)


def test_a_link_within_the_repository_is_one(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("rules")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert project_instructions(tmp_path, NAMES) == "Instructions of this project, from CLAUDE.md:\n\nrules"

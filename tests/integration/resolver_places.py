"""Resolver cases about where things lie: folders, links, worktrees, and which source comes first."""

from __future__ import annotations

import os

from tests.integration.resolver_site import DAY, PLACE, Case, Site, place


@place("codex", "launcher_context")
def nearest_context_wins(site: Site) -> None:
    site.context({"launcher": "claude"})
    site.context({"launcher": "codex"}, site.go(site.repo / "a"))


@place("claude", "launcher_context")
def found_from_below(site: Site) -> None:
    site.context({"launcher": "claude"})
    site.go(site.repo / "a/b/c")


@place("claude", "launcher_context")
def bad_file_sends_us_to_the_parent(site: Site) -> None:
    site.context({"launcher": "claude"})
    site.context("nonsense", site.go(site.repo / "a"))


@place("claude", "launcher_context")
def stale_file_sends_us_to_the_parent(site: Site) -> None:
    site.context({"launcher": "claude"})
    site.context({"launcher": "codex"}, site.go(site.repo / "a"), age=2 * DAY)


@place("copilot", "default")
def repository_root_is_the_limit(site: Site) -> None:
    site.context({"launcher": "claude"}, site.repo.parent)
    site.go(site.repo / "a")


@place("copilot", "default")
def nested_repository_does_not_see_the_outer_one(site: Site) -> None:
    site.context({"launcher": "claude"})
    (site.go(site.repo / "inner") / ".git").mkdir()


@place("copilot", "default")
def submodule_does_not_see_the_outer_one(site: Site) -> None:
    site.context({"launcher": "claude"})
    (site.repo / ".git/modules/sub").mkdir(parents=True)
    (site.go(site.repo / "sub") / ".git").write_text("gitdir: ../.git/modules/sub\n")


@place("claude", "launcher_context")
def outside_any_repository(site: Site) -> None:
    site.context({"launcher": "claude"}, site.root)
    site.go(site.root / "plain/folder")


@place("claude", "launcher_context")
def folder_32_is_looked_at(site: Site) -> None:
    site.context({"launcher": "claude"})
    site.go(site.repo.joinpath(*["d"] * 31))


@place("copilot", "default")
def folder_33_is_not(site: Site) -> None:
    site.context({"launcher": "claude"})
    site.go(site.repo.joinpath(*["d"] * 32))


@place("claude", "launcher_context")
def the_physical_folder_counts(site: Site) -> None:
    site.context({"launcher": "claude"})
    site.context({"launcher": "codex"}, site.root)
    (site.repo / "a").mkdir()
    (site.root / "link").symlink_to(site.repo / "a")
    site.cwd = site.root / "link"


@place("claude", "launcher_context")
def worktree_sees_the_main_checkout(site: Site) -> None:
    site.go(site.worktree() / "deep/down")
    site.context({"launcher": "claude"})


@place("codex", "launcher_context")
def worktree_prefers_its_own(site: Site) -> None:
    site.context({"launcher": "codex"}, site.worktree())
    site.context({"launcher": "claude"})


@place("claude", "launcher_context")
def worktree_with_a_stale_file(site: Site) -> None:
    site.context({"launcher": "codex"}, site.worktree(), age=2 * DAY)
    site.context({"launcher": "claude"})


@place("copilot", "default")
def worktree_does_not_see_above_the_main_checkout(site: Site) -> None:
    site.worktree()
    site.context({"launcher": "claude"}, site.repo.parent)


@place("claude", "launcher_context")
def worktree_inside_its_main_checkout(site: Site) -> None:
    site.worktree()
    site.git("worktree", "add", "-b", "inner", "trees/inner")
    site.go(site.repo / "trees/inner")
    site.context({"launcher": "claude"})
    site.context({"launcher": "codex"}, site.repo / "trees")


@place("claude", "launcher_context")
def worktree_with_relative_links(site: Site) -> None:
    tree = site.worktree()
    (tree / ".git").write_text(f"gitdir: {os.path.relpath(site.repo / '.git/worktrees/linked', tree)}\n")
    site.context({"launcher": "claude"})


@place("copilot", "default")
def worktree_of_a_bare_repository(site: Site) -> None:
    site.worktree()
    site.git("clone", "--bare", str(site.repo), str(site.root / "store/bare.git"))
    site.git("worktree", "add", str(site.root / "free"), cwd=site.root / "store/bare.git")
    site.go(site.root / "free")
    site.context({"launcher": "claude"}, site.root / "store")


@place("copilot", "default")
def worktree_link_to_nowhere(site: Site) -> None:
    (site.repo / ".git").rmdir()
    (site.repo / ".git").write_text("gitdir: /nonexistent/.git/worktrees/x\n")


@place("copilot", "default")
def git_file_with_garbage(site: Site) -> None:
    site.context({"launcher": "claude"}, site.repo.parent)
    (site.repo / ".git").rmdir()
    (site.repo / ".git").write_bytes(b"\x00\xffgarbage")


@place("copilot", "default")
def git_file_with_a_nul(site: Site) -> None:
    tree = site.worktree()
    site.context({"launcher": "claude"})
    (tree / ".git").write_bytes((tree / ".git").read_bytes().rstrip() + b"\x00\n")


@place("copilot", "default")
def claude_folder_linked_elsewhere(site: Site) -> None:
    site.context({"launcher": "claude"}, site.root / "elsewhere")
    (site.repo / ".claude").symlink_to(site.root / "elsewhere/.claude")


@place("copilot", "default")
def runtime_folder_linked_elsewhere(site: Site) -> None:
    site.context({"launcher": "claude"}, site.root / "elsewhere")
    (site.repo / ".claude").mkdir()
    (site.repo / ".claude/runtime").symlink_to("../../../elsewhere/.claude/runtime")


@place("copilot", "default")
def file_linked_elsewhere(site: Site) -> None:
    outside = site.context({"launcher": "claude"}, site.root / "elsewhere")
    (site.repo / ".claude/runtime").mkdir(parents=True)
    (site.repo / PLACE).symlink_to(outside)


@place("copilot", "default")
def file_linked_to_a_sibling_with_the_same_prefix(site: Site) -> None:
    outside = site.context({"launcher": "claude"}, site.root / "work/repo2")
    (site.repo / ".claude/runtime").mkdir(parents=True)
    (site.repo / PLACE).symlink_to(outside)


@place("copilot", "default")
def file_linked_out_by_two_hops(site: Site) -> None:
    outside = site.context({"launcher": "claude"}, site.root / "elsewhere")
    (site.repo / ".claude/runtime").mkdir(parents=True)
    (site.repo / "hop -> hop").symlink_to(outside)
    (site.repo / PLACE).symlink_to("../../hop -> hop")


@place("claude", "launcher_context")
def file_linked_inside(site: Site) -> None:
    inside = site.context({"launcher": "claude"}, site.repo / "kept here")
    (site.repo / ".claude/runtime").mkdir(parents=True)
    (site.repo / "hop -> hop").symlink_to(inside)
    (site.repo / PLACE).symlink_to("../../hop -> hop")


@place("claude", "launcher_context")
def claude_folder_linked_inside(site: Site) -> None:
    site.context({"launcher": "claude"}, site.repo / "settings")
    (site.repo / ".claude").symlink_to("settings/.claude")


@place("claude", "launcher_context")
def link_out_sends_us_to_the_parent(site: Site) -> None:
    site.context({"launcher": "claude"})
    inner = site.go(site.repo / "a")
    site.context({"launcher": "codex"}, site.root / "elsewhere")
    (inner / ".claude").symlink_to(site.root / "elsewhere/.claude")


@place("copilot", "default")
def dangling_link(site: Site) -> None:
    (site.repo / ".claude/runtime").mkdir(parents=True)
    (site.repo / PLACE).symlink_to("nothing")


@place("copilot", "default")
def circular_link(site: Site) -> None:
    (site.repo / ".claude/runtime").mkdir(parents=True)
    (site.repo / PLACE).symlink_to("launcher_context.json")


@place("copilot", "default")
def folder_in_place_of_the_file(site: Site) -> None:
    (site.repo / PLACE).mkdir(parents=True)


@place("copilot", "default")
def pipe_in_place_of_the_file(site: Site) -> None:
    (site.repo / ".claude/runtime").mkdir(parents=True)
    os.mkfifo(site.repo / PLACE)


@place("copilot", "default")
def device_in_place_of_the_file(site: Site) -> None:
    (site.repo / ".claude/runtime").mkdir(parents=True)
    (site.repo / PLACE).symlink_to("/dev/zero")


@place("copilot", "default")
def file_in_place_of_the_claude_folder(site: Site) -> None:
    (site.repo / ".claude").write_text('{"launcher":"claude"}')


@place(*(("claude", "launcher_context") if os.geteuid() == 0 else ("copilot", "default")))
def unreadable_file(site: Site) -> None:
    site.context({"launcher": "claude"}).chmod(0)


@place("claude", "launcher_context")
def odd_folder_names(site: Site) -> None:
    odd = site.go(site.repo / "-a b" / "$x*[z]" / "'q\"\\" / "line\n")
    site.context({"launcher": "claude"}, odd)
    site.go(odd / "\udcff")


@place("claude", "REMUDA_AGENT_BINARY")
def environment_before_context(site: Site) -> None:
    site.context({"launcher": "codex"})
    site.environ["REMUDA_AGENT_BINARY"] = "claude"


@place("claude", "launcher_context")
def context_before_sticky(site: Site) -> None:
    site.context({"launcher": "claude"})
    site.sticky(b"codex\n")


@place("codex", "sticky")
def sticky_before_config(site: Site) -> None:
    site.sticky(b"codex\n")
    site.config('agent = "claude"\n')


@place("codex", "config")
def config_before_sole(site: Site) -> None:
    site.config('agent = "codex"\n')
    site.install("claude")


@place("codex", "config")
def folder_in_place_of_the_sticky_file(site: Site) -> None:
    site.config('agent = "codex"\n')
    (site.home / ".config/remuda/active_agent").mkdir()


@place("codex", "config")
def pipe_in_place_of_the_sticky_file(site: Site) -> None:
    site.config('agent = "codex"\n')
    os.mkfifo(site.home / ".config/remuda/active_agent")


@place("claude", "sticky")
def sticky_file_linked_elsewhere(site: Site) -> None:
    kept = site.sticky(b"claude\n", site.root / "dotfiles")
    (site.home / ".config/remuda").mkdir(parents=True)
    (site.home / ".config/remuda/active_agent").symlink_to(kept)


@place("claude", "config")
def project_config_before_the_users(site: Site) -> None:
    site.config('agent = "codex"\n')
    site.config('agent = "claude"\n', site.repo / ".remuda")
    site.go(site.repo / "a/b")


@place("codex", "config")
def project_config_without_an_agent(site: Site) -> None:
    site.config('agent = "codex"\n')
    site.config("[run]\ntimeout = 1.0\n", site.repo / ".remuda")


@place("copilot", "default")
def project_config_with_an_invalid_agent(site: Site) -> None:
    site.config('agent = "codex"\n')
    site.config('agent = "gpt"\n', site.repo / ".remuda")


@place("copilot", "default")
def project_config_with_an_empty_agent(site: Site) -> None:
    site.config('agent = "codex"\n')
    site.config('agent = ""\n', site.repo / ".remuda")


@place("claude", "sticky")
def remuda_home(site: Site) -> None:
    site.environ |= {"REMUDA_HOME": str(site.root / "all"), "XDG_CONFIG_HOME": str(site.root / "xdg")}
    site.sticky(b"claude\n", site.root / "all/config")
    site.sticky(b"codex\n")


@place("claude", "sticky")
def remuda_home_with_a_tilde(site: Site) -> None:
    site.environ["REMUDA_HOME"] = "~/all of it"
    site.sticky(b"claude\n", site.home / "all of it/config")


@place("claude", "sticky")
def remuda_home_that_is_relative(site: Site) -> None:
    site.environ["REMUDA_HOME"] = "-own"
    site.sticky(b"claude\n", site.repo / "-own/config")


@place("claude", "sticky")
def empty_remuda_home(site: Site) -> None:
    site.environ["REMUDA_HOME"] = ""
    site.sticky(b"claude\n")


@place("claude", "sticky")
def xdg_config_home(site: Site) -> None:
    site.environ["XDG_CONFIG_HOME"] = str(site.root / "xdg")
    site.sticky(b"claude\n", site.root / "xdg/remuda")
    site.sticky(b"codex\n")


@place("claude", "sticky")
def relative_xdg_config_home(site: Site) -> None:
    site.environ["XDG_CONFIG_HOME"] = "xdg"
    site.sticky(b"codex\n", site.repo / "xdg/remuda")
    site.sticky(b"claude\n")


@place("codex", "sole")
def installed_but_not_executable(site: Site) -> None:
    site.install("claude", "codex")
    (site.bin / "claude").chmod(0o644)


@place("codex", "sole")
def folder_with_the_name_of_a_program(site: Site) -> None:
    site.install("codex")
    (site.bin / "claude").mkdir()


@place("claude", "sole")
def installed_twice(site: Site) -> None:
    site.install("claude")
    second = site.root / "second bin"
    second.mkdir()
    (second / "claude").symlink_to(site.bin / "claude")
    site.environ["PATH"] += f":{second}"


PLACES = [case for case in list(globals().values()) if isinstance(case, Case)]

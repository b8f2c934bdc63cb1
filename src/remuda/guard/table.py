"""The policy: one row for each thing that a tool call may be found to do, one column for each kind of agent.

``.`` allows, ``?`` asks, ``x`` denies. The columns are, in order: scout and reviewer, lead and coordinator,
builder, merger, supervised. The strictest of all findings decides. In texts, ``{what}`` is what was found,
``{who}`` the capability, ``{ground}`` the agent's worktree and ``{prefix}`` the prefix of its branches.
"""

from __future__ import annotations

import msgspec

from remuda.guard.model import Capability, Decision

COLUMNS: dict[Capability, int] = {
    "scout": 0,
    "reviewer": 0,
    "lead": 1,
    "coordinator": 1,
    "builder": 2,
    "merger": 3,
    "supervised": 4,
}
_DECISIONS: dict[str, Decision] = {".": "allow", "?": "ask", "x": "deny"}


class Row(msgspec.Struct, frozen=True):
    """A rule: what it says for each column, why, and what to do instead. ``fixed``: why nobody lifts it."""

    columns: str
    reason: str
    hint: str = ""
    fixed: str = ""

    def decision(self, capability: Capability) -> Decision:
        return _DECISIONS[self.columns[COLUMNS[capability]]]


class Finding(msgspec.Struct, frozen=True):
    """A row of the table that a call touches, and with what; ``origin`` is the rule of one's own behind."""

    rule: str
    what: str = ""
    origin: str = ""

    def decision(self, capability: Capability) -> Decision:
        return TABLE[self.rule].decision(capability)


_REPORT = "Say in your answer what should be changed; whoever builds will do it."
_INSIDE = "Write below {ground} instead."
_PERSON = "Leave this to a person."
_PLAIN = "Write the command out plainly, with literal names and paths."
_OWNER = "This is a rule of whoever owns the project or the machine; leave it to them."
_COMMIT = "Commit on your own branch; merging and pushing is done for you."

TABLE: dict[str, Row] = {
    # Files that are read
    "read.secret": Row(
        "xxxx?",
        "{what} holds keys or tokens",
        "Work without it, or ask a person for what you need.",
        fixed="what a model has read has left the machine",
    ),
    "read.private": Row(
        "????.", "{what} may hold keys or tokens", "Look at its example or template, if there is one."
    ),
    "read.store": Row("????.", "{what} is a place of keys and tokens"),
    "read.unknown": Row("????.", "it cannot be told which file is read", _PLAIN),
    # Files that are changed
    "write.any": Row("xx...", "a {who} changes nothing, and this changes {what}", _REPORT),
    "write.temporary": Row("xx??.", "{what} lies outside the worktree", _INSIDE),
    "write.outside": Row("xxxx.", "{what} lies outside the worktree", _INSIDE),
    "write.system": Row("xxxx?", "{what} belongs to the system", _PERSON),
    "write.root": Row("xxxx?", "{what} holds more than your worktree", _INSIDE),
    "write.device": Row(
        "xxxxx", "{what} is a device", _PERSON, fixed="a device has no pattern that makes it safe"
    ),
    "write.guard": Row(
        "xxxx?",
        "{what} belongs to the settings or hooks of an agent, which agents leave alone",
        _PERSON,
        fixed="an agent that writes its own bounds has none",
    ),
    "write.repository": Row(
        "xxxx?",
        "{what} is git's own",
        "Use git's commands instead of changing its files.",
        fixed="git runs what stands there",
    ),
    "write.automation": Row(
        "xx??.", "{what} is run later by a server or a tool", "Say why it has to change."
    ),
    "write.startup": Row("xxxx?", "{what} decides what runs when its owner logs in or works", _PERSON),
    "write.secret": Row("xxxx?", "{what} is a place of keys and tokens", _PERSON),
    "write.link": Row("xx??.", "it makes a link that leads out of the worktree, to {what}", _INSIDE),
    "write.unknown": Row("xx??.", "it cannot be told where this writes", _PLAIN),
    "remove.root": Row(
        "xxxxx",
        "{what} is a worktree, a home or the top of the file system",
        "Name the files to be removed.",
        fixed="nothing would be left to be careful with",
    ),
    "remove.system": Row(
        "xxxxx", "{what} belongs to the system", _PERSON, fixed="nothing would be left to be careful with"
    ),
    "remove.tree": Row(
        "xx..x",
        "it removes {what} with all that is below, and asks nobody",
        "Name the files, or let the person do it.",
    ),
    "remove.unknown": Row("xx??x", "it cannot be told what is removed here, with all that is below", _PLAIN),
    # Programs and code
    "execute.project": Row(
        "??...",
        "{what} runs the project's code, whatever that does",
        "Read it instead; only declared quality gates are run.",
    ),
    "execute.foreign": Row(
        "????.", "{what} is a program from outside the project", "Use the project's own programs."
    ),
    "execute.outside": Row(
        "????.", "a program is given {what}, outside the worktree, and may write there", _INSIDE
    ),
    "execute.unknown": Row(
        "????.", "nobody here knows what {what} does", "Use a common program, or the tools you have."
    ),
    "execute.assignment": Row("?????", "{what} looks like an assignment, but a shell would run it", _PLAIN),
    "execute.data": Row("?????", "a shell is given data to run, and in it {what}", _PLAIN),
    "execute.download": Row(
        "xxxxx",
        "{what} was downloaded or decoded a moment ago and is run unread",
        "Read it first.",
        fixed="nobody has read what would run",
    ),
    "evaluate.download": Row(
        "xxxxx",
        "it runs {what} code that was downloaded or decoded, unread",
        "Save it, read it, and then decide.",
        fixed="nobody has read what would run",
    ),
    "evaluate.unknown": Row("xxxx?", "it runs {what} code that cannot be told beforehand", _PLAIN),
    "evaluate.file": Row(
        "xx??.", "it runs {what} code from a file that was not looked at", "Run the file by its name."
    ),
    "evaluate.opaque": Row(
        "????.",
        "its {what} code cannot be followed",
        "Use plain commands, or put the code into a file of the project.",
    ),
    # The network
    "network.metadata": Row(
        "xxxxx", "{what} gives out the machine's own credentials", _PERSON, fixed="it gives out credentials"
    ),
    "network.leak": Row(
        "xxxxx",
        "it sends keys or the environment to {what}",
        "Nothing of that kind leaves the machine.",
        fixed="a key that has left is lost",
    ),
    "network.upload": Row(
        "xxxx?",
        "it sends files or unknown data to {what}",
        "Ask a person to send it.",
        fixed="what has left cannot be called back; a person sends it",
    ),
    "network.send": Row("xxxx.", "it sends data to {what}", "Ask a person to send it."),
    "network.get": Row(
        "??...", "it asks {what} over the network", "Work with what is here, or ask a person."
    ),
    "network.query": Row(".....", "it asks the service {what}"),
    "network.local": Row("??...", "it talks to {what}"),
    # git
    "git.fetch": Row("xx...", "it changes what the repository knows of its remotes", _REPORT),
    "git.index": Row("x?...", "it changes the index", _REPORT),
    "git.commit": Row("x?...", "it commits", _REPORT),
    "git.merge": Row("xx...", "it merges or rebases", _REPORT),
    "git.branch": Row("xx...", "it makes, moves or changes a branch", _REPORT),
    "git.switch": Row("xx?..", "it leaves your branch for another one", "Stay on your branch."),
    "git.prefix": Row(
        "xxx..", "{what} is not a branch of yours: those begin with {prefix}", "Name it {prefix}…"
    ),
    "git.rebranch": Row("xxxx.", "it moves the branch {what} from where it is", _COMMIT),
    "git.tag": Row("xx??.", "it makes a tag, which all worktrees share", _COMMIT),
    "git.retag": Row("xxxx.", "it moves or deletes a tag, which all worktrees share", _PERSON),
    "git.shared": Row("xx??.", "it changes {what}, which all worktrees share", _COMMIT),
    "git.stash": Row("xx??.", "the stash is shared by all worktrees", "Commit on your own branch instead."),
    "git.worktree": Row("xxxx.", "it makes or removes a worktree", "Stay in yours."),
    "git.clone": Row("xx??.", "it clones a repository"),
    "git.push": Row("xxx?.", "it pushes", _COMMIT),
    "git.force": Row(
        "xxxxx",
        "it pushes over what others may have",
        "Push without force, or with --force-with-lease where a person agrees.",
        fixed="what others have is not for an agent to overwrite",
    ),
    "git.remote": Row("xxxx.", "it changes something on a server, or where remotes are", _PERSON),
    "git.destroy": Row(
        "xxxxx",
        "it deletes something on a server",
        _PERSON,
        fixed="what others have is not for an agent to delete",
    ),
    "git.discard": Row(
        "xxxxx",
        "it throws work away: {what}",
        "Commit it first, or move it aside; a person may throw it away.",
    ),
    "git.rewrite": Row("xxxxx", "it rewrites history that others may have", _PERSON),
    "git.config": Row(
        "xx??.", "it changes git's settings", "Give the setting to one command with -c, if it is harmless."
    ),
    "git.global": Row("xxxx.", "it changes git's settings for all repositories", _PERSON),
    "git.execute": Row(
        "xxxx?",
        "it makes git run a program: {what}",
        "Run git without that setting.",
        fixed="the program would run unjudged",
    ),
    "git.elsewhere": Row("xxxx.", "the repository {what} is not your worktree", "Work in {ground}."),
    # The machine, and what is far away
    "system.destroys": Row("xxxx?", "what it destroys cannot be brought back: {what}", _PERSON),
    "system.adds": Row("xxxx.", "it makes or starts something outside the project: {what}", _PERSON),
    "system.privilege": Row("xxxx.", "it runs with other rights: {what}", "Do without them."),
    "system.process": Row(
        "xxxx.",
        "it signals processes that are not its own: {what}",
        "Stop only what you have started, by %job.",
    ),
    "system.service": Row("xxxx?", "it changes services: {what}", _PERSON),
    "system.schedule": Row("xxxx?", "it lets something run later: {what}", _PERSON),
    "system.mount": Row("xxxx?", "it changes what is mounted: {what}", _PERSON),
    "system.user": Row("xxxx?", "it changes users or passwords: {what}", _PERSON),
    "system.device": Row(
        "xxxxx", "it writes to a device: {what}", _PERSON, fixed="a device has no pattern that makes it safe"
    ),
    "system.package": Row(
        "xxxx.", "it installs for the whole machine: {what}", "Install into the project instead."
    ),
    "system.publish": Row("xxxx?", "it publishes: {what}", _PERSON),
    "system.container": Row("xx??.", "it changes containers: {what}", _PERSON),
    "system.cluster": Row("xxxx?", "it changes a cluster: {what}", _PERSON),
    "system.cloud": Row("xxxx?", "it changes something in a cloud: {what}", _PERSON),
    "system.database": Row("xxxx?", "it changes a database: {what}", _PERSON),
    "system.power": Row(
        "xxxxx", "it halts or restarts the machine", _PERSON, fixed="it ends everybody's work"
    ),
    "system.network": Row("xxxx?", "it changes the machine's network: {what}", _PERSON),
    "system.agent": Row(
        "xxxx?",
        "it starts another agent past the guard: {what}",
        "Leave that to whoever runs you.",
        fixed="an agent that starts unguarded ones has no bounds",
    ),
    "system.credential": Row(
        "xxxx?",
        "it shows or changes a credential: {what}",
        _PERSON,
        fixed="what a model has read has left the machine",
    ),
    # The environment
    "environment.guard": Row(
        "xxxx?",
        "{what} belongs to the guard or to an agent's own settings",
        _PERSON,
        fixed="an agent that sets its own bounds has none",
    ),
    "environment.inject": Row(
        "xxxx?",
        "{what} makes other programs run code",
        "Run the command without it.",
        fixed="the code would run unjudged",
    ),
    "environment.library": Row(
        "??...", "{what} changes which libraries are found", "Run the command without it."
    ),
    "environment.search": Row(
        "????.", "{what} changes which programs are found", "Call the program by its path."
    ),
    "environment.secret": Row(
        "?????", "{what} may be a key or a token", 'Test whether it is set: [ -n "${what}" ].'
    ),
    "environment.all": Row(
        "????.",
        "it shows the whole environment, keys and tokens included",
        "Show the variables that you need, by name.",
    ),
    # Other tools
    "tool.team": Row(
        "xxxx.",
        "{what} gives work to agents that nobody would see or guard",
        "Do it yourself, or say in your answer what another agent should do.",
    ),
    "tool.interactive": Row(
        "xxxx.",
        "{what} waits for a person or leaves the worktree, and nobody is there",
        "Say in your answer what you need to know.",
    ),
    "tool.changes": Row("xxxx.", "{what} changes something on a server", _PERSON),
    "tool.destroys": Row("xxxx?", "{what} destroys something on a server", _PERSON),
    "tool.unknown": Row(
        "?????", "nobody here knows what the tool {what} does", "Use the tools for files and commands."
    ),
    "tool.malformed": Row(
        "xxxxx",
        "{what} is called without what it needs, or with something else",
        "Call it as documented.",
        fixed="there is nothing that a rule could fit",
    ),
    # What cannot be judged
    "guard.unknown": Row("?????", "{what}", _PLAIN, fixed="what cannot be told fits no rule for sure"),
    "guard.input": Row(
        "xxxxx",
        "the tool call cannot be understood: {what}",
        "Call the tool as it is documented.",
        fixed="there is nothing that a rule could fit",
    ),
    "guard.error": Row(
        "xxxxx",
        "the guard failed on this call, and what it cannot judge is denied",
        "Say it more simply.",
        fixed="there is no finding that a rule could lift",
    ),
    "guard.policy": Row(
        "xxxxx",
        "the guard's own settings cannot be read, so that nothing is allowed: {what}",
        "A person has to correct that file.",
        fixed="the rules themselves cannot be read",
    ),
    # Rules of one's own
    "policy.deny": Row("xxxxx", "{what}", _OWNER, fixed="deny wins"),
    "policy.ask": Row("?????", "{what}", _OWNER, fixed="ask wins over allow"),
    "policy.protect": Row("xxxx?", "{what}", _OWNER, fixed="deny wins"),
    "policy.unknown": Row(
        "?????", "it cannot be told whether a rule forbids this: {what}", _PLAIN, fixed="ask wins over allow"
    ),
    "policy.allow": Row(".....", "a rule of its owner allows it: {what}"),
}

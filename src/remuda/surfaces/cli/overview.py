"""The table of verbs and the overview made from it; nothing is imported, for it is shown before click is."""

HELP = """\
Usage: remuda [OPTIONS] VERB [ARGUMENTS]…

  Run any AI coding agent, safely, from one place.

    remuda run "explain this repo"        run the active agent and wait for its answer
    remuda run --agent codex -            … another one, with the prompt from standard input
    remuda claude                         launch an agent interactively
    remuda which --explain                which agent is active, and why
    remuda doctor                         what is installed and what is wrong

Options:
  -v, --verbose  Show informational log lines on standard error.
  --version      Show the version and exit.
  -h, --help     Show this overview and exit; 'remuda VERB --help' explains a verb.

Verbs:
"""

VERBS = (
    ("run", "run:run", "Run an agent on a prompt and wait for its answer."),
    ("send", "send:send", "Send a prompt to an agent's running session, a new pane, or a fresh run."),
    ("peer", "peer:peer", "See which sessions are there, and exchange messages with them."),
    ("session", "session:session", "Start, watch and talk to agents that stay."),
    ("task", "task:task", "Hand tasks in that outlive everything, and follow them."),
    ("launch", "launch:launch", "Launch an agent interactively in this terminal."),
    ("which", "which:which", "Show which agent is active, and why."),
    ("use", "which:use", "Make an agent your default."),
    ("agents", "agents:agents", "List the agents that can be called."),
    ("runtimes", "runtimes:runtimes", "List the supported agent CLIs and what is proven about each."),
    ("usage", "usage:usage", "Add up the tokens and the cost of all agents on this machine."),
    ("doctor", "doctor:doctor", "Examine the installation and say what to do."),
    ("guard", "guard:guard", "Ask what an agent may do, and why."),
    (
        "sandbox",
        "sandbox:sandbox",
        "Show the walls that an agent can be put behind, and whether they hold here.",
    ),
    ("hook", "hook:hook", "Answer an agent CLI's hook: judge a tool call before it runs."),
    ("secrets", "secrets:secrets", "Keep the keys of agents' accounts."),
    ("trust", "trust:trust", "Say where agents may act unasked while nobody watches."),
    ("worktree", "worktree:worktree", "Look at the worktrees of isolated runs, and clear them away."),
    ("serve", "serve:serve", "Run, look at or end the process that answers hooks and HTTP."),
    ("worker", "worker:worker", "Carry tasks out, or show who does."),
    ("rehearse", "rehearse:rehearse", "Serve a scripted model, to try agents without an account."),
    ("config", "config:config", "Show and change the configuration."),
    ("completion", "completion:completion", "Print the shell completion script."),
)
"""A verb's name, where its command lives, and its line in the overview."""


AGENTS = (
    *("aider", "amplifier", "claude", "codex", "copilot", "gemini"),
    *("hermes", "openclaw", "opencode", "pi"),
)
"""The runtimes to choose from; each is a verb, too, as are those that the user has added."""

SHORTHAND = f"""\

  remuda NAME …: launch the agent NAME; everything behind the name is the agent's own.
  Built in: {", ".join(AGENTS)}. 'remuda agents' lists yours, too.
"""


def overview() -> str:
    """What ``remuda --help`` shows."""
    return HELP + "".join(f"  {name:<12}{summary}\n" for name, _, summary in VERBS) + SHORTHAND

"""The tools of all agent CLIs by name: which of them do the same, whatever they are called.

Names are compared without case, underscores and dashes: ``run_shell_command`` is ``runshellcommand``.
"""

from __future__ import annotations

from typing import Literal

Shape = Literal[
    "shell", "powershell", "python", "code", "stdin", "process", "batch",
    "read", "list", "grep", "write", "edit", "editor", "patch", "delete", "move", "folder",
    "web", "search", "schedule", "plain", "team", "interactive", "reads", "changes", "destroys",
]  # fmt: skip
"""How a tool's input is read. ``list`` and ``grep``: names or contents below a folder that may be left out.
``editor``: one tool for viewing and editing, by its ``command``. ``stdin``: text for a program that runs
already."""

_NAMES: dict[Shape, str] = {
    "shell": """bash shell localshell exec execcommand runshellcommand terminal executecommand runcommand
        runinterminal runterminalcmd runterminalcommand containerexec monitor sh zsh command""",
    "powershell": "powershell pwsh cmd",
    "python": "python executepython runpython ipython executecode codeinterpreter",
    "code": "codemode jsrepl javascript node repl",
    "stdin": "writestdin writebash sendinput",
    "process": "process",
    "batch": "batch multitooluse parallel",
    "read": """read readfile readmanyfiles readmultiplefiles readtextfile view viewimage viewfile openfile
        notebookread cat showfile image visionanalyze readmcpresource readmcpresourcetool""",
    "list": "glob ls list listdir listdirectory listfiles find findfiles filesearch directorytree",
    "grep": """grep grepsearch grepfiles searchfiles searchfilecontent codesearch rg searchtext codebasesearch
        lsp""",
    "write": "write writefile createfile savefile create newfile writetofile",
    "edit": """edit editfile multiedit notebookedit replace replaceinfile strreplace searchreplace
        inserteditintofile insert applydiff notebookeditcell""",
    "editor": "strreplaceeditor strreplacebasededittool texteditor",
    "patch": "applypatch patch",
    "delete": "deletefile removefile delete deletepath",
    "move": "movefile renamefile move rename copyfile",
    "folder": "createdirectory createfolder mkdir",
    "web": """webfetch fetch fetchurl webextract browsernavigate fetchwebpage openurl""",
    "search": "websearch googlewebsearch searchweb",
    "schedule": "croncreate crondelete cronjob cron schedulewakeup remotetrigger",
    "plain": """todowrite todoread todo writetodos updatetodo managetodolist updateplan updatetopic
        reportintent bashoutput killshell killbash listbackgroundprocesses readbackgroundoutput readbash
        stopbash listbash toolsearch skill skilllist skillslist skillview activateskill think cronlist
        sequentialthinking listmcpresources listmcpresourcestool structuredoutput sessionstatus invalid
        completetask""",
    "team": """task agent teamcreate teamdelete sendmessage taskcreate taskupdate tasklist taskget taskoutput
        taskstop invokeagent delegatetask delegate spawnagent closeagent wait readagent listagents writeagent
        sessionsspawn sessionssend sessionslist sessionshistory agentslist subagents mixtureofagents
        codebaseinvestigator message""",
    "interactive": """askuserquestion askuser askquestion question clarify requestuserinput enterplanmode
        exitplanmode planenter planexit enterworktree exitworktree elicit pushnotification""",
    "reads": "memorysearch memoryget sessionsearch fetchcopilotclidocumentation",
    "changes": "browser browserclick browsertype nodes gateway canvas skillmanage",
}
TOOLS: dict[str, Shape] = {name: shape for shape, names in _NAMES.items() for name in names.split()}

_READING = """get list read search find fetch view show describe status lookup count check whoami help
    resolve"""
_DESTROYING = "delete remove destroy drop purge revoke reset"
_CHANGING = """create update add set write put post send push merge close edit insert upsert
    move rename run execute start stop deploy publish assign comment approve cancel upload trigger submit
    invite reply enable disable apply grant patch"""


def plain(name: str) -> str:
    """A name without what only spelling adds."""
    return name.replace("_", "").replace("-", "").lower()


def shape_of(name: str) -> tuple[Shape | None, bool]:
    """A tool's shape, and whether it is not the runtime's own but a server's.

    A server's tool that is named like a known one is taken for that; others tell by their first word.
    """
    if name.startswith("mcp__"):
        return _served(name.rpartition("__")[2]), True
    if not name.startswith("mcp_") and (known := TOOLS.get(plain(name))):
        return known, False
    for mark in ("_", "-"):
        for index, letter in enumerate(name):
            if letter == mark and (known := TOOLS.get(plain(name[index + 1 :]))):
                return known, True
    return (
        (_served(name.removeprefix("mcp_").partition("_")[2]), True)
        if name.startswith("mcp_")
        else (None, False)
    )


def _served(name: str) -> Shape | None:
    """The shape of a server's tool."""
    if known := TOOLS.get(plain(name)):
        return known
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).replace("-", "_")
    parts = [part for part in words.split("_") if part]
    verb = parts[0] if parts else ""
    if verb in _DESTROYING.split():
        return "destroys"
    if verb in _READING.split() and not {"or", "and"} & set(parts):
        return "reads"
    return "changes" if verb in (*_CHANGING.split(), *_READING.split()) else None

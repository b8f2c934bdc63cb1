"""``gh`` and ``glab``: reading from the server, changing it, showing tokens."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import HERE, texts, written
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.commands.verbs import Found, find, query
from remuda.guard.model import (
    NOTHING,
    AnyEffect,
    Git,
    GitOperation,
    Network,
    Read,
    System,
    Taint,
    Unknown,
    literal,
)

FILE: frozenset[Taint] = frozenset({"file"})

GH = """\
read help version completion alias/list extension/{list,search,browse} config/{get,list} auth/status browse
    environment formatting reference actions
get status search/{code,commits,issues,prs,repos} pr/{list,view,status,diff,checks} issue/{list,view,status}
    repo/{list,view,license,gitignore,read-dir} repo/{deploy-key,autolink}/list run/{list,view,watch}
    workflow/{list,view}
    release/{list,view,verify} gist/{list,view} label/list project/{list,view,item-list,field-list}
    ruleset/{list,view,check} secret/list variable/{list,get} cache/list org/list ssh-key/list gpg-key/list
    codespace/{list,view,logs,ports} mr/{list,view,diff} attestation/{verify,trusted-root} user/events
    pipeline/{list,view,status,ci} job/list ci/{list,view,status,get,trace} snippet/{list,view} milestone/list
    incident/{list,view} iteration/list
fetch pr/checkout repo/sync mr/checkout
clone repo/clone gist/clone
download release/download run/download attestation/download ci/artifact job/artifact repo/archive
upload gist/{create,edit} release/{create,upload} snippet/create
remote pr/{create,edit,comment,review,ready,reopen,update-branch,lock,unlock,revert}
    issue/{create,edit,comment,reopen,pin,unpin,transfer,lock,unlock,develop}
    repo/{create,edit,fork,rename,set-default,unarchive} repo/deploy-key/add repo/autolink/create run/rerun
    workflow/{run,enable} label/{create,edit,clone}
    project/{create,edit,copy,item-add,item-create,item-edit,field-create,link,unlink,mark-template}
    secret/set variable/set codespace/{create,stop,edit,rebuild,ssh,cp,code,jupyter} release/edit gist/rename
    mr/{create,update,approve,note,rebase,revoke,reopen,subscribe,todo} pipeline/{run,retry,cancel}
    ci/{run,retry,cancel,lint} agent-task/create preview copilot
merge pr/merge mr/{merge,accept}
destroy run/cancel workflow/disable repo/deploy-key/delete repo/autolink/delete issue/{close,delete}
    repo/{delete,archive} release/{delete,delete-asset} gist/delete pr/close
    label/delete project/{delete,close,item-delete,field-delete,item-archive} secret/{delete,remove}
    variable/{delete,remove} run/delete cache/delete codespace/delete ssh-key/delete gpg-key/delete
    mr/{close,delete} pipeline/delete ci/delete
secret auth/{token,login,logout,refresh,setup-git,switch} ssh-key/add gpg-key/add
    token/{create,list,revoke,rotate}
api api
package extension/{install,upgrade,remove,create,exec} alias/{set,import,delete} config/{set,clear-cache} ext
"""
API_OPTIONS = """
    -X|--method: -f|--raw-field:T -F|--field:T --input:r -H|--header:T -q|--jq: -t|--template: --hostname:
    --cache: -p|--preview: -i|--include --paginate --silent --slurp --verbose
"""
HOSTS = {"gh": "github.com", "glab": "gitlab.com", "tea": "gitea.com"}


def hosting(call: Call) -> Iterator[AnyEffect]:
    """The effects of a verb on the server, and on files here."""
    found = find(GH, "-R: --repo: --hostname: -* --*", call.arguments)
    far = literal(HOSTS[call.name])
    if found.words and found.words[0].text in {"--help", "-h"}:
        return
    if found.verb == "" or found.kind == "read":
        yield from _status(call, found)
    elif found.verb == "api":
        yield from _api(call, found)
    elif found.kind == "get":
        yield query(call, HOSTS[call.name])
    elif found.kind in {"fetch", "clone", "download"}:
        yield Network(direction="get", host=far)
        yield from _local(found)
    elif found.kind == "upload":
        yield from _upload(call, found)
    elif found.kind in REMOTE:
        operation, forced = REMOTE[found.kind]
        yield Git(operation=operation, forced=forced, detail=f"{call.name} {found.verb.replace('/', ' ')}")
    elif found.kind in {"secret", "package"}:
        kind = "credential" if found.kind == "secret" else "package"
        yield System(
            kind="credential" if kind == "credential" else "package", detail=f"{call.name} {found.verb}"
        )
    else:
        yield Unknown(why=f"{call.name} {found.verb.replace('/', ' ')} is not known")


REMOTE: dict[str, tuple[GitOperation, bool]] = {
    "remote": ("remote", False),
    "merge": ("remote", False),
    "destroy": ("remote", True),
}


def _status(call: Call, found: Found) -> Iterator[AnyEffect]:
    if found.verb == "auth/status" and set(texts(found.words)) & {"-t", "--show-token"}:
        yield System(kind="credential", detail=f"{call.name} auth status --show-token")


def _local(found: Found) -> Iterator[AnyEffect]:
    """What a verb that reads from the server does here."""
    parsed = parse(
        "-D|--dir: -O|--output: -R: --repo: -p: --pattern: -n: --name: -b: -L: -q: --jq: -* --*", found.words
    )
    if found.kind == "fetch":
        yield Git(operation="fetch", detail=found.verb)
        yield Git(operation="branch", detail="switch")
    elif found.kind == "clone":
        yield Git(operation="clone", detail=found.verb)
        yield from written(parsed.operands[1] if len(parsed.operands) > 1 else HERE, "create")
    elif found.kind == "download":
        yield from written(parsed.value("output") or parsed.value("dir") or HERE, "create")


def _upload(call: Call, found: Found) -> Iterator[AnyEffect]:
    """Files that go to the server."""
    parsed = parse(
        "-d: --desc: -f: --filename: -t: --title: -n: --notes: -F|--notes-file:r --target: -R: --repo: -*"
        " --*",
        found.words,
    )
    files = parsed.operands if found.verb.startswith(("gist", "snippet")) else parsed.operands[1:]
    yield from (Read(path=file) for file in files if file.text != "-")
    carries = (FILE if files else NOTHING) | (call.input - {"input"})
    yield Network(direction="send", host=literal(HOSTS[call.name]), carries=carries)
    yield Git(operation="remote", detail=f"{call.name} {found.verb.replace('/', ' ')}")


def _api(call: Call, found: Found) -> Iterator[AnyEffect]:
    """``gh api``: gets, unless fields or a method say otherwise."""
    parsed = parse(API_OPTIONS, found.words)
    for text in parsed.strange:
        yield Unknown(why=f"{call.name} api has an option that is not known: {text}")
    method = (parsed.value("method") or literal("")).text
    fields = parsed.values("raw-field", "field")
    graphql = bool(parsed.operands) and parsed.operands[0].text == "graphql"
    sends = (
        method not in {"", "GET", "HEAD"}
        or (method == "" and bool(fields) and not graphql)
        or parsed.has("input")
    )
    if graphql:
        sends = not _only_asks(parsed)
    far = literal(HOSTS[call.name])
    if not sends:
        yield query(call, HOSTS[call.name])
        return
    yield Git(operation="remote", forced=method == "DELETE", detail=f"{call.name} api {method or 'POST'}")
    if parsed.has("input") or any("@" in text for text in texts(fields)):
        yield Network(direction="send", host=far, carries=FILE)


def _only_asks(parsed: Parsed) -> bool:
    """Whether a GraphQL document is a query."""
    queries = [
        text.partition("=")[2].lstrip()
        for text in texts(parsed.values("raw-field", "field"))
        if text.startswith("query=")
    ]
    return bool(queries) and all(
        query.startswith(("query", "{")) and "mutation" not in query for query in queries
    )


def hub(call: Call) -> Iterator[AnyEffect]:
    """``hub`` is git with more verbs."""
    yield from call.again((literal("git"), *call.arguments))


TABLE: Table = {**dict.fromkeys(HOSTS, hosting), "hub": hub}

"""Clouds: their programs have thousands of verbs, which say by their first word whether they only show."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call
from remuda.guard.commands.databases import statements
from remuda.guard.commands.destroying import says
from remuda.guard.commands.operands import names, texts, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.verbs import dry, query
from remuda.guard.model import AnyEffect, Execute, Network, Read, System, Word, literal

SHOWS = names(
    """
    list ls show describe get get-value get-iam-policy view status info version help search read query head
    explain cat du stat logs tail log log-stream find check validate whoami test-iam-permissions wait diff
    members
    ping health top events history resources regions zones balance doctor ps current ip snapshots stats synth
    report describe-all list_queues list-jobs console inspect preview
    """
)
ADDS = names(
    """
    create apply add put insert copy cp upload run start new init set import attach enable submit deploy up
    sync-up
    build dev local trigger backup publish push tag label annotate invite listen execute serve use switch
    activate
    register subscribe mkdir mb login-server update upgrade restart resume connect link open install mount
    extract
    """
)
"""Verbs that make, start or change something without taking anything away."""
DESTROYS = names(
    """
    delete remove rm rb destroy purge terminate drop reset deprovision del rmdir remove-iam-policy-binding
    wipe empty uninstall force-delete undeploy prune unregister forget revoke down destroy-all stop suspend
    disable
    detach rollback cancel deactivate archive compact recreate break-lock unlock clear roll drain mirror
    """
)
SECRETS = (
    ("auth", "print-access-token"),
    ("auth", "print-identity-token"),
    ("versions", "access"),
    ("account", "get-access-token"),
    ("secret", "show"),
    ("secret", "download"),
    ("keys", "list"),
    ("credential", "show"),
    ("keys", "create"),
    ("auth", "login"),
    ("auth", "token"),
    ("get-credentials",),
    ("login",),
    ("logout",),
    ("kubeconfig",),
)
AWS_SHOWS = tuple(
    names(
        """
        describe- list- get- head- lookup- search- batch-get- check- estimate- validate- filter- scan query
        preview- detect- test- view- ls wait help tail simulate-
        """
    )
)
AWS_DESTROYS = (
    "delete-",
    "terminate-",
    "remove-",
    "purge-",
    "deregister-",
    "rm",
    "rb",
    "cancel-",
    "revoke-",
    "reset-",
)
AWS_ADDS = tuple(
    names(
        """
        create- put- add- attach- associate- tag- run- start- enable- register- publish send- upload- copy-
        import-
        invoke restore- allocate- deploy subscribe update- modify- set- cp mb sync package wizard login
        confirm-
        """
    )
)
AWS_SECRETS = names(
    """
    get-secret-value get-session-token assume-role assume-role-with-saml assume-role-with-web-identity
    get-login-password get-login get-authorization-token generate-db-auth-token get-token create-access-key
    decrypt get-federation-token get-credentials-for-identity get-role-credentials get-password-data
    batch-get-secret-value export-credentials generate-data-key get-random-password
    """
)
AWS_LOSES = names(
    """
    create-invalidation put-bucket-lifecycle-configuration put-bucket-policy put-secret-value put-bucket-acl
    update-assume-role-policy put-role-policy attach-role-policy attach-user-policy modify-db-instance
    """
)
"""Among the verbs that add, those by which others lose access or data."""
AWS_OPTIONS = """
    --profile: --region: --output: --query: --endpoint-url: --color: --ca-bundle:r --cli-read-timeout:
    --cli-connect-timeout: --cli-binary-format: --filters: --filter: --max-items: --page-size: -* --*
"""


def aws(call: Call) -> Iterator[AnyEffect]:
    """``aws SERVICE VERB``: the verb's first part tells; ``s3`` copies files."""
    parsed = parse(AWS_OPTIONS, call.arguments)
    words = parsed.operands
    service, verb = [*texts(words), "", ""][:2]
    detail = f"aws {service} {verb}".strip()
    if service in {"", "help", "--version"}:
        return
    if service == "configure":
        if verb in {"list", "list-profiles"}:
            return
        yield System(kind="credential", detail=detail)
    elif verb in AWS_SECRETS or (verb.startswith("get-parameter") and parsed.has("with-decryption")):
        yield System(kind="credential", detail=detail)
    elif service == "s3" and verb in {"cp", "mv", "sync"}:
        yield from _s3(words[2:4], verb, detail, deletes=parsed.has("delete"))
    elif verb.startswith(AWS_SHOWS):
        yield query(call, "amazonaws.com")
        if verb == "get-object":
            yield from (effect for word in words[2:3] for effect in written(word, "truncate"))
    elif dry(list(call.arguments)):
        yield query(call, "amazonaws.com")
    else:
        adds = verb.startswith(AWS_ADDS) and verb not in AWS_LOSES
        yield System(kind="cloud", detail=detail, destroys=verb.startswith(AWS_DESTROYS), adds=adds)


def _s3(words: list[Word], verb: str, detail: str, *, deletes: bool) -> Iterator[AnyEffect]:
    source, target = [*words, literal("s3://"), literal("s3://")][:2]
    if (source.text or "").startswith("s3://"):
        yield Network(direction="get", host=literal("amazonaws.com"))
    elif source.text != "-":
        yield Read(path=source)
    if (target.text or "s3://").startswith("s3://"):
        yield Network(direction="send", host=literal("amazonaws.com"))
        lost = deletes or verb == "mv"
        yield System(kind="cloud", detail=detail, destroys=lost, adds=not lost)
    else:
        yield from written(target, "create")


def by_words(call: Call) -> Iterator[AnyEffect]:
    """Programs such as ``gcloud``: the first word that is a known verb tells."""
    words = [part for text in texts(call.arguments) if text[:1] != "-" for part in text.split(":") if part]
    detail = " ".join([call.name, *words][:5])
    if not words or words[0] in {"help", "version", "info"} or "--help" in texts(call.arguments):
        return
    if any(_holds(words, secret) for secret in SECRETS):
        yield System(kind="credential", detail=detail)
        return
    verb = _verb(call, words)
    if (verb and verb not in DESTROYS | ADDS and not says(call.name, [verb])) or dry(list(call.arguments)):
        yield query(call, call.name)
    else:
        lost = verb in DESTROYS or says(call.name, [verb])
        yield System(kind="cloud", detail=detail, destroys=lost, adds=verb in ADDS)


def _verb(call: Call, words: list[str]) -> str:
    """The verb of a call: a word that takes something away, wherever it is before the options; otherwise the
    first that is known."""
    plain = texts(call.arguments)
    leading = next((at for at, text in enumerate(plain) if text[:1] == "-"), len(plain))
    front = {part for text in plain[:leading] for part in (text, *text.split(":"))} or set(words)
    lost = next(
        (word for word in words if word in front and (word in DESTROYS or says(call.name, [word]))), ""
    )
    return lost or next(
        (
            word
            for word in words
            if word in SHOWS
            or word in DESTROYS
            or word in ADDS
            or word.startswith(("list-", "get-", "list_"))
        ),
        "",
    )


def big_query(call: Call) -> Iterator[AnyEffect]:
    """``bq``: a query may be any statement."""
    yield from by_words(call)
    for text in texts(call.arguments) if "query" in texts(call.arguments) else ():
        if " " in text and text[:1] != "-":
            yield from statements(text, call)


def of_project(call: Call) -> Iterator[AnyEffect]:
    """``cdk`` and its kin: clients of a cloud that run the project's code to learn what it wants."""
    yield from by_words(call)
    if texts(call.arguments)[:1] not in ([], ["--version"], ["--help"], ["version"], ["help"]):
        yield Execute(program=literal(call.name), argv=call.arguments, kind="project")


def _holds(words: list[str], part: tuple[str, ...]) -> bool:
    return any(tuple(words[at : at + len(part)]) == part for at in range(len(words)))

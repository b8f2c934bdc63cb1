"""Clouds: their programs have thousands of verbs, which say by their first word whether they only show."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call
from remuda.guard.commands.operands import names, texts, written
from remuda.guard.commands.options import parse
from remuda.guard.model import AnyEffect, Network, Read, System, Word, literal

SHOWS = names(
    """
    list ls show describe get get-value get-iam-policy view status info version help search read query head
    explain cat du stat logs tail log log-stream find check validate whoami account test-iam-permissions wait
    diff members ping health top events history resources topics regions zones balance doctor ps current ip
    """
)
DESTROYS = names(
    """
    delete remove rm rb destroy purge terminate drop reset deprovision del rmdir remove-iam-policy-binding
    wipe empty uninstall force-delete undeploy prune
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
AWS_SECRETS = names(
    """
    get-secret-value get-session-token assume-role assume-role-with-saml assume-role-with-web-identity
    get-login-password get-login get-authorization-token generate-db-auth-token get-token create-access-key
    decrypt get-federation-token get-credentials-for-identity get-role-credentials get-password-data
    batch-get-secret-value export-credentials generate-data-key get-random-password
    """
)
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
        yield Network(direction="get", host=literal("amazonaws.com"))
        if verb == "get-object":
            yield from (effect for word in words[2:3] for effect in written(word, "truncate"))
    else:
        yield System(kind="cloud", detail=detail, destroys=verb.startswith(AWS_DESTROYS))


def _s3(words: list[Word], verb: str, detail: str, *, deletes: bool) -> Iterator[AnyEffect]:
    source, target = [*words, literal("s3://"), literal("s3://")][:2]
    if (source.text or "").startswith("s3://"):
        yield Network(direction="get", host=literal("amazonaws.com"))
    elif source.text != "-":
        yield Read(path=source)
    if (target.text or "s3://").startswith("s3://"):
        yield Network(direction="send", host=literal("amazonaws.com"), carries=frozenset({"file"}))
        yield System(kind="cloud", detail=detail, destroys=deletes or verb == "mv")
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
    verb = next(
        (word for word in words if word in SHOWS or word in DESTROYS or word.startswith(("list-", "get-"))),
        "",
    )
    if verb and verb not in DESTROYS:
        yield Network(direction="get", host=literal(call.name))
    else:
        yield System(kind="cloud", detail=detail, destroys=bool(verb))


def _holds(words: list[str], part: tuple[str, ...]) -> bool:
    return any(tuple(words[at : at + len(part)]) == part for at in range(len(words)))

"""Words by which a program says that something will be gone, whoever wrote the program."""

from __future__ import annotations

import re

from remuda.guard.commands.operands import names

VERBS = names(
    """
    delete del destroy drop purge remove rm rmi rmdir wipe erase terminate uninstall undeploy deprovision nuke
    unregister deregister forget revoke reset prune rollback deletefile dropdb flushall flushdb truncate
    """
)
EXTRA = {
    "borg": names("compact recreate break-lock"),
    "restic": names("unlock cache"),
    "algolia": names("clear"),
    "stripe": names("roll cancel"),
    "splunk": names("clean stop"),
    "fastly": names("purge deactivate"),
    "deck": names("sync gateway"),
    "kong": names("stop quit"),
    "kafka-delete-records": names("--offset-json-file"),
    "haproxy": names("-sf -st"),
    "pd": names("deactivate"),
    "gitlab-rails": names("runner console dbconsole"),
    "gitlab-rake": names("gitlab:backup:restore"),
}
"""What some programs call it."""
_DATABASES = re.compile(
    r"(db|schema|ecto|database|migrations?|migrate)[:.](.*[:.])?(drop|reset|fresh|wipe|purge|truncate|refresh)"
    r"([:._]\w+)*|(migrate|migration|database|db)[:.]rollback|flush|sqlflush|reset_db|reset_schema"
)
_FRAMEWORKS = {
    "prisma": (("migrate", "reset"), ("db", "push", "--force-reset"), ("db", "push", "--accept-data-loss")),
    "knex": (("migrate:rollback",), ("migrate:down",)),
    "alembic": (("downgrade",),),
    "supabase": (("db", "reset"),),
    "sequelize": (("db:drop",), ("db:migrate:undo:all",)),
    "typeorm": (("schema:drop",), ("migration:revert",)),
    "flask": (("db", "downgrade"),),
    "drizzle-kit": (("drop",),),
}
_DEEPEST = 3


def says(name: str, words: list[str]) -> bool:
    """Whether a program that no table knows is told to make something go away, by one of its first words or
    by an option."""
    if not EXTRA.get(name, frozenset()).isdisjoint(words):
        return True
    verbs = [word for word in words if word[:1] not in {"-", "/", "."}][:_DEEPEST]
    flags = [word.lstrip("-").partition("=")[0] for word in words if word.startswith("--")]
    return any(_verb(word) for word in verbs) or any(_verb(flag) for flag in flags)


def _verb(word: str) -> bool:
    first, *rest = re.split(r"[:._-]", word.lower())
    return first in VERBS or bool(rest and rest[-1] in VERBS) or word.lower() in VERBS


def empties(name: str, words: list[str]) -> bool:
    """Whether a task of a framework empties or drops the database that the project uses."""
    plain = [word for word in words if word[:1] != "-"]
    if any(set(task) <= set(words) for task in _FRAMEWORKS.get(name, ())):
        return True
    return any(_DATABASES.fullmatch(word) for word in plain[:2])

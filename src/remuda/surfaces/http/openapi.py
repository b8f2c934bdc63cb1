"""Describes all operations as OpenAPI 3.1, made from their types."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

import msgspec

from remuda import __version__
from remuda.operations.registry import OPERATIONS, Operation
from remuda.surfaces.http.errors import STATUSES, ErrorDocument

Json = dict[str, object]
_PLACE = "#/components/schemas/{name}"


@cache
def document() -> bytes:
    """The description, which is the same as long as this process lives."""
    types: list[type[msgspec.Struct]] = [ErrorDocument]
    for operation in OPERATIONS.values():
        types += [operation.body, *operation.answers]
    ordered = [*dict.fromkeys(types)]
    found, components = msgspec.json.schema_components(ordered, schema_hook=_schema, ref_template=_PLACE)
    for component in components.values():
        if "description" in component:
            component["description"] = inspect.cleandoc(component["description"])
    schemas = dict(zip(ordered, found, strict=True))
    paths = {
        f"/v1/{operation.name}": {"post": _described(operation, schemas)} for operation in OPERATIONS.values()
    }
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Remuda",
                "version": __version__,
                "description": "The operations of Remuda, at the socket of its resident process.",
            },
            "paths": paths,
            "components": {"schemas": components},
        }
    )


def _described(operation: Operation, schemas: dict[type[msgspec.Struct], Json]) -> Json:
    """One operation."""
    error, body = schemas[ErrorDocument], schemas[operation.body]
    answers = [schemas[each] for each in operation.answers]
    answer = answers[0] if len(answers) == 1 else {"anyOf": answers}
    lines = " The answer is a line of JSON for each." if operation.stream else ""
    kind = "application/x-ndjson" if operation.stream else "application/json"
    failures = {
        str(status): {"description": meaning, "content": {"application/json": {"schema": error}}}
        for status, meaning in STATUSES.items()
    }
    return {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": (inspect.getdoc(operation.request) or "") + lines,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {"description": operation.summary, "content": {kind: {"schema": answer}}},
            **failures,
        },
    }


def _schema(kind: type) -> Json:
    if issubclass(kind, Path):
        return {"type": "string", "format": "path"}
    return {}

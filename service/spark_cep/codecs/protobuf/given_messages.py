"""Schemas of records in Protobuf that are files of the settings: no registry is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spark_cep.codecs.protobuf.descriptors import MessageFiles, compiled_file
from spark_cep.codecs.protobuf.reader import ProtobufFormat
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.config.topics import Input
from spark_cep.errors import SchemaError


def ask_given(form: ProtobufFormat, inputs: Mapping[str, Input]) -> None:
    """Make the schemas known that the settings name by the GUIDs of their versions."""
    files: dict[SchemaId, Path] = {}
    written: dict[SchemaId, MessageFiles] = {}
    for name, source in inputs.items():
        for guid, file in source.writer_schemas.items():
            made = compiled_file(file)
            if written.setdefault(guid, made) != made:
                raise SchemaError(
                    f"inputs.{name}.writer_schemas: the schema version {guid} is {file}, and that"
                    f" of another input is {files[guid]}, which differs"
                )
            files.setdefault(guid, file)
    form.ask(_Given(written), written)
    for schema_id, why in form.unreadable.items():
        raise SchemaError(f"{files[schema_id]} cannot be used: {why}")
    for schema_id, messages in form.writers.items():
        if all(each.type < 0 for each in messages):
            known = ", ".join(each.name for each in form.types)
            raise SchemaError(f"{files[schema_id]}: has no message that is read as {known}")


class _Given:
    """Schemas of files, as those of a registry."""

    def __init__(self, files: Mapping[SchemaId, MessageFiles]) -> None:
        self._files = files

    def get_messages(self, schema: SchemaId) -> MessageFiles:
        """See :class:`~spark_cep.codecs.registry.registry.Registry`."""
        return self._files[schema]

"""Hadoop's local file system without a process for each file.

Without its native library Hadoop starts ``chmod`` for every file that it creates
(``RawLocalFileSystem.setPermission``): four times in each batch, and four times more for each state
partition. Java can set permissions itself.
"""

from __future__ import annotations

from typing import Any, Final

from spark_cep.pipeline.spark.compiled_java import class_loader

_CLASS: Final = "spark_cep.LocalFiles"


def use_local_files(java: Any, umask: str | None) -> None:
    """Use the file system for all local files of a JVM, whose classes ``java`` gives by name, with
    a umask as Hadoop writes it."""
    conf = java.org.apache.hadoop.conf.Configuration()
    conf.setClassLoader(class_loader(java, "LocalFiles"))
    conf.set("fs.file.impl", _CLASS)
    if umask is not None:
        conf.set("fs.permissions.umask-mode", umask)
    # Hadoop keeps one for each scheme and user, the first that it is asked for; another thread may
    # ask in between.
    systems, root = java.org.apache.hadoop.fs.FileSystem, java.java.net.URI.create("file:///")
    while systems.get(root, conf).getClass().getName() != _CLASS:
        systems.closeAll()

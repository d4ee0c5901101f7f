"""Files of a checkpoint on a local disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_cep.pipeline.spark.private_api import hadoop_conf, jvm

pytestmark = pytest.mark.spark


def test_files_have_permissions_and_checksums(spark: SparkSession, tmp_path: Path) -> None:
    """The session's own file system serves them: with its umask, and damage is noticed."""
    java = jvm(spark)
    path = java.org.apache.hadoop.fs.Path(str(tmp_path / "folder" / "file"))
    system: Any = path.getFileSystem(hadoop_conf(spark))
    assert system.getClass().getName() == "spark_cep.LocalFiles"
    permission = java.org.apache.hadoop.fs.permission.FsPermission("666")
    out = system.create(path, permission, True, 4096, 1, 1 << 20, None)
    out.write(bytearray(b"text"))
    out.close()
    made = tmp_path / "folder" / "file"
    assert made.read_bytes() == b"text"
    assert made.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "folder" / ".file.crc").stat().st_mode & 0o777 == 0o600
    made.write_bytes(b"tixt")
    with pytest.raises(Py4JJavaError, match="Checksum error"):
        system.open(path).read()

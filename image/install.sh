#!/usr/bin/env bash
# Makes /opt/spark-cep from the sources: `install.sh SOURCES`. Python packages are the
# pinned ones, checked by their hashes; pip is configured as usual (PIP_INDEX_URL, pip.conf).
#
#   venv         interpreter and packages, without pip
#   classes      an archive of the classes that Spark starts with
#   kernel       the matcher, compiled for every processor of this architecture
#   entrypoint, livez.py
set -euo pipefail

readonly SOURCES=${1:?usage: install.sh SOURCES}
readonly TARGET=/opt/spark-cep
readonly LOCK=$SOURCES/requirements-runtime.lock
readonly PYTHON=$TARGET/venv/bin/python
readonly PIP=("$PYTHON" -m pip --disable-pip-version-check --no-cache-dir --quiet)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

make_venv() {
  python3 -m venv "$TARGET/venv"
  # pyspark has no wheel: it and the project are built with the pinned setuptools.
  awk '/^[a-z]/ { keep = /^setuptools==/ } keep' "$LOCK" > "$scratch/setuptools.lock"
  "${PIP[@]}" install --require-hashes -r "$scratch/setuptools.lock"
  "${PIP[@]}" install --require-hashes --no-deps --no-build-isolation --use-pep517 -r "$LOCK"
}

install_service() {
  # Building writes beside the sources, which may be read-only.
  mkdir "$scratch/sources"
  cp -r "$SOURCES"/{pyproject.toml,README.md,LICENSE,service,schemas} "$scratch/sources"
  "${PIP[@]}" install --no-deps --no-build-isolation "$scratch/sources"
}

compile_kernel() {
  (cd / && "$PYTHON" -m spark_cep.cli.main prepare --code-only)
}

# After what else changes jars, or removes some: the archive fits these.
archive_classes() {
  (cd / && HOME=$scratch "$PYTHON" -m spark_cep.pipeline.spark.class_archive --into "$TARGET/classes")
}

# What Spark ships for people at a terminal, and what was needed to install.
remove_the_rest() {
  local packages
  packages=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "${PIP[@]}" uninstall --yes setuptools pip
  rm -rf "$packages"/pyspark/{examples,data} "$TARGET"/venv/share
  rm -rf "$packages"/{pip,setuptools}* "$TARGET"/venv/bin/{pip*,Activate.ps1,activate*}
}

make_venv
install_service
install -D -m 0755 "$SOURCES/image/entrypoint.sh" "$TARGET/entrypoint"
install -D -m 0644 "$SOURCES/image/livez.py" "$TARGET/livez.py"
compile_kernel
archive_classes
remove_the_rest
# Nobody but root may write what is run; the kernel's files are code, too.
chown -R root:root "$TARGET"
chmod -R u=rwX,go=rX "$TARGET"

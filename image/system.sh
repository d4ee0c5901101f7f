#!/usr/bin/env bash
# Installs Debian's packages: `system.sh runtime` what the service needs, with the user it runs as;
# `system.sh build` what installing it needs on top.
set -euo pipefail

readonly RUNTIME=(ca-certificates openjdk-17-jre-headless python3 tini)
readonly BUILD=(python3-venv)
readonly USER_ID=10001

export DEBIAN_FRONTEND=noninteractive

install_packages() {
  apt-get update --quiet=2
  # Security updates since the base was made.
  apt-get upgrade --yes --quiet=2
  apt-get install --yes --quiet=2 --no-install-recommends "$@"
  apt-get clean
  rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/cache/ldconfig/aux-cache
}

# Hadoop asks for the name of the user. The folders are where settings and a checkpoint are mounted:
# with a read-only root nobody can make them later.
make_user() {
  groupadd --gid "$USER_ID" spark-cep
  useradd --uid "$USER_ID" --gid "$USER_ID" --no-create-home --home-dir /nonexistent \
    --shell /usr/sbin/nologin spark-cep
  mkdir -p /etc/spark-cep /var/lib/spark-cep
  chown "$USER_ID:$USER_ID" /var/lib/spark-cep
}

case "${1:-}" in
  runtime)
    install_packages "${RUNTIME[@]}"
    make_user
    ;;
  build) install_packages "${BUILD[@]}" ;;
  *)
    echo "usage: system.sh runtime|build, found: ${1:-nothing}" >&2
    exit 2
    ;;
esac

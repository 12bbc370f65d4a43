#!/usr/bin/env bash
# Installs Debian's PostgreSQL server for the tests, without a cluster of its own. Does nothing where one is installed.
set -euo pipefail

if command -v pg_ctl >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/pg_ctl' >/dev/null; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "PostgreSQL is missing; install it with the package manager of this machine" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends postgresql-common >/dev/null
sed -i 's/^#\? *create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
apt-get install -y -qq --no-install-recommends postgresql >/dev/null

#!/usr/bin/env bash
# What continuous integration needs beyond Python: PostgreSQL's server binaries, which the tests of
# the ledger start themselves, a browser for the tests of the dashboard, strace for the order of
# fsync and answer, faketime for clocks that are wrong, ip for networks that are cut, nginx, which
# stands in front of the service, and the readers of the deployment files: promtool and systemd-analyze.
set -euo pipefail

missing=()
ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 \
    || command -v pg_ctl >/dev/null \
    || missing+=(postgresql)
command -v chromium >/dev/null || missing+=(chromium)
command -v strace >/dev/null || missing+=(strace)
command -v promtool >/dev/null || missing+=(prometheus)
command -v systemd-analyze >/dev/null || missing+=(systemd)
command -v faketime >/dev/null || missing+=(faketime)
command -v ip >/dev/null || missing+=(iproute2)
[ -x /usr/sbin/nginx ] || command -v nginx >/dev/null || missing+=(nginx)
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then as_root="sudo"; fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# no cluster of its own: the tests make theirs
$as_root mkdir -p /etc/postgresql-common
echo "create_main_cluster = false" \
    | $as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
$as_root apt-get install -y -qq --no-install-recommends "${missing[@]}"

#!/usr/bin/env bash
# Installs the successor of pi, at the version of scripts/pi_successor, with node 22 into a cache of the project's own, and prints
# the folder for PAGEIN_CLIENTS with which the journeys of pi then run. Does nothing where it is installed.
#
#   PAGEIN_CLIENTS=$(scripts/install_pi_successor.sh) pytest tests/journeys/test_real_pi.py tests/journeys/test_real_pi_paging.py
#
# The cache: $PAGEIN_PI_SUCCESSOR, or pagein/pi-successor in the user's cache folder.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${PAGEIN_PI_SUCCESSOR:-${XDG_CACHE_HOME:-$HOME/.cache}/pagein/pi-successor}
bin=$cache/node_modules/.bin
stamp=$cache/.installed
wanted=$(cat "$0" "$here/pi_successor/package.json" "$here/pi_successor/package-lock.json" | cksum)

if [ -e "$stamp" ] && [ "$(head -n 1 "$stamp")" = "$wanted" ]; then
  echo "$cache"
  exit 0
fi
node22=$("$here/install_node22.sh")
PATH=$node22:$PATH
mkdir -p "$cache/home"
rm -rf "$cache/node_modules" "$stamp"
cp "$here/pi_successor/package.json" "$here/pi_successor/package-lock.json" "$cache/"
(cd "$cache" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
ln -sf "$node22/node" "$bin/node"
version=$(HOME=$cache/home PI_CODING_AGENT_DIR=$cache/home/pi PI_OFFLINE=1 PATH=$bin:$PATH "$bin/pi" --version 2>&1 | tail -n 1)
printf '%s\npi %s\n' "$wanted" "$version" >"$stamp"
echo "$cache"

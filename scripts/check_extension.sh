#!/usr/bin/env bash
# Checks the types of pi's extension against pi's own, and its style. Needs scripts/install_clients.sh to have run.
#
#   scripts/check_extension.sh            the tools come into a cache: $PAGEIN_CLIENTS-tools, or pagein/clients-tools in the
#                                         user's cache folder
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
clients=${PAGEIN_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/pagein/clients}
tools=$clients-tools
bin=$tools/node_modules/.bin
wanted=$(cat "$here/extension/package.json" "$here/extension/package-lock.json" | cksum)

if [ ! -d "$clients/node_modules/@mariozechner/pi-coding-agent" ]; then
  echo "pi is not installed: make clients" >&2
  exit 1
fi
if [ ! -e "$tools/.installed" ] || [ "$(cat "$tools/.installed")" != "$wanted" ]; then
  mkdir -p "$tools"
  cp "$here/extension/package.json" "$here/extension/package-lock.json" "$tools/"
  (cd "$tools" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  echo "$wanted" >"$tools/.installed"
fi

# a copy beside pi's modules, so that nothing is written into the checkout
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp "$here"/../extensions/pi/*.ts "$here"/../extensions/pi/*.json "$copy/"
ln -s "$clients/node_modules" "$copy/node_modules"
PATH=$clients/node_modules/.bin:$PATH
(cd "$copy" && "$bin/tsc" -p . && "$bin/biome" check --error-on-warnings ./*.ts)

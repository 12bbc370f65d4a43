#!/usr/bin/env bash
# Installs the official MCP inspector, at the version of scripts/inspector, and prints the folder that holds its command and
# the node that runs it. Does nothing where it is installed.
#
#   scripts/install_inspector.sh            the cache: $PAGEIN_INSPECTOR, or pagein/inspector in the user's cache folder
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${PAGEIN_INSPECTOR:-${XDG_CACHE_HOME:-$HOME/.cache}/pagein/inspector}
bin=$cache/node_modules/.bin
wanted=$(cat "$here/inspector/package.json" "$here/inspector/package-lock.json" | cksum)

if [ ! -e "$cache/.installed" ] || [ "$(cat "$cache/.installed")" != "$wanted" ]; then
  node=$("$here/install_node22.sh")
  mkdir -p "$cache"
  rm -rf "$cache/node_modules" "$cache/.installed"
  cp "$here/inspector/package.json" "$here/inspector/package-lock.json" "$cache/"
  (cd "$cache" && PATH=$node:$PATH npm install --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  ln -sf "$node/node" "$bin/node"
  "$bin/node" "$bin/mcp-inspector" --cli --version >/dev/null || { echo "the inspector does not start" >&2; exit 1; }
  echo "$wanted" >"$cache/.installed"
fi
echo "$bin"

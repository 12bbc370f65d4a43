#!/usr/bin/env bash
# Fetches axe-core, which a test runs on the gateway's page to find what keeps people out, and prints its file. Does nothing
# where it is there.
#
#   scripts/install_axe.sh            the cache: $PAGEIN_AXE, or pagein/axe in the user's cache folder
set -euo pipefail

version=4.14.1
sum=e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
cache=${PAGEIN_AXE:-${XDG_CACHE_HOME:-$HOME/.cache}/pagein/axe}
file=$cache/axe-$version.min.js

if [ ! -e "$file" ]; then
  command -v npm >/dev/null || { echo "npm is missing, and with it axe-core" >&2; exit 1; }
  mkdir -p "$cache"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && npm pack --silent "axe-core@$version" >/dev/null)
  echo "$sum  $work/axe-core-$version.tgz" | sha256sum --check --quiet
  tar -xzf "$work/axe-core-$version.tgz" -C "$work" package/axe.min.js
  mv "$work/package/axe.min.js" "$file"
fi
echo "$file"

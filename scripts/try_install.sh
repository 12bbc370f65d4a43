#!/usr/bin/env bash
# Builds the sdist and from it the wheel, installs that into a fresh environment as a user would, and makes one call of an
# agent through `pagein run` there, against the simulated provider. Prints the seconds of each step.
#
#   scripts/try_install.sh           with pip, and with uv where there is one
#
# Needs python3 with venv, and a package index for the dependencies.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
began=$SECONDS
provider=
trap 'if [ -n "$provider" ]; then kill "$provider" 2>/dev/null || true; fi; rm -rf "$work"' EXIT

say() { echo "$((SECONDS - began)) s: $*"; }

python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet --disable-pip-version-check build 2>"$work/pip.log" || { cat "$work/pip.log" >&2; exit 1; }
"$work/build/bin/python" -m build --outdir "$work/dist" "$here" >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
say "built $(cd "$work/dist" && echo *)"

# an agent of three lines, by the name of a real one
mkdir "$work/bin"
cat >"$work/bin/claude" <<'AGENT'
#!/bin/sh
exec python3 -c 'import json, os, urllib.request as u; print(json.load(u.urlopen(u.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "SCRIPT:[[{\"text\": \"it works\"}]]"}]}).encode(), {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"})))["content"][0]["text"])'
AGENT
chmod +x "$work/bin/claude"

try() { # NAME COMMAND-OF-PAGEIN: a home of its own, and a call
  local home=$work/home-$1 pagein=$2 address said
  mkdir -p "$home/work"
  "$pagein" --version >/dev/null
  HOME=$home "$pagein" provider --json --port 0 >"$home/provider.json" &
  provider=$!
  for _ in $(seq 100); do [ -s "$home/provider.json" ] && break || sleep 0.1; done
  address=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' "$home/provider.json")
  said=$(cd "$home/work" && env -u PYTHONPATH HOME="$home" XDG_DATA_HOME="$home/data" XDG_STATE_HOME="$home/state" PAGEIN_PORT=0 \
    PATH="$work/bin:$PATH" ANTHROPIC_BASE_URL="$address" "$pagein" run claude)
  kill "$provider"
  wait "$provider" 2>/dev/null || true
  provider=
  test "$said" = "it works" || { echo "$1: the agent said: $said" >&2; exit 1; }
  say "$1: an agent called through pagein run"
}

python3 -m venv "$work/pip"
"$work/pip/bin/pip" install --quiet --disable-pip-version-check "$work"/dist/*.whl 2>"$work/pip.log" || { cat "$work/pip.log" >&2; exit 1; }
say "pip: installed"
try pip "$work/pip/bin/pagein"

if command -v uv >/dev/null; then
  HOME=$work/uv UV_TOOL_DIR=$work/uv/tools UV_TOOL_BIN_DIR=$work/uv/bin uv tool install --quiet "$work"/dist/*.whl
  say "uv: installed by uv tool install"
  try uv "$work/uv/bin/pagein"
else
  echo "uv is not here; not tried"
fi

#!/usr/bin/env bash
# Builds the sdist and from it the wheel, and lives through the first minutes of a newcomer with Python alone: installs the
# wheel into a fresh environment, makes the bill of a recorded session, and starts an agent by `pagein run` against the
# simulated provider. Prints the commands and seconds up to the bill and up to the agent's first call. The agent is Claude
# Code where scripts/install_clients.sh has installed it, else one of three lines. Where there is uv, installs with it, too.
#
#   scripts/try_install.sh
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

start_provider() { # HOME PAGEIN: sets `provider` and `address`
  local home=$1 pagein=$2
  mkdir -p "$home/work"
  HOME=$home "$pagein" provider --json --port 0 >"$home/provider.json" &
  provider=$!
  for _ in $(seq 100); do [ -s "$home/provider.json" ] && break || sleep 0.1; done
  address=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' "$home/provider.json")
}

end_provider() {
  kill "$provider"
  wait "$provider" 2>/dev/null || true
  provider=
}

alone() { # HOME PATH-IN-FRONT COMMAND...: a command in a home of its own
  local home=$1 front=$2
  shift 2
  (cd "$home/work" && env -u PYTHONPATH HOME="$home" XDG_DATA_HOME="$home/data" XDG_STATE_HOME="$home/state" PAGEIN_PORT=0 \
    PATH="$front:$PATH" ANTHROPIC_BASE_URL="$address" "$@")
}

try() { # NAME COMMAND-OF-PAGEIN: a home of its own, and a call
  local home=$work/home-$1 pagein=$2 said
  "$pagein" --version >/dev/null
  start_provider "$home" "$pagein"
  said=$(alone "$home" "$work/bin" "$pagein" run claude)
  end_provider
  test "$said" = "it works" || { echo "$1: the agent said: $said" >&2; exit 1; }
  say "$1: an agent called through pagein run"
}

# the first minutes: each command is one that the README names
commands=0
spent=0
typed() { # TOLD COMMAND...: counts a command that a newcomer types, and its seconds
  local told=$1 from=$SECONDS
  shift
  "$@" || return
  commands=$((commands + 1))
  spent=$((spent + SECONDS - from))
  printf '  $ %s\n' "$told"
}

home=$work/home-first
mkdir -p "$home/work"
tar -xzf "$work"/dist/*.tar.gz -C "$home/work" --strip-components=1 # for the recorded session in it
cd "$home/work"
typed "python3 -m venv .venv" python3 -m venv .venv
typed ".venv/bin/pip install $(basename "$work"/dist/*.whl)" .venv/bin/pip install --quiet --disable-pip-version-check "$work"/dist/*.whl 2>"$work/pip.log" || { cat "$work/pip.log" >&2; exit 1; }
bill() { alone "$home" /nowhere .venv/bin/pagein replay examples/demo-session.jsonl.gz --quiet >"$work/bill.txt"; }
address=
typed ".venv/bin/pagein replay examples/demo-session.jsonl.gz" bill
grep -q '^This session cost \$' "$work/bill.txt" || { cat "$work/bill.txt" >&2; exit 1; }
echo "first bill: $commands commands, $spent s"

start_provider "$home" "$home/work/.venv/bin/pagein"
clients=${PAGEIN_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/pagein/clients}/node_modules/.bin
if [ -x "$clients/claude" ]; then
  agent="Claude Code $(HOME=$home "$clients/claude" --version | cut -d ' ' -f 1)"
  front=$clients
else
  agent="an agent of three lines, because Claude Code is not installed here"
  front=$work/bin
fi
prompt='SCRIPT:[[{"text": "it works"}]]'
call() {
  alone "$home" "$front" env ANTHROPIC_API_KEY=k CLAUDE_CONFIG_DIR="$home/claude" CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
    .venv/bin/pagein run claude -p "$prompt" --model claude-sonnet-4-5 </dev/null >"$work/said.txt" 2>"$work/told.txt"
}
typed ".venv/bin/pagein run claude" call || { cat "$work/told.txt" >&2; exit 1; }
end_provider
grep -q "it works" "$work/said.txt" || { echo "the agent said: $(cat "$work/said.txt")" >&2; exit 1; }
echo "first call of $agent: $commands commands, $spent s"

if command -v uv >/dev/null; then
  HOME=$work/uv UV_TOOL_DIR=$work/uv/tools UV_TOOL_BIN_DIR=$work/uv/bin uv tool install --quiet "$work"/dist/*.whl
  say "uv: installed by uv tool install"
  try uv "$work/uv/bin/pagein"
else
  echo "uv is not here; not tried"
fi

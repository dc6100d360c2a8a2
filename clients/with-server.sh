#!/usr/bin/env bash
# Starts a server of its own, runs the client suites against it (see run.sh) and stops it, also when they fail.
#
#   clients/with-server.sh [BINARY [SUITE ...]]      target/release/osmia, all suites
#
# The server has three partitions, a clock that tests may move, a fresh data folder, free ports on loopback, a debug exporter and time to answer on a
# slow machine; the Java suite may kill and restart it. OSMIA_CLIENTS_PARTITIONS sets another number of partitions.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Starts the server that the folder $1 describes and waits until it is ready.
start() {
  local run=$1
  # shellcheck source=/dev/null
  . "$run/settings"
  OSMIA_EXPORTERS_DEBUG_TYPE=json-lines OSMIA_EXPORTERS_DEBUG_PATH="$run/records.jsonl" \
    OSMIA_REQUEST_TIMEOUT=600s OSMIA_SEARCH_WAIT=60s \
    nohup "$binary" start --data "$run/data" --partitions "$partitions" --clock-control \
    --grpc-port "$grpc_port" --http-port "$http_port" --management-port "$management_port" </dev/null >>"$run/server.log" 2>&1 &
  local pid=$!
  disown "$pid" # or bash reports its end
  echo "$pid" >"$run/pid"
  local end=$((SECONDS + 600))
  while [ "$SECONDS" -lt "$end" ]; do
    if curl -fsS -o /dev/null "http://127.0.0.1:$management_port/actuator/health/readiness" 2>/dev/null; then
      return 0
    fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  echo "The server did not become ready; the end of its log:" >&2
  tail -20 "$run/server.log" >&2
  return 1
}

# Kills the server of the folder $1 without a warning and waits until it is gone.
crash() {
  local pid
  pid=$(cat "$1/pid" 2>/dev/null) || return 0
  kill -9 "$pid" 2>/dev/null || return 0
  while kill -0 "$pid" 2>/dev/null; do sleep 0.01; done
}

# The suites come back here through OSMIA_RESTART_COMMAND.
if [ "${1:-}" = --restart ]; then
  crash "$2"
  start "$2"
  exit
fi

binary=$(realpath -m "${1:-$here/../target/release/osmia}")
[ $# -eq 0 ] || shift
[ -x "$binary" ] || { echo "There is no server at $binary: build it first, or name another one." >&2; exit 2; }

run=$(mktemp -d)
trap 'crash "$run"; rm -rf "$run"' EXIT
read -r grpc_port http_port management_port < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(s.getsockname()[1] for s in sockets))')
printf '%s=%q\n' binary "$binary" grpc_port "$grpc_port" http_port "$http_port" management_port "$management_port" \
  partitions "${OSMIA_CLIENTS_PARTITIONS:-3}" >"$run/settings"

start "$run"
export OSMIA_GRPC_ADDRESS=127.0.0.1:$grpc_port
export OSMIA_HTTP_ADDRESS=127.0.0.1:$http_port
export OSMIA_MANAGEMENT_ADDRESS=127.0.0.1:$management_port
export OSMIA_RECORDS=$run/records.jsonl
OSMIA_RESTART_COMMAND=$(printf 'bash %q --restart %q' "$here/with-server.sh" "$run")
export OSMIA_RESTART_COMMAND
unset OSMIA_NO_STREAM
status=0
"$here/run.sh" "$@" || status=$?
mkdir -p "$here/logs"
cp "$run/server.log" "$here/logs/server.log"
exit $status

#!/usr/bin/env bash
# Runs the end-to-end suites of the official clients against a running server.
#
#   clients/run.sh [java|java-rest|java-rest-8.8|node|python|go|process-test ...]        all of them without a name
#
# Environment:
#   OSMIA_GRPC_ADDRESS      the server's gRPC address, for example 127.0.0.1:26500 (required)
#   OSMIA_HTTP_ADDRESS      its address for REST, for the suites that use it
#   OSMIA_MANAGEMENT_ADDRESS  its management port, for process-test: that suite needs --clock-control, and purges the server
#   OSMIA_RECORDS           the file of the server's debug exporter; without it, tests that need incident keys are skipped
#   OSMIA_RESTART_COMMAND   kills the server, starts it again on its data and returns when it is ready; without it, the
#                           restart scenario is skipped
#   OSMIA_NO_STREAM=1       the server has neither job streams nor long polls
#   OSMIA_CLIENTS_LOGS      folder for the full output of each suite (clients/logs)
#
# What a suite needs is installed first by its own package manager, at the versions pinned beside it. What suites say over REST
# goes through a checker, which knows the schemas of the API (node/checker); what it finds wrong counts as failed.
# Prints one line per suite, "java: N passed, M failed, K skipped"; the exit code is 0 when nothing failed.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${OSMIA_GRPC_ADDRESS:?OSMIA_GRPC_ADDRESS is not set: name the gRPC address of the server, for example 127.0.0.1:26500.}"
if [ -n "${OSMIA_RECORDS:-}" ]; then
  # The suites run in their own folders.
  OSMIA_RECORDS=$(realpath -m "$OSMIA_RECORDS")
  export OSMIA_RECORDS
fi
logs=${OSMIA_CLIENTS_LOGS:-$here/logs}
mkdir -p "$logs"
logs=$(cd "$logs" && pwd)

# Each suite prints everything to its log; its function answers "PASSED FAILED SKIPPED" on standard output.

java_suite() {
  java_tests java
}

# The same tests with the client's own default, REST. Needs OSMIA_HTTP_ADDRESS.
java-rest_suite() {
  OSMIA_REST_ADDRESS=${OSMIA_HTTP_ADDRESS:?} java_tests java-rest
}

# The same over REST with a client of 8.8, without what that cannot say. What does not go over REST is left to the others.
java-rest-8.8_suite() {
  OSMIA_REST_ADDRESS=${OSMIA_HTTP_ADDRESS:?} build_folder=target-8.8 java_tests java-rest-8.8 \
    -Dcamunda.version=8.8.12 '-Dleft.out=**/*Since89Test.java' '-Dtest=!StreamTest,!RestartTest'
}

# The official library for tests of processes, in its remote mode. It purges the server after each test; what other suites left
# must be gone before the first.
process-test_suite() {
  : "${OSMIA_HTTP_ADDRESS:?}" "${OSMIA_MANAGEMENT_ADDRESS:?}"
  purge || return 1
  maven_tests process-test process-test
}

purge() {
  python3 - "http://$OSMIA_MANAGEMENT_ADDRESS/actuator/cluster/purge" "http://$OSMIA_HTTP_ADDRESS/v2/topology" <<'PYTHON'
import json, sys, time, urllib.request

purge = urllib.request.urlopen(urllib.request.Request(sys.argv[1], method="POST"))
change = str(json.load(purge)["changeId"])
for _ in range(600):
    if json.load(urllib.request.urlopen(sys.argv[2])).get("lastCompletedChangeId") == change:
        sys.exit(0)
    time.sleep(0.1)
sys.exit("The purge did not end.")
PYTHON
}

java_tests() {
  maven_tests java "$@"
}

# In a folder, to a log, with further arguments.
maven_tests() {
  cd "$here/$1" || return 1
  local folder=${build_folder:-target}
  rm -rf "$folder/surefire-reports"
  mvn -B -ntp test "-Dbuild.folder=$folder" "${@:3}" >"$logs/$2.log" 2>&1
  python3 - "$folder/surefire-reports" <<'PYTHON'
import glob, sys, xml.etree.ElementTree as xml
total = failed = skipped = 0
for file in glob.glob(sys.argv[1] + "/TEST-*.xml"):
    suite = xml.parse(file).getroot()
    total += int(suite.get("tests"))
    failed += int(suite.get("failures")) + int(suite.get("errors"))
    skipped += int(suite.get("skipped"))
print(total - failed - skipped, failed, skipped)
PYTHON
}

node_suite() {
  cd "$here/node" || return 1
  if ! { install_node && npm test; } >"$logs/node.log" 2>&1 && ! grep -q '^# tests ' "$logs/node.log"; then
    return 1
  fi
  awk '/^# pass /{p=$3} /^# fail /{f+=$3} /^# cancelled /{f+=$3} /^# skipped /{s=$3} END{print p+0, f+0, s+0}' "$logs/node.log"
}

python_suite() {
  cd "$here/python" || return 1
  {
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt &&
      PYTHONDONTWRITEBYTECODE=1 .venv/bin/python -m pytest --tb=short
  } >"$logs/python.log" 2>&1
  tail -1 "$logs/python.log" | awk '{
    for (i = 2; i <= NF; i++) {
      if ($i ~ /^passed/) p = $(i - 1)
      if ($i ~ /^failed/ || $i ~ /^errors?/) f += $(i - 1)
      if ($i ~ /^skipped/) s = $(i - 1)
    }
    print p + 0, f + 0, s + 0
  }'
}

go_suite() {
  cd "$here/go" || return 1
  go test -count=1 -parallel 8 -timeout 1200s -v ./... >"$logs/go.log" 2>&1
  awk '/^ *--- PASS/{p++} /^ *--- FAIL/{f++} /^ *--- SKIP/{s++} /^panic:/{f++} END{print p+0, f+0, s+0}' "$logs/go.log"
}

# The checker uses it too, so it is installed once.
install_node() {
  [ -n "${node_is_installed:-}" ] || npm ci
}

goes_over_rest() {
  case $1 in
    java | java-rest | java-rest-8.8 | node | python | process-test) [ -n "${OSMIA_HTTP_ADDRESS:-}" ] ;;
    *) false ;;
  esac
}

# From here on the suites find the checker where they looked for the server.
start_checker() {
  (cd "$here/node" && npm ci) >"$logs/checker.log" 2>&1 || return 1
  node_is_installed=1
  exec {checker}< <(exec node "$here/node/checker/main.js" "$OSMIA_HTTP_ADDRESS" 2>>"$logs/checker.log")
  checker_process=$!
  trap 'kill "$checker_process" 2>/dev/null || true' EXIT
  read -r OSMIA_HTTP_ADDRESS <&"$checker"
}

# What the checker found of the suite $1 since it was asked last, at the end of its log; answers "CHECKED WRONG".
findings() {
  local found checked wrong
  found=$(curl -fsS "http://$OSMIA_HTTP_ADDRESS/-/findings") || { echo 0 1; return; }
  checked=$(head -n 1 <<<"$found")
  wrong=$(($(wc -l <<<"$found") - 1))
  # A suite of which nothing was seen went past the checker.
  [ "$checked" -gt 0 ] || wrong=1
  { echo "--- requests and answers checked, and what is wrong with them:"; echo "$found"; } >>"$logs/$1.log"
  echo "$checked" "$wrong"
}

suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(java java-rest java-rest-8.8 node python go process-test)
for suite in "${suites[@]}"; do
  if goes_over_rest "$suite"; then
    start_checker || { echo "The checker of REST did not start: see $logs/checker.log" >&2; exit 1; }
    break
  fi
done
status=0
for suite in "${suites[@]}"; do
  case $suite in
    java | java-rest | java-rest-8.8 | node | python | go | process-test) ;;
    *)
      echo "There is no suite \"$suite\": choose among java, java-rest, java-rest-8.8, node, python, go and process-test." >&2
      exit 2
      ;;
  esac
  start=$SECONDS
  read -r passed failed skipped < <("${suite}_suite")
  # A suite that ran no test at all could not be built or could not start.
  [ "${passed:-0}" -gt 0 ] || failed=$((${failed:-0} > 0 ? failed : 1))
  checked=
  if goes_over_rest "$suite"; then
    read -r count wrong < <(findings "$suite")
    failed=$((failed + wrong))
    checked="; $count requests checked"
  fi
  echo "$suite: ${passed:-0} passed, $failed failed, ${skipped:-0} skipped ($((SECONDS - start)) s$checked)"
  if [ "$failed" -gt 0 ]; then
    status=1
    echo "  see $logs/$suite.log" >&2
  fi
done
exit $status

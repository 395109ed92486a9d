#!/usr/bin/env bash
# Sees to it that Podman's service answers on its Docker-compatible socket: installs Debian's Podman where it is missing,
# starts `podman system service` by hand where none runs, and brings the base image over from Docker.
#
#   .ci/podman.sh start [IMAGE]    start it unless one answers already; default image gumshoe-python:latest
#   .ci/podman.sh stop             stop the service that `start` started, and no other
set -euo pipefail

STATE="${GUMSHOE_CI_STATE:-/tmp/gumshoe-ci}"
PID_FILE="$STATE/podman.pid"
LOG_FILE="$STATE/podman.log"
SOCKET=/run/podman/podman.sock

answers() { curl -fsS --max-time 10 --unix-socket "$SOCKET" http://localhost/_ping >/dev/null 2>&1; }

start() {
  local image="${1:-gumshoe-python:latest}"
  if ! command -v podman >/dev/null || ! command -v runc >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends podman runc curl >/dev/null
  fi
  mkdir -p "$STATE" "$(dirname "$SOCKET")"
  if ! podman image exists "$image"; then
    docker save "$image" | podman load --quiet >/dev/null
  fi
  if answers; then
    echo "podman: a service answers already"
    return
  fi
  # crun refuses machines whose cgroups are a mixture of both versions; runc takes them.
  # From a folder that stays: what it starts does not start in one that has been removed.
  cd /
  setsid nohup podman --runtime runc system service --time 0 "unix://$SOCKET" >>"$LOG_FILE" 2>&1 </dev/null &
  echo $! >"$PID_FILE"
  for _ in $(seq 150); do
    answers && echo "podman: service started, pid $(cat "$PID_FILE")" && return 0
    sleep 0.2
  done
  echo "podman: the service did not come up; the end of $LOG_FILE:" >&2
  tail -n 20 "$LOG_FILE" >&2
  exit 1
}

stop() {
  [ -s "$PID_FILE" ] || return 0
  kill "$(cat "$PID_FILE")" 2>/dev/null || true
  rm -f "$PID_FILE"
}

case "${1:-start}" in
  start) start "${@:2}" ;;
  stop) stop ;;
  *)
    echo "usage: $0 [start [IMAGE]|stop]" >&2
    exit 2
    ;;
esac

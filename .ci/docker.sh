#!/usr/bin/env bash
# Sees to it that a Docker daemon answers: installs Debian's Docker Engine where it is missing and starts `dockerd`
# by hand where none runs. Containers get no network from us, so the daemon sets up neither a bridge nor firewall rules.
#
#   .ci/docker.sh start    start it unless one answers already; the pid of a daemon started here goes to $PID_FILE
#   .ci/docker.sh stop     stop the daemon that `start` started, and no other
set -euo pipefail

STATE="${GUMSHOE_CI_STATE:-/tmp/gumshoe-ci}"
PID_FILE="$STATE/dockerd.pid"
LOG_FILE="$STATE/dockerd.log"
SOCKET=/var/run/docker.sock

answers() { curl -fsS --max-time 10 --unix-socket "$SOCKET" http://localhost/_ping >/dev/null 2>&1; }

install_engine() {
  command -v dockerd >/dev/null && command -v curl >/dev/null && return
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io curl ca-certificates >/dev/null
}

launch() { # extra daemon flags...
  rm -f "$PID_FILE"
  # From a folder that stays: what a daemon starts may not start in one that has been removed.
  cd /
  setsid nohup dockerd --host "unix://$SOCKET" --pidfile "$PID_FILE" --iptables=false --ip6tables=false --bridge=none \
    --log-level warn "$@" >>"$LOG_FILE" 2>&1 </dev/null &
  local launched=$!
  for _ in $(seq 150); do
    answers && return 0
    kill -0 "$launched" 2>/dev/null || return 1
    sleep 0.2
  done
  kill "$launched" 2>/dev/null || true
  return 1
}

start() {
  if answers; then
    echo "docker: a daemon answers already"
    return
  fi
  install_engine
  if answers; then # where a service manager runs, the package starts its own
    echo "docker: the service that came with the package answers"
    return
  fi
  mkdir -p "$STATE"
  # overlayfs over an overlayfs is refused by many kernels; plain copies always work.
  launch || launch --storage-driver vfs || {
    echo "docker: the daemon did not come up; the end of $LOG_FILE:" >&2
    tail -n 20 "$LOG_FILE" >&2
    exit 1
  }
  echo "docker: daemon started, pid $(cat "$PID_FILE")"
}

stop() {
  [ -s "$PID_FILE" ] || return 0
  local pid
  pid="$(cat "$PID_FILE")"
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
  rm -f "$PID_FILE"
}

case "${1:-start}" in
  start) start ;;
  stop) stop ;;
  *)
    echo "usage: $0 [start|stop]" >&2
    exit 2
    ;;
esac

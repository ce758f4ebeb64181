#!/usr/bin/env bash
# Fuzzes each fuzz target of both modules for FUZZTIME (10s), or those whose name matches $1. What a target finds is written to
# its testdata/fuzz: commit it with the fix, and it is tried in every run of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
only=${1:-.} failed=()
while IFS=: read -r file name; do
  [[ $name =~ $only ]] || continue
  dir=$(dirname "$file") module=.
  [[ $dir == ./sdk/* ]] && module=./sdk dir=./${dir#./sdk/}
  echo "== $name in $module/${dir#./}"
  (cd "$module" && CGO_ENABLED=0 go test -vet=off -pgo=off -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 20x "$dir") || failed+=("$name in $dir")
done < <(grep -rno --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sed 's/:[0-9]*:func /:/' | sort)
if ((${#failed[@]})); then
  printf 'found something: %s\n' "${failed[@]}" >&2
  exit 1
fi

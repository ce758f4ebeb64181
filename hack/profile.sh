#!/usr/bin/env bash
# Writes the processor profile that the compiler optimizes the binary for (docs/decisions/0009-profile.md): of a manager and an
# API server while twenty clusters come up, one of them grows to 200 workers and shrinks again, and all are deleted.
#
# usage: hack/profile.sh BINARY PROFILE
set -euo pipefail
binary=$1 profile=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
go run ./test/bench fleet --slipway "$binary" --clusters 20 --idle 0 --profiles "$folder" --out "$folder/fleet.json"
go tool pprof -proto -output="$folder/merged" "$folder"/cpu-*.pprof
mv "$folder/merged" "$profile"

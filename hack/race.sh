#!/usr/bin/env bash
# Unit tests of both modules that need no Docker with the race detector, which needs a C compiler. Everything is compiled once more for it.
#
# usage: hack/race.sh [PACKAGE...]
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=1
test=(-race -vet=off -pgo=off -timeout 60m)
packages=("$@")
if [ ${#packages[@]} = 0 ]; then
	mapfile -t packages < <(go list ./... | grep -v -e /test/e2e -e /internal/local$ -e /local/container$)
	(cd sdk && go test "${test[@]}" ./...)
fi
go test "${test[@]}" "${packages[@]}"

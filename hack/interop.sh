#!/usr/bin/env bash
# Write a release, then run the tests of test/interop: the reference's clusterctl and controllers with it. The module is one of its
# own, so that nothing else depends on the reference. The program is compiled as for unit tests, so that nothing is compiled twice.
#
# usage: hack/interop.sh [FLAG OF go test...]
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf dist/interop dist/interop.bin
export CGO_ENABLED=0 SLIPWAY_BIN=$PWD/dist/interop.bin/slipway
make --no-print-directory release VERSION=v0.1.0 DIST=dist/interop BIN="$SLIPWAY_BIN" PGO=off TRIM=
cd test/interop
exec go test -vet=off -timeout 20m -count 1 "$@" ./...

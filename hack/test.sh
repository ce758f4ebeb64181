#!/usr/bin/env bash
# Every test of both modules. The last line is the runner's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/lint.sh
export SLIPWAY_BIN=$PWD/bin/slipway
(cd sdk && go test ./...)
# End-to-end tests last and alone: they use the whole machine.
go tool -modfile hack/tools/go.mod gotestsum --format pkgname --format-hide-empty-pkg -- -timeout 20m $(go list ./... | grep -v /test/e2e)
go tool -modfile hack/tools/go.mod gotestsum --format testname -- -timeout 40m -count 1 ./test/e2e/...

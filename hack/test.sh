#!/usr/bin/env bash
# Lint, then every test of both modules. The last line is the runner's summary.
#
# usage: hack/test.sh [--no-docker]    without those that need Docker, and without a built binary
set -euo pipefail
cd "$(dirname "$0")/.."
hack/lint.sh
# lint.sh has vetted everything, and with more checks than go test would; it has compiled everything without a profile, too.
test=(-vet=off -pgo=off)
# A change of what was read from a cache ends the test (internal/manager, TestMutationDetector).
export KUBE_CACHE_MUTATION_DETECTOR=true
(cd sdk && go test "${test[@]}" ./...)
if [ "${1:-}" = --no-docker ]; then
	packages=$(go list ./... | grep -v -e /test/ -e /internal/local$ -e /local/container; go list ./test/testkit/... ./test/simulation ./test/behaviour)
	exec go test "${test[@]}" -timeout 30m $packages
fi
export SLIPWAY_BIN=$PWD/bin/slipway
failed=0 # one run shows all that fails, whatever failed first
# End-to-end tests last: they use the whole machine. Of the tests in a browser only two run; `make test-browser` runs all.
packages=$(go list ./... | grep -v -e /test/e2e -e '/test/browser$')
go tool -modfile hack/tools/go.mod gotestsum --format pkgname --format-hide-empty-pkg -- "${test[@]}" -timeout 30m $packages || failed=1
unset KUBE_CACHE_MUTATION_DETECTOR
SLIPWAY_BROWSER=1 go tool -modfile hack/tools/go.mod gotestsum --format testname -- "${test[@]}" -timeout 10m -count 1 -run '^(TestPages|TestFleetIsLive)$' ./test/browser || failed=1
# The reference's clusterctl with a release of this build; its controllers and webhooks take long to compile, and are left to `make interop`.
hack/interop.sh -skip 'TestReferenceControllers|TestReferenceWebhooks' || failed=1
# Hosts over SSH beside the end-to-end tests, because both mostly wait. The virtual IP address is left to `make test-ssh`.
mkdir -p dist
SLIPWAY_TEST_SSH=1 go tool -modfile hack/tools/go.mod gotestsum --format testname -- "${test[@]}" -timeout 40m -count 1 -run '^(TestHost|TestFaults|TestHosted)$' ./test/ssh >dist/test-ssh.log 2>&1 &
ssh=$!
trap 'kill "$ssh" 2>/dev/null || true' EXIT
go tool -modfile hack/tools/go.mod gotestsum --format testname -- "${test[@]}" -timeout 40m -count 1 ./test/e2e/... || failed=1
wait "$ssh" || failed=1
cat dist/test-ssh.log
exit "$failed"

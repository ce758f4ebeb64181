#!/usr/bin/env bash
# Formatting, vet and staticcheck over both modules.
set -euo pipefail
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'error: not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
	exit 1
fi
# Without the profile that the binary is built with: vet would compile all of Kubernetes once more, with it and without.
go vet -pgo=off ./...
# The v1beta1 surface is deprecated by design and has to be served all the same: SA1019 is not looked at.
go tool -modfile hack/tools/go.mod staticcheck -checks inherit,-SA1019 ./...
(cd sdk && go vet ./...)

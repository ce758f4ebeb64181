#!/usr/bin/env bash
# Formatting, vet and staticcheck over both modules.
set -euo pipefail
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'error: not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
	exit 1
fi
go vet ./...
go tool -modfile hack/tools/go.mod staticcheck ./...
(cd sdk && go vet ./...)

#!/usr/bin/env bash
# Record docs/demo.svg again: a real run of the binary against Docker, drawn by svg-term. It needs the node image, python3 and
# npm, and nothing else of Slipway in the home folder that it makes for the run.
#
#   hack/record.sh bin/slipway docs/demo.svg
set -euo pipefail
slipway=$(realpath "$1")
out=$(realpath "$2")
renderer=svg-term-cli@2.1.1

work=$(mktemp -d)
finish() {
	HOME="$work/home" "$slipway" down --delete >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap finish EXIT
mkdir -p "$work/home" "$work/bin"
ln -s "$slipway" "$work/bin/slipway"

HOME="$work/home" PATH="$work/bin:$PATH" TERM=xterm-256color python3 "$(dirname "$0")/record.py" "$work/demo.cast" 120 26 <<'COMMANDS'
slipway up -d
slipway create cluster demo --workers 2
slipway get kubeconfig demo > ~/demo.kubeconfig
slipway kubectl --kubeconfig ~/demo.kubeconfig get nodes
slipway kubectl --kubeconfig ~/demo.kubeconfig -n kube-system rollout status deployment coredns
slipway describe cluster demo
COMMANDS
[ -z "${CAST:-}" ] || cp "$work/demo.cast" "$CAST"
npx --yes "$renderer" --in "$work/demo.cast" --out "$out" --window

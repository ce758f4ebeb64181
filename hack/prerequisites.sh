#!/usr/bin/env bash
# Installs what building and running Slipway needs and this machine lacks, and starts Docker.
# Debian and Ubuntu are installed on; elsewhere it says what is missing.
#
# usage: hack/prerequisites.sh [--browser]    only Chromium, which the tests of `slipway ui` need
set -euo pipefail

go_version=1.26.8 # the toolchain line of go.mod

say() { printf '==> %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
		die "this step needs root: run it as root or install sudo: $*"
	fi
}

install_packages() {
	local missing=()
	for pair in dockerd:docker.io mmdebstrap:mmdebstrap git:git make:make gcc:gcc ip:iproute2 iptables:iptables python3:python3; do
		PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
	done
	[ "${#missing[@]}" = 0 ] && return
	command -v apt-get >/dev/null || die "please install: ${missing[*]} (only Debian and Ubuntu are installed on automatically)"
	say "installing ${missing[*]}"
	as_root apt-get update -qq
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Ubuntu has Chromium as a snap alone, which does not start everywhere: only Debian's package is installed.
install_browser() {
	for name in chromium chromium-browser google-chrome; do
		command -v "$name" >/dev/null && return
	done
	grep -qs '^ID=debian$' /etc/os-release || die "please install Chromium (only Debian is installed on automatically)"
	say "installing chromium"
	as_root apt-get update -qq
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-liberation >/dev/null
}

# A go command of 1.21 or later fetches the toolchain that go.mod names by itself. An older one can still fetch it,
# as the module that it is.
install_go() {
	if command -v go >/dev/null; then
		local minor
		minor=$(go env GOVERSION | sed -nE 's/^go1\.([0-9]+).*/\1/p')
		[ "${minor:-0}" -ge 21 ] && return
	else
		command -v apt-get >/dev/null || die "please install Go 1.21 or later"
		say "installing Go"
		as_root apt-get update -qq
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends golang-go ca-certificates >/dev/null
		minor=$(go env GOVERSION | sed -nE 's/^go1\.([0-9]+).*/\1/p')
		[ "${minor:-0}" -ge 21 ] && return
	fi
	say "fetching the Go $go_version toolchain"
	local module="golang.org/toolchain@v0.0.1-go$go_version.$(go env GOOS)-$(go env GOARCH)" dir
	(cd / && go mod download "$module") || die "please install Go 1.21 or later: the toolchain could not be fetched"
	dir=$(go env GOMODCACHE)/$module
	as_root chmod -R a+x "$dir/bin" "$dir/pkg/tool"
	as_root ln -sf "$dir/bin/go" /usr/local/bin/go
}

# A daemon that was killed leaves its process ID behind, which then belongs to nobody or to something else; the next one
# takes it for a running daemon and refuses to start.
forget_dead() {
	local file=$1 program=$2 pid
	pid=$(as_root cat "$file" 2>/dev/null) || return 0
	grep -aqs "$program" "/proc/$pid/cmdline" || as_root rm -f "$file"
}

start_docker() {
	docker info >/dev/null 2>&1 && return
	if as_root test -S /var/run/docker.sock && as_root docker info >/dev/null 2>&1; then
		die "Docker runs but $(id -un) may not use it: add the user to group docker and log in again"
	fi
	say "starting Docker"
	if [ -d /run/systemd/system ]; then
		as_root systemctl start docker
	else
		forget_dead /var/run/docker.pid dockerd
		forget_dead /var/run/docker/containerd/containerd.pid containerd
		as_root sh -c 'setsid nohup dockerd >/var/log/dockerd.log 2>&1 </dev/null &'
	fi
	for _ in $(seq 60); do
		docker info >/dev/null 2>&1 && return
		sleep 1
	done
	die "Docker does not start; its log is /var/log/dockerd.log or: journalctl -u docker"
}

if [ "${1:-}" = --browser ]; then
	install_browser
	exit
fi
install_packages
install_go
start_docker

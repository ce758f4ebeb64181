manifest=/etc/kubernetes/manifests/etcd.yaml
umask 077
mkdir -p "$state" /run/slipway
exec 9>"$running"
flock -n 9 || exit 0
[ -e "$state/result" ] && exit 0
exec >>"$state/log" 2>&1

result() { echo "$*" >"$state/result.new" && mv "$state/result.new" "$state/result"; }
fail() { echo "failed: $*"; result "failed $*"; exit 1; }
# until_true SECONDS COMMAND...
until_true() {
	local left=$1; shift
	while ! "$@"; do [ "$left" -gt 0 ] || return 1; left=$((left - 1)); sleep 1; done
}
stopped() { ! pgrep -x etcd >/dev/null; }
forced() { pgrep -f -- '^etcd .*--force-new-cluster' >/dev/null; }
unforced() { pgrep -x etcd >/dev/null && ! forced; }
healthy() {
	timeout 5 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1; printf "GET /health HTTP/1.0\r\n\r\n" >&3; cat <&3' - "$port" 2>/dev/null | grep -q '"health":"true"'
}
# What kubelet reads is complete at any time: it ignores names that begin with a dot.
place() { cp "$1" "${manifest%/*}/.etcd.yaml" && mv "${manifest%/*}/.etcd.yaml" "$manifest"; }
# What fails leaves etcd to be started as before, so that another try can be made.
give_up() { place "$state/etcd.yaml"; fail "$*"; }

if [ ! -e "$state/etcd.yaml" ]; then
	[ -e "$manifest" ] || fail "there is no $manifest on this node"
	grep -v -- '- --force-new-cluster' "$manifest" >"$state/etcd.yaml.new"
	mv "$state/etcd.yaml.new" "$state/etcd.yaml"
fi
data=$(sed -n 's,^ *- --data-dir=\(/.*\)$,\1,p' "$state/etcd.yaml")
port=$(sed -n 's,^ *- --listen-metrics-urls=http://127.0.0.1:\([0-9]*\).*,\1,p' "$state/etcd.yaml")
port=${port:-2381}

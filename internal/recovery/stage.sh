set -e
umask 077
manifest=/etc/kubernetes/manifests/etcd.yaml
[ -e "$state/staged" ] && exit 0
mkdir -p /run/slipway
exec 9>"$running"
flock -n 9 || { echo "it is under way already"; exit 3; }
field() { sed -n "s,^ *- --$1=\(.*\)\$,\1,p" "$manifest" 2>/dev/null | head -n 1; }
data=$(field data-dir) name=$(field name) peer=$(field initial-advertise-peer-urls)
if [ -z "$data" ] || [ -z "$name" ] || [ -z "$peer" ]; then echo "there is no $manifest on this node as kubeadm writes it"; exit 3; fi
mkdir -p "$data"
rm -rf "$data"/restored-*
if ! "$state/slipway" etcd-data --snapshot "$state/snapshot.db" --data-dir "$data/restored-$id.new" --name "$name" --peer-url "$peer" --token "slipway-$id"; then
	rm -rf "$data/restored-$id.new"
	exit 3
fi
mv "$data/restored-$id.new" "$data/restored-$id"
sync
rm -f "$state/snapshot.db" "$state/slipway"
touch "$state/staged"

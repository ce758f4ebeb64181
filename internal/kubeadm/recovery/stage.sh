set -e
umask 077
manifest=/etc/kubernetes/manifests/etcd.yaml
[ -e "$state/staged" ] && exit 0
mkdir -p /run/slipway
exec 9>"$running"
flock -n 9 || { echo "it is under way already"; exit 3; }
# What is needed for this alone does not stay, neither of this order nor of an earlier one that was interrupted.
tidy() { rm -f "${state%-*}"-*/snapshot.db* "${state%-*}"-*/slipway*; }
field() { sed -n "s,^ *- --$1=\(.*\)\$,\1,p" "$manifest" 2>/dev/null | head -n 1; }
data=$(field data-dir) name=$(field name) peer=$(field initial-advertise-peer-urls)
if [ -z "$data" ] || [ -z "$name" ] || [ -z "$peer" ]; then tidy; echo "there is no $manifest on this node as kubeadm writes it"; exit 3; fi
mkdir -p "$data"
rm -rf "$data"/restored-*
if ! "$state/slipway" etcd-data --snapshot "$state/snapshot.db" --data-dir "$data/restored-$id.new" --name "$name" --peer-url "$peer" --token "slipway-$id"; then
	rm -rf "$data/restored-$id.new"
	tidy
	exit 3
fi
mv "$data/restored-$id.new" "$data/restored-$id"
sync
tidy
touch "$state/staged"

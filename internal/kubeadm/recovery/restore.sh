[ -n "$data" ] || fail "the command of etcd in $manifest is not as kubeadm writes it"
new=$data/restored-$id/member old=$data/member-before-$id
systemctl start kubelet

# The data from before is put aside first: with it there, and the new not, the exchange was made.
[ -d "$new/wal" ] || [ -e "$old" ] || fail "no snapshot was staged on this node"
if [ -d "$new" ]; then
	rm -f "$manifest"
	until_true 120 stopped || give_up "etcd does not stop"
	if [ ! -e "$old" ]; then
		if [ -e "$data/member" ]; then mv "$data/member" "$old"; else mkdir "$old"; fi || give_up "its data cannot be put aside"
	fi
	# What has read the data from before starts with the new.
	for name in kube-apiserver kube-controller kube-scheduler; do pkill -x "$name" || true; done
	if ! mv "$new" "$data/member"; then
		[ -e "$old" ] && mv "$old" "$data/member"
		give_up "the new data cannot be put in its place"
	fi
	sync
fi
[ -d "$data/member/wal" ] || fail "there is no data of etcd on this node"
place "$state/etcd.yaml"
until_true 180 unforced || fail "kubelet does not start etcd"
until_true 120 healthy || fail "etcd does not respond with the data of the snapshot; the previous data is in $old"
rm -rf "$data/restored-$id"
for kept in "$data"/member-before-*; do
	[ "$kept" = "$old" ] || rm -rf "$kept"
done
# What waits for etcd is started now, not after its backoff.
systemctl restart kubelet
result done

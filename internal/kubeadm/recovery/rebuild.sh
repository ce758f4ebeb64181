[ -n "$data" ] && [ -d "$data/member/wal" ] || fail "there is no data of etcd on this node"
systemctl start kubelet

if [ ! -e "$state/forced" ]; then
	sed 's,^\( *- \)etcd$,&\n\1--force-new-cluster,' "$state/etcd.yaml" >"$state/forced.yaml"
	grep -q -- '- --force-new-cluster' "$state/forced.yaml" || fail "the command of etcd in $manifest is not as kubeadm writes it"
	if [ ! -e "$data-before-$id" ]; then
		rm -f "$manifest"
		until_true 120 stopped || give_up "etcd does not stop"
		rm -rf "$data-before-$id.new"
		cp -a "$data" "$data-before-$id.new" || give_up "its data cannot be copied to $data-before-$id"
		sync
		mv "$data-before-$id.new" "$data-before-$id"
	fi
	place "$state/forced.yaml"
	until_true 180 forced || give_up "kubelet does not start etcd"
	until_true 120 healthy || give_up "etcd does not become the only member of its cluster"
	touch "$state/forced"
fi
# With the flag, etcd would give up all other members at each start.
place "$state/etcd.yaml"
until_true 180 unforced || fail "kubelet does not start etcd without --force-new-cluster"
until_true 120 healthy || fail "etcd does not respond after it was rebuilt"
# What waits for etcd is started now, not after its backoff.
systemctl restart kubelet
result done

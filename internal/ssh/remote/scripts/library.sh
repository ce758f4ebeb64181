# Functions of all scripts. Parameters are NAME=value lines on standard input that end with an empty line.
set -u
umask 077
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin:/var/lib/slipway/current/bin
export LC_ALL PATH

etc=/etc/slipway
state=/var/lib/slipway
node=$state/node
run=/run/slipway/bootstrap

fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# The version of cgroups: 1 or 2.
cgroup_version() { if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo 2; else echo 1; fi; }

# Whether a process with this name runs. Names are cut after 15 bytes by the kernel.
process_runs() { grep -qsx -- "$(printf %.15s "$1")" /proc/[0-9]*/comm; }

# Whether a kubelet runs. Packages of the kubelet start it again and again until kubeadm has configured it, which is no node.
kubelet_runs() {
	systemctl is-active --quiet kubelet.service 2>/dev/null || process_runs kubelet || return 1
	[ -e /var/lib/kubelet/config.yaml ] || [ -e /etc/kubernetes/kubelet.conf ] || ! systemctl cat kubelet.service >/dev/null 2>&1
}

# Lines of kind and item that describe everything that a node changes on a host. It is written before the first change
# and compared after cleaning.
inventory() {
	for unit in kubelet containerd slipway-bootstrap slipway-keepalived; do
		! systemctl is-active --quiet $unit.service 2>/dev/null || echo "unit $unit"
		! systemctl is-enabled --quiet $unit.service 2>/dev/null || echo "enabled-unit $unit"
	done
	for program in kubelet kube-apiserver etcd containerd containerd-shim-runc-v2 kube-proxy flanneld; do
		! process_runs $program || echo "process $program"
	done
	awk '$2 ~ "^/(var/lib/kubelet|run/containerd|var/lib/containerd|run/netns)(/|$)" {print "mount " $2}' /proc/self/mounts | sort -u
	for name in /sys/class/net/*; do
		name=${name##*/}
		case $name in
		cni* | flannel* | veth* | kube-* | cilium* | cali* | vxlan* | tunl* | nodelocaldns) echo "link $name" ;;
		esac
	done
	for path in /etc/kubernetes /var/lib/kubelet /var/lib/etcd /var/lib/containerd /var/lib/cni /run/containerd /run/flannel /etc/cni/net.d /opt/cni/bin /etc/containerd \
		/etc/systemd/system/kubelet.service /etc/systemd/system/containerd.service /etc/systemd/system/slipway-keepalived.service /usr/local/bin/kubeadm /usr/local/bin/kubelet /run/cluster-api /var/log/pods /var/log/containers; do
		[ ! -e $path ] && [ ! -L $path ] || echo "path $path"
	done
	for save in iptables-save ip6tables-save; do
		! has $save || $save 2>/dev/null | awk -v kind=${save%-save} '/^\*/ {table = substr($1, 2)} /^:/ {print kind " " table " " substr($1, 2)}' | grep -E ' (KUBE-|CNI-|FLANNEL|cali-|CILIUM_)' | sort -u
	done
	[ ! -e $node/virtual-ip ] || ! ip -o addr show 2>/dev/null | grep -Fq " $(head -n 1 $node/virtual-ip)/" || echo "address $(head -n 1 $node/virtual-ip)"
	! has nft || nft list tables 2>/dev/null | awk '$3 ~ /^(kube-proxy|calico|cilium|flannel)/ {print "nftables " $2 " " $3}'
	return 0
}

# Waits until no other script changes the host.
lock() {
	mkdir -p $node && chmod 700 $node
	exec 9>$state/lock
	! has flock || flock -w 240 9 || fail "another change of the node does not end"
}

# Whether Slipway installed a path.
installed() { [ -e $node/installed ] && grep -Fqx -- "$1" $node/installed; }

# Records a path that is about to be installed, so that cleaning removes it.
remember() { installed "$1" || printf '%s\n' "$1" >>$node/installed; }

# An ID that changes with each boot, also with that of a container, whose kernel continues to run.
boot_id() { echo "$(cat /proc/sys/kernel/random/boot_id)-$(sed 's/.*) //' /proc/1/stat | cut -d ' ' -f 20)"; }

# The sizes and times of a bundle's files.
stamps() { (cd "$1" && sed 's/^[^ ]*  //' SHA256SUMS | xargs stat -c '%n %s %Y'); }

# Functions of all scripts. Parameters are NAME=value lines on standard input that end with an empty line.
set -u
umask 077
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin:/var/lib/slipway/current/bin
export LC_ALL PATH

# The root directory of the host.
root=
etc=/etc/slipway
state=/var/lib/slipway
node=$state/node
run=/run/slipway/bootstrap

fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

directories= masked= claim= digest= timeout= address= own= unused= silent= log_unit= log_lines= files= users= groups= input_size= input_hash=

# Reads the parameters. Names that occur several times have a value in each line. The parameters are complete only with
# the empty line: a connection that is lost ends the input early.
read_parameters() {
	while IFS= read -r line; do
		value=${line#*=}
		case $line in
		'') return 0 ;;
		CLAIM=*) claim=$value ;;
		DIGEST=*) digest=$value ;;
		TIMEOUT=*) timeout=$value ;;
		ADDRESS=*) address=$value ;;
		NODE=*) own=$value ;;
		UNUSED=*) unused=$value ;;
		SILENT=*) silent="$silent $value" ;;
		UNIT=*) log_unit=$value ;;
		LINES=*) log_lines=$value ;;
		FILE=*) files="$files$value
" ;;
		DIRECTORY=*) directories="$directories$value
" ;;
		MASK=*) masked="$masked$value
" ;;
		USER=*) users="$users$value
" ;;
		GROUP=*) groups="$groups$value
" ;;
		INPUT_SIZE=*) input_size=$value ;;
		INPUT_SHA256=*) input_hash=$value ;;
		esac
	done
	fail "the parameters have not arrived completely"
}

# Stores the input that follows the parameters in a file, if all of it has arrived.
receive() {
	cat >"$1" || fail "$1 cannot be written"
	[ "$(stat -c %s "$1")" = "$input_size" ] && [ "$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$input_hash" ] && return 0
	rm -f "$1"
	fail "the input has not arrived completely"
}

# Whether the host has the record of a claim.
recorded() { [ -n "$1" ] && grep -Fqs "\"claimID\": \"$1\"" $etc/machine.json; }

# Whether the inventory of the host was written for a claim.
inventoried() { [ -n "$1" ] && grep -Fqsx "claim $1" $node/inventory; }

has() { command -v "$1" >/dev/null 2>&1; }

# The version of cgroups: 1 or 2.
cgroup_version() { if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo 2; else echo 1; fi; }

# Whether the host is a container, which shows the hardware of the machine that it runs on.
in_container() { [ -e /run/systemd/container ] || [ -e /.dockerenv ] || systemd-detect-virt --quiet --container 2>/dev/null; }

# The ID of the hardware. A container has none of its own.
product_uuid() { in_container || head -c 64 /sys/class/dmi/id/product_uuid 2>/dev/null; }

# Prints the state of the Linux security modules. A container without the file system of AppArmor cannot use it.
security_modules() {
	echo "SELINUX=$(head -c 1 /sys/fs/selinux/enforce 2>/dev/null)"
	[ ! -d /sys/kernel/security/apparmor ] || echo "APPARMOR=$(head -c 1 /sys/module/apparmor/parameters/enabled 2>/dev/null)"
}

# The file of a kernel setting.
setting_file() { echo /proc/sys/$(echo "$1" | tr . /); }

# Kernel settings that a node changes: Slipway or kubeadm set the first, and the kubelet the others when it starts.
settings="net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables
fs.inotify.max_user_instances fs.inotify.max_user_watches vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
kernel.keys.root_maxkeys kernel.keys.root_maxbytes"

# Whether a process with this name runs. Names are cut after 15 bytes by the kernel.
process_runs() { grep -qsx -- "$(printf %.15s "$1")" /proc/[0-9]*/comm; }

# Whether a kubelet runs. Packages of the kubelet start it again and again until kubeadm has configured it, which is no node.
kubelet_runs() {
	systemctl is-active --quiet kubelet.service 2>/dev/null || process_runs kubelet || return 1
	[ -e /var/lib/kubelet/config.yaml ] || [ -e /etc/kubernetes/kubelet.conf ] || ! systemctl cat kubelet.service >/dev/null 2>&1
}

# Directories whose content belongs to a node, unless it was there before.
content_paths="/etc/kubernetes /var/lib/kubelet /var/lib/etcd /var/lib/cni /run/flannel /etc/cni/net.d /run/cluster-api /var/log/pods /var/log/containers"

# Lists paths that end with zero bytes, one in each line. Pods choose the names of files: line breaks are written as odd
# bytes, and a path with an odd byte is never used as the name of a file.
odd=$(printf '\001')
content_lines() { tr '\n\000' '\001\n' | sort | sed 's/^/content /'; }

content() { [ ! -d "$1" ] || [ -L "$1" ] || find "$1" -xdev -mindepth 1 -print0 2>/dev/null | content_lines; }

# The programs in the directory of CNI plugins, which root runs for each Pod, with a hash of each.
plugins() {
	for plugin in /opt/cni/bin/* /opt/cni/bin/.[!.]*; do
		if [ -L "$plugin" ]; then
			hash=$(readlink "$plugin" | sha256sum | cut -d ' ' -f 1)
		elif [ -d "$plugin" ]; then
			hash=directory
		elif [ -f "$plugin" ]; then
			hash=$(sha256sum <"$plugin" | cut -d ' ' -f 1)
		elif [ -e "$plugin" ]; then
			hash=special
		else
			continue
		fi
		printf 'plugin %s %s' "$hash" "$plugin" | tr '\n' '\001'
		echo
	done
}

# The network devices of the networks of Pods. One end of a pair belongs to them if the other is in a network namespace
# of CNI.
node_links() {
	for name in /sys/class/net/*; do
		name=${name##*/}
		case $name in
		cni[0-9]* | flannel* | kube-ipvs* | kube-bridge* | cilium* | cali[0-9a-f]* | vxlan.calico* | vxlan-v6.calico* | nodelocaldns) echo "$name" ;;
		# The device stays as long as the kernel has its module.
		tunl0) [ "$(cat /sys/class/net/tunl0/operstate 2>/dev/null)" = down ] || echo tunl0 ;;
		esac
	done
	! has ip || ip -o link show type veth 2>/dev/null | sed -n 's/^[0-9]*: \([^@:]*\)[@:].* link-netns cni-.*/\1/p'
}

# The chains and rules of Kubernetes and of networks of Pods, in a family of addresses.
filters() {
	! has $1-save || $1-save 2>/dev/null | awk -v kind=$1 '
		/^\*/ {table = substr($1, 2)}
		/^:/ {line = kind " " table " " substr($1, 2); if (line ~ / (KUBE-|CNI-|FLANNEL|cali-|CILIUM_)/) print line}
		/^-A/ && /KUBE-|CNI-|FLANNEL|cali[-:]|CILIUM_/ {print kind "-rule " table " " $0}' | sort -u
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
	awk '$2 ~ "^/(var/lib/kubelet|var/lib/slipway/bundles|run/containerd|var/lib/containerd|run/netns)(/|$)" {print "mount " $2}' /proc/self/mounts | sort -u
	node_links | sed 's/^/link /'
	! awk 'NR > 3 {found = 1} END {exit !found}' /proc/net/ip_vs 2>/dev/null || echo "ipvs table"
	for path in /etc/kubernetes /var/lib/kubelet /var/lib/etcd /var/lib/containerd /var/lib/cni /run/containerd /run/flannel /etc/cni/net.d /opt/cni/bin /etc/containerd \
		/etc/systemd/system/kubelet.service /etc/systemd/system/containerd.service /etc/systemd/system/slipway-keepalived.service /usr/local/bin/kubeadm /usr/local/bin/kubelet /run/cluster-api /var/log/pods /var/log/containers; do
		[ ! -e $path ] && [ ! -L $path ] || echo "path $path"
	done
	for path in $content_paths; do
		content $path | awk -v at=$path -v most=2000 'NR <= most {print} NR == most + 1 {print "more-content " at}'
	done
	plugins
	for family in iptables ip6tables; do filters $family; done
	[ ! -e $node/virtual-ip ] || ! ip -o addr show 2>/dev/null | grep -Fq " $(head -n 1 $node/virtual-ip)/" || echo "address $(head -n 1 $node/virtual-ip)"
	! has nft || nft list tables 2>/dev/null | awk '$3 ~ /^(kube-proxy|calico|cilium|flannel)/ {print "nftables " $2 " " $3}'
	return 0
}

# Waits until no other script changes the host, for the given number of seconds. A script waits for a shorter time than its
# caller, so that it does not change the host when the caller has given up.
lock() {
	mkdir -p $node && chmod 700 $node
	exec 9>$state/lock
	flock -w "$1" 9 || fail "another change of the node does not end"
}

# Marks this script and all that it starts as the preparation of a node, which cleaning ends.
preparing() {
	mkdir -p $state || fail "$state cannot be created"
	exec 8>$state/preparing
}

# Whether Slipway installed a path.
installed() { [ -e $node/installed ] && grep -Fqx -- "$1" $node/installed; }

# Records a path that is about to be installed, so that cleaning removes it.
remember() { installed "$1" || printf '%s\n' "$1" >>$node/installed; }

# An ID that changes with each boot, also with that of a container, whose kernel continues to run.
boot_id() { echo "$(cat /proc/sys/kernel/random/boot_id)-$(sed 's/.*) //' /proc/1/stat | cut -d ' ' -f 20)"; }

# Whether a text is the digest of a bundle.
is_digest() {
	case $1 in *[!0-9a-f]*) return 1 ;; esac
	[ ${#1} = 64 ]
}

# The sizes and times of a bundle's files.
stamps() { (cd "$1" && sed 's/^[^ ]*  //' SHA256SUMS | xargs stat -c '%n %s %Y'); }

# The kernel modules of a node. Devices and file systems of others may use what was loaded before.
node_modules="overlay br_netfilter vxlan"

# Prints what the preflight checks need, as NAME=value lines. Changes nothing, and loads no kernel modules: it runs on
# hosts that nobody has claimed.
[ -d /run/systemd/system ] && echo SYSTEMD=true
echo "CGROUP=$(cgroup_version)"
if [ "$(cgroup_version)" = 2 ]; then
	echo "CONTROLLERS=$(cat /sys/fs/cgroup/cgroup.controllers)"
else
	echo "CONTROLLERS=$(awk 'NR > 1 && $4 == 1 {printf "%s ", $1}' /proc/cgroups)"
fi

# Whether the kernel has a module, which need not be loaded. The configuration of modprobe can replace it by a command.
has_module() {
	[ ! -d "/sys/module/$1" ] || return 0
	commands=$(modprobe -n -v "$1" 2>/dev/null) || return 1
	case $commands in install\ *) return 1 ;; esac
}
if grep -qsw overlay /proc/filesystems || has_module overlay; then echo OVERLAY=true; fi
if has_module vxlan; then echo VXLAN=true; fi
for name in $settings; do
	file=$(setting_file $name)
	[ -e "$file" ] || continue
	echo "SETTING=$name $(head -c 64 "$file")"
	( : >>"$file" ) 2>/dev/null || echo "FIXED=$name"
done
! grep -qsE '^protectKernelDefaults: *true|--protect-kernel-defaults([^=]|=true|$)' /var/lib/kubelet/config.yaml /etc/default/kubelet /etc/sysconfig/kubelet \
	/etc/systemd/system/kubelet.service.d/*.conf /usr/lib/systemd/system/kubelet.service.d/*.conf || echo PROTECTED=true

echo "SWAP=$(awk 'NR > 1' /proc/swaps 2>/dev/null | wc -l)"
awk '$4 == "0A" {sub(".*:", "", $2); print "PORT=" $2}' /proc/net/tcp /proc/net/tcp6 2>/dev/null | sort -u | head -n 500
echo "DISK_FREE_KIB=$(df -Pk /var/lib | awk 'NR == 2 {print $4}')"
for bundle in $state/bundles/*; do
	[ -d "$bundle" ] || continue
	echo "STORED=${bundle##*/} $(du -sk --exclude=preload "$bundle" 2>/dev/null | cut -f 1)"
	[ ! -d "$bundle/preload" ] || echo "PRELOADED=${bundle##*/}"
done
[ ! -e $node/imported ] || echo "IMPORTED=$(head -c 64 $node/imported)"
echo "ETC_FREE_KIB=$(df -Pk /etc | awk 'NR == 2 {print $4}')"
echo "RUN_FREE_KIB=$(df -Pk /run | awk 'NR == 2 {print $4}')"
echo "MEMORY_KIB=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)"
echo "CPUS=$(getconf _NPROCESSORS_ONLN 2>/dev/null || nproc)"
echo "NOW=$(date +%s)"
echo "ARCHITECTURE=$(uname -m)"
echo "HOSTNAME=$(uname -n)"
echo "MACHINE_ID=$(head -c 64 /etc/machine-id 2>/dev/null)"
echo "PRODUCT_UUID=$(product_uuid)"
security_modules
has chcon && echo CHCON=true
has apparmor_parser && echo APPARMOR_PARSER=true
has findmnt && echo "VAR_OPTIONS=$(findmnt -n -o OPTIONS -T /var/lib 2>/dev/null | head -n 1)"
for path in /etc /etc/slipway /var/lib /var/lib/slipway /usr/local/bin /opt; do
	[ -d $path ] && [ ! -w $path ] && echo "READ_ONLY=$path"
done
for unit in firewalld ufw; do
	! systemctl is-active --quiet $unit.service 2>/dev/null || echo "FIREWALL=$unit"
done
# Packet filters without such a service that reject what they do not allow.
if ! systemctl is-active --quiet firewalld.service 2>/dev/null && ! systemctl is-active --quiet ufw.service 2>/dev/null; then
	if [ -d /sys/module/nf_tables ] && has nft; then
		nft list ruleset 2>/dev/null
	fi | awk '
		/^[ \t]*chain / {input = 0}
		/ hook input / {input = 1; if (/policy drop/) found = 1}
		input && /^[ \t]*(counter (packets [0-9]+ bytes [0-9]+ )?)?(drop|reject)( with .*)?$/ {found = 1}
		END {if (found) print "FIREWALL=nftables"}'
	if [ -d /sys/module/iptable_filter ] && has iptables-save; then
		iptables-save -t filter 2>/dev/null
	fi | grep -Eq '^(:INPUT DROP|-A INPUT -j (DROP|REJECT))' && echo FIREWALL=iptables
fi
for tool in tar sha256sum base64 awk sed grep find mount umount nsenter df systemd-run sync flock; do
	has $tool || echo "MISSING=$tool"
done
if kubelet_runs; then echo KUBELET=true; fi
[ -e $etc/machine.json ] || { [ ! -e $node/installed ] && [ ! -e $node/started ]; } || echo UNRECORDED=true

# Programs and configuration that another installation left, and that preparing the host would have to overwrite.
for path in /etc/systemd/system/containerd.service /lib/systemd/system/containerd.service /usr/lib/systemd/system/containerd.service \
	/etc/systemd/system/kubelet.service /lib/systemd/system/kubelet.service /usr/lib/systemd/system/kubelet.service \
	/usr/local/bin/kubeadm /usr/local/bin/kubelet /usr/bin/kubeadm /usr/bin/kubelet /etc/containerd/config.toml \
	/etc/kubernetes/kubelet.conf /etc/kubernetes/admin.conf /var/lib/kubelet/config.yaml /var/lib/etcd/member; do
	[ ! -e $path ] || installed $path || echo "FOREIGN=$path"
done
# Data of another node, which the node of a machine would mix with its own, or delete.
for path in /var/lib/etcd /var/lib/kubelet /etc/kubernetes; do
	found=$(find $path -mindepth 1 ! -type d -print0 2>/dev/null | content_lines | head -n 2000)
	[ ! -e $node/inventory ] || found=$(printf '%s\n' "$found" | grep -Fx -f $node/inventory)
	[ -z "$found" ] || echo "CONTENT=$path"
done
# What a former node left that a node of a claim did not add. Nothing is read that would load a module of the kernel.
former() { if [ -e $node/inventory ]; then grep -Fx -f $node/inventory; else cat; fi | head -n 5; }
node_links | sed 's/^/link /' | former | sed 's/^link /FORMER=network device /'
for config in /etc/cni/net.d/*.conf /etc/cni/net.d/*.conflist /etc/cni/net.d/*.json; do
	[ ! -e "$config" ] || echo "content $config"
done | former | sed 's/^content /CNI_CONFIG=/'
if [ -d /sys/module/nf_tables ] || [ -d /sys/module/ip_tables ] || [ -d /sys/module/ip6_tables ]; then
	for family in iptables ip6tables; do filters $family; done | grep -E '^ip6?tables [a-z]+ (KUBE-|FLANNEL|cali-|CILIUM_)' | former | sed 's/^\([^ ]*\) [^ ]* /FORMER=\1 chain /'
fi
# Images and containers of another containerd, which that of the node would use.
if [ -d /var/lib/containerd ] && ! installed /etc/systemd/system/containerd.service &&
	[ -n "$(find /var/lib/containerd ! -type d -print -quit 2>/dev/null)" ]; then
	echo CONTENT=/var/lib/containerd
fi
for socket in /run/containerd/containerd.sock /run/crio/crio.sock /run/docker.sock; do
	[ -S $socket ] || continue
	[ $socket != /run/containerd/containerd.sock ] || ! installed /etc/systemd/system/containerd.service || continue
	echo "SOCKET=$socket"
done
for program in kubelet kubeadm containerd; do
	has $program && echo "PROGRAM=$program"
done
# The images of a bundle, which the operator can import where the bundle is not installed.
if has ctr && has timeout && [ -S /run/containerd/containerd.sock ]; then
	images=$(timeout 10 ctr -n k8s.io images ls -q 2>/dev/null) && ! printf '%s\n' "$images" | grep -q '^slipway\.dev/' && echo NO_IMAGES=true
fi
exit 0

# Removes what a node of a claim left on the host, and prints what remains compared with the inventory from before.
read_parameters
# A preparation whose connection was lost or canceled may still run, and have the lock.
tries=0
while recorded "$claim" && [ $tries -lt 20 ]; do
	found=
	for fd in /proc/[0-9]*/fd/8; do
		[ "$(readlink "$fd" 2>/dev/null)" = $state/preparing ] || continue
		process=${fd#/proc/}
		kill -9 "${process%%/*}" 2>/dev/null
		found=true
	done
	[ -n "$found" ] || break
	tries=$((tries + 1))
	sleep 0.1
done
lock 230
unrecorded= known=
if [ "$claim" = unrecorded ]; then
	# The operator wants the node of another installer to be removed.
	[ ! -e $etc/machine.json ] || exit 3
	unrecorded=true
else
	[ -z "$claim" ] || [ ! -e $etc/machine.json ] || recorded "$claim" || exit 3
	if ! inventoried "$claim" && ! { [ -z "$claim" ] && [ -e $node/inventory ]; }; then
		# The record may have been deleted already, after the host was cleaned. Anything else is not the node of the claim.
		[ ! -e $etc/machine.json ] && [ ! -e $node/inventory ] && ! kubelet_runs || exit 5
		[ -z "$(inventory | grep -E '^(process|mount|link|iptables|ip6tables|nftables) ' | grep -vE '^(process containerd|mount /(run|var/lib)/containerd|ip6?tables [a-z]+ CNI-)')" ] || exit 5
		rmdir $node 2>/dev/null
		echo RESET=true
		exit 0
	fi
fi

# Whether the inventory from before has a line.
before() { [ -e $node/inventory ] && grep -Fqx -- "$1" $node/inventory; }

# A process that waits for a file server that is gone may not end.
stop_unit() { ! systemctl cat "$1" >/dev/null 2>&1 && ! systemctl is-active --quiet "$1" || timeout -k 1 100 systemctl stop "$1" 2>/dev/null; }

# Runs a command for at most ten seconds. What the kernel cannot end then goes on without the lock.
attempts=0
briefly() {
	attempts=$((attempts + 1))
	ended=$node/ended.$$.$attempts
	{ if timeout -k 1 8 "$@"; then echo true; else echo false; fi >$ended; } >/dev/null 2>&1 </dev/null 9>&- &
	waited=0
	until [ -s $ended ]; do
		[ $waited -lt 500 ] || return 1
		waited=$((waited + 1))
		sleep 0.02
	done
	[ "$(cat $ended)" = true ]
}

# Another host takes over the virtual IP address at once.
stop_unit slipway-keepalived.service
if [ -e $node/virtual-ip ]; then
	ip -o addr show 2>/dev/null | awk -v address="$(head -n 1 $node/virtual-ip)" '{split($4, a, "/"); if (a[1] == address) print $4, $2}' |
		while read -r prefix device; do ip addr del "$prefix" dev "$device" 2>/dev/null; done
fi
stop_unit slipway-bootstrap.service
# The kubelet of another installer goes on.
own_kubelet=
[ -z "$unrecorded" ] && [ ! -e $node/started ] && ! installed /etc/systemd/system/kubelet.service || own_kubelet=true
[ -z "$own_kubelet" ] || stop_unit kubelet.service

# The control groups of Pods. Nodes in containers, such as those of kind, have theirs in the group of the container.
kubepods() {
	for group in /sys/fs/cgroup/kubepods /sys/fs/cgroup/kubepods.slice; do
		[ ! -d $group ] || echo $group
	done
	[ "$(cgroup_version)" = 1 ] || return 0
	for group in /sys/fs/cgroup/*/kubepods /sys/fs/cgroup/*/kubepods.slice; do
		[ ! -d $group ] || echo $group
	done
}

# Containers: their processes are in control groups below kubepods, and their shims in containerd's.
managed=
! installed /etc/systemd/system/containerd.service || managed=true
if [ -z "$managed" ] && [ -e /etc/kubernetes ] && has kubeadm && { [ -e $node/started ] || [ -n "$unrecorded" ]; }; then
	# The container runtime is not Slipway's and stays, so only kubeadm knows how to remove its containers.
	timeout -k 1 60 kubeadm reset --force --skip-phases=preflight,remove-etcd-member >/dev/null 2>&1 </dev/null
fi
if [ -n "$managed" ] || [ -e $node/started ]; then
	[ -z "$managed" ] || systemctl kill --kill-who=all --signal=KILL containerd.service 2>/dev/null
	[ -z "$managed" ] || stop_unit containerd.service
	tries=0
	while [ $tries -lt 20 ]; do
		processes=$(kubepods | while read -r group; do find $group -name cgroup.procs -exec cat {} + 2>/dev/null; done | sort -u)
		[ -n "$processes" ] || break
		kill -9 $processes 2>/dev/null
		tries=$((tries + 1))
		sleep 0.1
	done
	if [ -n "$managed" ]; then
		# Another containerd, such as that of Docker, has another address.
		for comm in $(grep -lsx -- containerd-shim /proc/[0-9]*/comm); do
			shim=${comm%/comm}
			! tr '\0' '\n' <"$shim/cmdline" 2>/dev/null | grep -Fqx /run/containerd/containerd.sock || kill -9 "${shim##*/}" 2>/dev/null
		done
	fi
	kubepods | while read -r group; do find $group -depth -type d -exec rmdir {} \; 2>/dev/null; done
fi

# Mounts, the deepest first. A path with a space is written with \040 in the list.
below() { awk -v at="$1" '$2 ~ "^" at "(/|$)" {print $2, $3}' /proc/self/mounts | sort -r; }
unmount() {
	case $2 in
	# The server may be gone, and a program of the file system may wait for it.
	nfs* | cifs | smb* | ceph* | fuse* | 9p | lustre | glusterfs | afs | beegfs) briefly umount -i -l "$1" ;;
	*) briefly umount "$1" || briefly umount -i -l "$1" ;;
	esac
}
for dir in /var/lib/kubelet /run/containerd /var/lib/containerd /run/netns /var/lib/slipway/bundles; do
	[ -n "$managed" ] || case $dir in */containerd) continue ;; esac
	below $dir >$node/mounts
	while read -r at type; do
		! before "mount $at" || continue
		case $at in /run/netns | /run/netns/[!c]*) continue ;; esac
		unmount "$(printf '%b' "$at")" "$type"
	done <$node/mounts
done
rm -f $node/mounts $node/ended.*
rm -f /run/netns/cni-*

node_links | while read -r name; do
	! before "link $name" || continue
	ip link del "$name" 2>/dev/null
	[ "$name" != tunl0 ] || { ip addr flush dev tunl0 && ip link set tunl0 down; } 2>/dev/null
done

# Packet filters: chains and rules of Kubernetes and of its networks go unless they were there before, as those of
# other programs with the same plugins. Everything else stays.
[ ! -e $node/inventory ] || known=$node/inventory
for family in iptables ip6tables; do
	has $family-save && has $family-restore || continue
	$family-save 2>/dev/null >$node/filters
	awk -v kind=$family '
		FILENAME == ARGV[1] {known[$0] = 1; next}
		/^\*/ {table = substr($1, 2)}
		/^:/ {line = kind " " table " " substr($1, 2); if (line ~ / (KUBE-|CNI-|FLANNEL|cali-|CILIUM_)/ && !(line in known)) {removed = 1; next}}
		/^-A/ && /KUBE-|CNI-|FLANNEL|cali[-:]|CILIUM_/ && !((kind "-rule " table " " $0) in known) {removed = 1; next}
		{print}
		END {exit !removed}' ${known:-/dev/null} $node/filters >$node/filters.new && $family-restore <$node/filters.new 2>/dev/null
done
rm -f $node/filters $node/filters.new
if has nft; then
	nft list tables 2>/dev/null | while read -r table family name; do
		case $name in kube-proxy | calico* | cilium* | flannel*) before "nftables $family $name" || nft delete table "$family" "$name" 2>/dev/null ;; esac
	done
fi
if has ipvsadm && [ -e /proc/net/ip_vs ] && [ -e $node/inventory ] && ! before "ipvs table"; then ipvsadm --clear 2>/dev/null; fi

# Units, users and files that Slipway and the bootstrap data added.
for unit in kubelet containerd slipway-keepalived; do
	case $unit in
	kubelet) [ -n "$own_kubelet" ] || continue ;;
	containerd) [ -n "$managed" ] || continue ;;
	esac
	before "enabled-unit $unit" || systemctl disable --quiet $unit.service 2>/dev/null
done
if [ -e $node/enabled ]; then
	while read -r unit; do
		case $unit in kubelet.service | containerd.service | slipway-* | -*) ;; *) systemctl disable --quiet --now "$unit" 2>/dev/null ;; esac
	done <$node/enabled
fi
if [ -e $node/users ]; then
	while read -r name home; do
		pkill -KILL -u "$name" 2>/dev/null
		! id -u "$name" >/dev/null 2>&1 || userdel -f "$name" 2>/dev/null
		case $home in /*/*) rm -rf -- "$home" ;; esac
	done <$node/users
fi
if [ -e $node/groups ]; then
	while read -r name; do groupdel "$name" 2>/dev/null; done <$node/groups
fi
if [ -e $node/passwords ]; then
	while IFS=: read -r name password expires; do
		# All users can read the arguments of programs.
		[ "$(awk -F : -v name="$name" '$1 == name {print $2}' /etc/shadow)" = "$password" ] || printf '%s:%s\n' "$name" "$password" | chpasswd -e 2>/dev/null
		chage -E "${expires:--1}" "$name" 2>/dev/null
	done <$node/passwords
fi
if [ -e $node/backups ]; then
	while read -r number path; do
		rm -f -- "$path"
		cp -a $node/backup.$number "$path"
	done <$node/backups
fi
[ ! -e $node/default-kubelet ] || cp -p $node/default-kubelet /etc/default/kubelet
if [ -e $node/installed ]; then
	while IFS= read -r path; do
		case $path in /*) [ -d "$path" ] && [ ! -L "$path" ] || rm -f -- "$path" ;; esac
	done <$node/installed
fi
if [ -e $node/modes ]; then
	while read -r mode owner dir; do
		[ ! -d "$dir" ] || { chown "$owner" "$dir" && chmod "$mode" "$dir"; } 2>/dev/null
	done <$node/modes
fi
if [ -e $node/directories ]; then
	while IFS= read -r dir; do
		case $dir in /*) [ ! -d "$dir" ] || [ -L "$dir" ] || find "$dir" -xdev -delete 2>/dev/null ;; esac
	done <$node/directories
fi
if [ -e $node/parents ]; then
	sort -ru $node/parents | while IFS= read -r dir; do
		case $dir in /*) rmdir -- "$dir" 2>/dev/null ;; esac
	done
fi
rmdir /etc/slipway/keepalived /etc/systemd/system/kubelet.service.d /etc/systemd/system/containerd.service.d /etc/slipway/kubelet.conf.d /etc/slipway/authorities 2>/dev/null

# Directories of the node, without what was in them before. Nothing is deleted across mounts. Entries whose names are odd
# are deleted without the list, if none was there before.
newline='
'
empty() {
	[ -e "$1" ] || [ -L "$1" ] || return 0
	if before "path $1"; then
		[ -e $node/inventory ] && ! before "more-content $1" || return 0
		grep -F "content $1/" $node/inventory | grep -Fq "$odd" || find "$1" -xdev -mindepth 1 \( -path "*$newline*" -o -path "*$odd*" \) -delete 2>/dev/null
		content "$1" | sort -r | grep -vFx -f $node/inventory | while IFS= read -r line; do
			path=${line#content }
			case $path in *"$odd"*) continue ;; "$1"/*) ;; *) continue ;; esac
			if [ -d "$path" ] && [ ! -L "$path" ]; then rmdir -- "$path"; else rm -f -- "$path"; fi 2>/dev/null
		done
		return 0
	fi
	[ -z "$(below "$1")" ] || { find "$1" -xdev -mindepth 1 -delete 2>/dev/null; return 0; }
	rm -rf -- "$1"
}
# The network of Podman is not that of the node of another installer.
for path in $content_paths; do
	if [ $path = /etc/cni/net.d ] && [ -z "$known" ]; then
		find $path -xdev -mindepth 1 ! -name '*podman*' -delete 2>/dev/null
		rmdir $path 2>/dev/null
	else
		empty $path
	fi
done
if [ -n "$managed" ]; then
	for path in /var/lib/containerd /run/containerd /etc/containerd /opt/cni/bin; do before "path $path" || empty $path; done
	# The images and containers of the node in a directory of before, such as a disk of its own.
	[ ! -d /var/lib/containerd ] || [ -L /var/lib/containerd ] || find /var/lib/containerd -xdev -mindepth 1 ! -path /var/lib/containerd/lost+found -delete 2>/dev/null
fi
# A containerd that unpacked images for the node and was ended leaves its directory.
[ -z "$known" ] || before "path /run/containerd" || [ -S /run/containerd/containerd.sock ] || empty /run/containerd
# Plugins that were added to a directory of before are removed, and those that were replaced or removed are restored.
if [ -e $node/inventory ] && ! before "path /opt/cni/bin"; then
	empty /opt/cni/bin
elif [ -e $node/inventory ] && [ -d /opt/cni/bin ]; then
	is_known() {
		case $1 in *"$newline"* | *"$odd"*) return 1 ;; esac
		grep -qsx "plugin [^ ]* $(printf %s "$1" | sed 's/[][\\.*^$]/\\&/g')" $node/inventory
	}
	for plugin in /opt/cni/bin/* /opt/cni/bin/.[!.]*; do
		is_known "$plugin" || rm -rf -- "$plugin"
	done
	sed -n 's/^plugin //p' $node/inventory | while read -r hash plugin; do
		copy=$node/plugins/${plugin##*/}
		[ -f "$copy" ] && ! plugins | grep -Fqx "plugin $hash $plugin" || continue
		[ ! -d "$plugin" ] || [ -L "$plugin" ] || rm -rf -- "$plugin"
		cp -a "$copy" "$plugin.slipway" && mv -f "$plugin.slipway" "$plugin"
	done
fi
rmdir /etc/cni /opt/cni 2>/dev/null
rm -rf $run /run/slipway

if [ -e $node/sysctl ]; then
	for name in $settings; do
		value=$(sed -n "s/^$name=//p" $node/sysctl | head -n 1)
		file=$(setting_file $name)
		[ -n "$value" ] && [ -e "$file" ] && [ "$(cat "$file")" != "$value" ] || continue
		{ echo "$value" >"$file"; } 2>/dev/null
	done
fi
if [ -e $node/interfaces ]; then
	while IFS= read -r line; do
		file=${line%=*}
		[ ! -e "$file" ] || [ "$(cat "$file")" = "${line##*=}" ] || { echo "${line##*=}" >"$file"; } 2>/dev/null
	done <$node/interfaces
fi
# Modules that were loaded for the node, unless something uses them: removing a module removes its devices. The traffic
# of bridges is filtered until then. In a container, the modules are those of another machine.
if [ -e $node/modules ] && ! in_container; then
	while read -r module; do
		[ -d /sys/module/$module ] || continue
		case $module in
		br_netfilter) for key in /proc/sys/net/bridge/bridge-nf-call-*; do { echo 0 >"$key"; } 2>/dev/null; done ;;
		vxlan) [ -z "$(ip -o link show type vxlan 2>/dev/null)$(find /run/netns /run/docker/netns -mindepth 1 2>/dev/null | head -n 1)" ] || continue ;;
		esac
		rmmod $module 2>/dev/null
	done <$node/modules
fi
systemctl daemon-reload
[ ! -e $node/stopped ] || while IFS= read -r unit; do systemctl start --no-block "$unit" 2>/dev/null; done <$node/stopped
systemctl reset-failed kubelet.service containerd.service slipway-bootstrap.service slipway-keepalived.service 2>/dev/null
rm -rf $node/files $node/imported $node/default-kubelet $node/served $node/virtual-ip.files
rm -rf $state/bundles/*/preload $state/bundles/*/preload.draft # users of the node had access to them

# What remains. Without an inventory, the programs of another installer may stay.
remaining() {
	[ ! -e $node/users ] || while read -r name home; do ! id -u "$name" >/dev/null 2>&1 || echo "user $name"; done <$node/users
	[ ! -e $node/groups ] || while read -r name; do ! getent group "$name" >/dev/null || echo "group $name"; done <$node/groups
	[ ! -e $node/installed ] || while IFS= read -r path; do
		case $path in /*) [ ! -f "$path" ] && [ ! -L "$path" ] || echo "file $path" ;; esac
	done <$node/installed
	# Other settings belong to the kernel, which containers share.
	for name in net.ipv4.ip_forward net.ipv6.conf.all.forwarding; do
		value=$(sed -n "s/^$name=//p" $node/sysctl 2>/dev/null | head -n 1)
		[ -z "$value" ] || [ "$(cat "$(setting_file $name)" 2>/dev/null)" = "$value" ] || echo "setting $name"
	done
	[ ! -e $node/directories ] || while IFS= read -r dir; do [ ! -d "$dir" ] || [ -L "$dir" ] || echo "directory $dir"; done <$node/directories
	[ -z "$managed" ] || [ -L /var/lib/containerd ] || find /var/lib/containerd -xdev -mindepth 1 ! -path /var/lib/containerd/lost+found -print0 2>/dev/null | content_lines | head -n 3
	if [ -e $node/inventory ]; then
		inventory | grep -vFx -f $node/inventory
	else
		inventory | grep -vE '^(content|plugin) ' | grep -vE '^((unit|enabled-unit|process) containerd|mount /(run|var/lib)/containerd|path .*/(run/containerd|var/lib/containerd|etc/containerd|opt/cni/bin|etc/systemd/|usr/local/bin/|etc/cni/net.d))'
	fi
}
# The checklist of what was verified, for the operator. It stays until the next claim.
checklist() {
	printf '{\n  "claimID": "%s",\n  "cleanedAt": "%s",\n  "verified": [' "$claim" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
	printf '"processes", "systemd units", "mounts", "network devices", "packet filter rules", "directories"'
	[ -z "$known" ] || printf ', "files", "users", "groups", "IP forwarding", "CNI plugins"'
	printf ']\n}\n'
}
# Processes need a moment to end.
tries=0
while :; do
	remaining >$node/leftovers
	[ -s $node/leftovers ] && [ $tries -lt 10 ] || break
	tries=$((tries + 1))
	sleep 0.2
done
sed 's/^/LEFTOVER=/' $node/leftovers
clean=true
[ ! -s $node/leftovers ] || clean=
rm -f $node/leftovers
if [ -n "$clean" ]; then
	[ -z "$claim" ] || { checklist >$state/cleaned.json.draft && chmod 644 $state/cleaned.json.draft && mv $state/cleaned.json.draft $state/cleaned.json; }
	# The programs of the bundle, such as iptables-save, are needed until here, and by the next attempt.
	rm -f $state/current $state/lib
	rm -f $node/installed $node/started $node/bootstrapped $node/sysctl $node/interfaces $node/virtual-ip $node/users $node/groups $node/passwords $node/enabled $node/directories $node/parents $node/modes $node/stopped $node/backups $node/backup.* $node/filters $node/*.tar
	[ -e $etc/machine.json ] || rm -rf $node
fi

# Bundles that the node's users changed, or to which they added programs. Besides its files, a bundle has three of the scripts.
# The next attempt needs the programs of the bundle in use.
used=$(readlink $state/current 2>/dev/null)
for bundle in $state/bundles/*; do
	[ -d "$bundle" ] && [ "$bundle" != "$used" ] || continue
	sums=$bundle/SHA256SUMS
	[ -e "$sums" ] && [ -e "$bundle/complete" ] || { rm -rf "$bundle" && continue; }
	number=$(find "$bundle" -path "$bundle/preload" -prune -o ! -type d -print0 | tr -dc '\0' | wc -c)
	[ "$number" = $(($(wc -l <"$sums") + 3)) ] && [ "$(sha256sum <"$sums" | cut -d ' ' -f 1)" = "${bundle##*/}" ] && [ "$(stamps "$bundle" 2>/dev/null)" = "$(cat "$bundle/stamps" 2>/dev/null)" ] || rm -rf "$bundle"
done
echo RESET=true

# Prepares the host for kubeadm with a bundle that is installed. Input after the parameters: a tar archive of files for
# the root directory.
read_parameters
[ ${#digest} = 64 ] || fail "no digest"
bundle=$state/bundles/$digest
preparing
lock 180
[ -e "$bundle/complete" ] || fail "the bundle is not on the host"
[ -e $etc/machine.json ] || fail "the host has no record"
[ -z "$claim" ] || recorded "$claim" || exit 3

stage=$node/files
receive $node/files.tar
rm -rf $stage && mkdir $stage && tar -xpf $node/files.tar -C $stage || fail "the files of the node cannot be unpacked"
# Distributions with a read-only /usr have /opt/bin for programs.
if [ -d $stage/usr/local/bin ] && ! { mkdir -p /usr/local/bin && touch /usr/local/bin/.slipway && rm -f /usr/local/bin/.slipway; } 2>/dev/null; then
	mkdir -p $stage/opt && mv $stage/usr/local/bin $stage/opt/bin || fail "the files of the node cannot be moved"
fi
rm -f $node/files.tar
existing=
for path in $(cd $stage && find . \( -type f -o -type l \) | sed "s|^\.|$root|"); do
	if [ -e "$path" ] || [ -L "$path" ]; then
		installed "$path" || existing="$existing $path"
	fi
done
if [ -n "$existing" ]; then
	echo "${existing# }" >&2
	exit 4
fi

# containerd reads its settings when it starts. Settings that the operator has changed since replace those of before.
for path in /etc/systemd/system/containerd.service.d/10-proxy.conf /etc/containerd/certs.d/_default/hosts.toml /etc/slipway/authorities/trusted.crt; do
	if [ ! -e "$stage${path#"$root"}" ] && installed "$path" && [ -e "$path" ]; then
		touch $node/restart && rm -f "$path"
	fi
done
for path in $(cd $stage && find . -type f | sed "s|^\.|$root|"); do
	case $path in
	*/containerd.service* | */etc/containerd/* | */authorities/*)
		[ "$(sha256sum <"$stage${path#"$root"}")" = "$(sha256sum 2>/dev/null <"$path")" ] || touch $node/restart
		;;
	esac
done

ln -sfn "$bundle" $state/current
ln -sfn current/lib $state/lib
umask 022
chmod 711 $state
for path in $(cd $stage && find . \( -type f -o -type l \) | sed "s|^\.|$root|"); do
	remember "$path"
	mkdir -p "${path%/*}" && cp -a "$stage${path#"$root"}" "$path" && chown -h 0:0 "$path" || fail "$path cannot be written"
	[ ! -e /sys/fs/selinux/enforce ] || ! has restorecon || restorecon -F "$path" 2>/dev/null
done

# Plugins of other networks are added to the directory, so it contains copies.
mkdir -p /opt/cni/bin /etc/cni/net.d /etc/kubernetes/manifests /etc/containerd/certs.d
for plugin in "$bundle"/cni/*; do
	name=${plugin##*/}
	[ ! -e "/opt/cni/bin/$name" ] || installed "/opt/cni/bin/$name" || continue
	remember "/opt/cni/bin/$name"
	cp "$plugin" "/opt/cni/bin/.$name.slipway" && chmod 755 "/opt/cni/bin/.$name.slipway" && mv "/opt/cni/bin/.$name.slipway" "/opt/cni/bin/$name" || fail "CNI plugin $name cannot be written"
done
if [ "$(cat /sys/fs/selinux/enforce 2>/dev/null)" = 1 ]; then
	chcon -t bin_t /opt/cni/bin/* 2>/dev/null
fi

# The name servers for Pods. A server on the host's loopback address cannot be used from Pods; without any other, Pods
# get an address that responds at once with an error.
remember /etc/slipway/resolv.conf
resolv=/etc/resolv.conf
[ ! -s /run/systemd/resolve/resolv.conf ] || resolv=/run/systemd/resolve/resolv.conf
grep -vE '^[[:space:]]*nameserver[[:space:]]+127\.' $resolv >/etc/slipway/resolv.conf 2>/dev/null
grep -q '^[[:space:]]*nameserver' /etc/slipway/resolv.conf || {
	address=$(ip -4 route get 192.0.2.1 2>/dev/null | sed -n 's/.* src \([0-9.]*\).*/\1/p' | head -n 1)
	[ -n "$address" ] || address=$(ip -o -4 addr show scope global 2>/dev/null | awk '{sub("/.*", "", $4); print $4; exit}')
	echo "nameserver ${address:-127.0.0.1}" >>/etc/slipway/resolv.conf
}

# Kernel settings. Those of modules that are loaded now were not recorded with the claim.
for module in $node_modules; do modprobe -q $module 2>/dev/null; done
# Forwarding changes settings of each interface. Interfaces that accept router advertisements have to accept them also
# while they forward, now and after a boot, or the host loses its IPv6 routes.
if [ ! -e $node/interfaces ]; then
	for file in /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/conf/*/accept_redirects; do
		[ "$(cat /proc/sys/net/ipv4/ip_forward)" != 1 ] && [ -e "$file" ] && echo "$file=$(cat "$file")"
	done >$node/interfaces.draft
	for file in /proc/sys/net/ipv6/conf/*/forwarding /proc/sys/net/ipv6/conf/*/accept_ra; do
		[ "$(cat /proc/sys/net/ipv6/conf/all/forwarding 2>/dev/null)" = 0 ] && [ -e "$file" ] && echo "$file=$(cat "$file")"
	done >>$node/interfaces.draft
	mv $node/interfaces.draft $node/interfaces || fail "the settings of the interfaces cannot be recorded"
fi
advertisements=/etc/sysctl.d/91-slipway-interfaces.conf
if grep -q '/accept_ra=1$' $node/interfaces && { [ ! -e $advertisements ] || installed $advertisements; }; then
	remember $advertisements
	grep '/accept_ra=1$' $node/interfaces | while IFS= read -r line; do
		file=${line%=1}
		case $file in */conf/all/accept_ra | */conf/default/accept_ra | */conf/lo/accept_ra) continue ;; esac
		[ -e "$file" ] && echo 2 >"$file" && echo "${file#/proc/sys/} = 2"
	done >$advertisements 2>/dev/null
fi
while IFS=' =' read -r key value; do
	case $key in '' | '#'*) continue ;; esac
	file=$(setting_file "$key")
	[ -e "$file" ] || continue
	before=$(cat "$file")
	[ "$before" != "$value" ] || continue
	case $key in fs.inotify.*) [ "$before" -lt "$value" ] || continue ;; esac
	grep -qs "^$key=" $node/sysctl || echo "$key=$before" >>$node/sysctl
	{ echo "$value" >"$file"; } 2>/dev/null || echo "$key stays $before" >&2
done </etc/sysctl.d/90-slipway.conf

# The images that were unpacked with the bundle. They are moved: users of the node can change them, so cleaning would delete a copy
# in the bundle too.
if [ -d "$bundle/preload" ] && [ ! -e $node/imported ] && [ ! -e /var/lib/containerd ]; then
	if mv "$bundle/preload" /var/lib/containerd; then
		echo "$digest" >$node/imported
	else
		rm -rf /var/lib/containerd
	fi
fi

systemctl daemon-reload
systemctl enable --quiet containerd.service kubelet.service 2>/dev/null
[ ! -e $node/restart ] || systemctl stop containerd.service
systemctl start containerd.service || fail "containerd does not start: $(journalctl -u containerd.service -n 5 -o cat 2>/dev/null)"
rm -f $node/restart
if [ "$(cat $node/imported 2>/dev/null)" != "$digest" ]; then
	for archive in "$bundle"/images/*.tar; do
		ctr -n k8s.io images import --local --snapshotter overlayfs "$archive" >/dev/null || fail "the container images cannot be imported"
	done
	echo "$digest" >$node/imported
fi
exit 0

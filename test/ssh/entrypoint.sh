#!/bin/sh
# The first process of a test host: turns what Docker gives a container into what systemd expects of a machine. Nothing of
# Kubernetes is prepared here, except for settings of the kernel that belong to this machine and must not be changed.
mount -o remount,rw,bind /sys 2>/dev/null || mount -o remount,rw /sys
mount -o remount,rw,bind /sys/fs/cgroup
if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
	for group in /sys/fs/cgroup/*; do
		if [ -d "$group" ] && [ ! -L "$group" ] && mountpoint -q "$group"; then
			mount -o remount,rw,bind "$group"
		fi
	done
fi
mountpoint -q /proc/sys/net || mount --bind /proc/sys/net /proc/sys/net
mount -o remount,rw,bind /proc/sys/net
mkdir -p /run/test-host
while read -r key value; do
	[ -e /proc/sys/$key ] || continue
	file=/run/test-host/$(echo "$key" | tr / .)
	echo "$value" >"$file"
	mount --bind "$file" /proc/sys/$key
done <<END
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
END
# The hosts share the disk of this machine, which may be almost full. A host that starts again retains the flags of its kubelet.
[ -e /etc/default/kubelet ] || echo 'KUBELET_EXTRA_ARGS="--eviction-hard=memory.available<50Mi,nodefs.available<1%,imagefs.available<1%"' >/etc/default/kubelet
[ -e /dev/kmsg ] || mknod -m 600 /dev/kmsg c 1 11
mount --make-rshared /
[ -s /etc/machine-id ] || tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
exec /lib/systemd/systemd

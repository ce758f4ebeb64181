# Prints what the host is, as NAME=value lines.
release() { sed -n "s/^$1=//p" /etc/os-release 2>/dev/null | tr -d "\"'" | head -n 1; }

echo "NOW=$(date +%s)"
echo "OS=$(release PRETTY_NAME)"
echo "ARCHITECTURE=$(uname -m)"
echo "KERNEL=$(uname -r)"
echo "HOSTNAME=$(uname -n)"
echo "CPUS=$(getconf _NPROCESSORS_ONLN 2>/dev/null || nproc)"
echo "MEMORY_KIB=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)"
echo "DISK_KIB=$(df -Pk /var/lib | awk 'NR == 2 {print $2}')"
echo "DISK_FREE_KIB=$(df -Pk /var/lib | awk 'NR == 2 {print $4}')"
echo "CGROUP=$(cgroup_version)"
echo "BOOT_ID=$(boot_id)"
echo "MACHINE_ID=$(head -c 64 /etc/machine-id 2>/dev/null)"
echo "PRODUCT_UUID=$(product_uuid)"

security_modules

# Disks. Those of volumes that a node attaches over the network come and go, and partitions and logical volumes are no disks.
for device in /sys/block/*; do
	name=${device##*/}
	case $name in loop* | ram* | zram* | sr* | fd* | dm-* | md* | nbd* | rbd* | drbd* | mmcblk*boot* | mmcblk*rpmb) continue ;; esac
	[ -e "$device/size" ] && [ "$(cat "$device/hidden" 2>/dev/null)" != 1 ] || continue
	echo "DISK=$name $(head -c 32 "$device/size")"
done | head -n 100

runtime=
for unit in containerd docker crio; do
	[ $unit != containerd ] || ! installed /etc/systemd/system/containerd.service || continue
	! systemctl is-active --quiet $unit.service 2>/dev/null || runtime="${runtime:+$runtime,}$unit"
done
echo "RUNTIME=$runtime"
if kubelet_runs; then echo KUBELET=true; else echo KUBELET=false; fi
if [ -e $etc/machine.json ]; then echo RECORD=true; else echo RECORD=false; fi
[ ! -f $state/cleaned.json ] || echo "CLEANED=$(head -c 2048 $state/cleaned.json | tr -d '\n')"
if [ -d $state/bundles ]; then
	for bundle in $state/bundles/*/complete; do
		[ ! -e "$bundle" ] || { bundle=${bundle%/complete}; echo "BUNDLE=${bundle##*/}"; }
	done
fi
exit 0

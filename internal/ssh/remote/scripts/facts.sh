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
echo "PRODUCT_UUID=$(head -c 64 /sys/class/dmi/id/product_uuid 2>/dev/null)"

runtime=
for unit in containerd docker crio; do
	[ $unit != containerd ] || ! installed /etc/systemd/system/containerd.service || continue
	! systemctl is-active --quiet $unit.service 2>/dev/null || runtime="${runtime:+$runtime,}$unit"
done
echo "RUNTIME=$runtime"
if kubelet_runs; then echo KUBELET=true; else echo KUBELET=false; fi
if [ -e $etc/machine.json ]; then echo RECORD=true; else echo RECORD=false; fi
if [ -d $state/bundles ]; then
	for bundle in $state/bundles/*/complete; do
		[ ! -e "$bundle" ] || { bundle=${bundle%/complete}; echo "BUNDLE=${bundle##*/}"; }
	done
fi
exit 0

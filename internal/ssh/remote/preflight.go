package remote

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PreflightOptions describe the node that the host is to become. The SSHHost and SSHMachine controllers and `slipway
// hosts check` fill them in.
type PreflightOptions struct {
	// ControlPlane checks the ports and the memory of a control plane as well.
	ControlPlane bool
	// ManagedBundle checks that the host has room for a bundle and no container runtime of its own. Otherwise the host
	// must have the programs of a node.
	ManagedBundle bool
	// Architecture of the bundle. Empty: not checked.
	Architecture string
	// BundleBytes is the size of the bundle, and BundleDigest its digest. What is on the host already needs no more space.
	BundleBytes  int64
	BundleDigest string
	// Hostnames, MachineIDs and ProductUUIDs belong to other hosts of the cluster, with the name of the host. The IDs are
	// hashes as in Facts.
	Hostnames, MachineIDs, ProductUUIDs map[string]string
}

// Finding is a problem that a preflight check found.
type Finding struct {
	// Check is the name of the check, such as "Swap".
	Check string
	// Problem describes the problem, Remedy what to do about it.
	Problem, Remedy string
	// Fatal findings prevent the host from becoming a node; others are handled or only reported.
	Fatal bool
	// FormerNode findings are about another node, which the cleaning of a host without a record removes.
	FormerNode bool
}

// String returns the finding as one sentence.
func (f Finding) String() string { return f.Problem + "; " + f.Remedy }

// remedyUnrecorded removes the node of another installer. What "kubeadm reset" leaves would harm the next node.
const remedyUnrecorded = "if nothing needs the node, let Slipway remove it with the annotation infrastructure.slipway.dev/clean-host=unrecorded of the SSHHost"

// Limits of the checks for a control plane. Package inventory offers no smaller host to one.
const (
	MinControlPlaneMemoryMiB = 1700
	MinControlPlaneCPUs      = 2
)

// Limits of the checks.
const (
	minMemoryMiB   = 700
	minFreeDiskMiB = 2048
	minFreeRunMiB  = 16
	minFreeEtcMiB  = 4
	maxClockOffset = 30 * time.Second
)

// observation is the output of the preflight script.
type observation struct {
	values          map[string][]string
	portsInUse      []int
	controllers     []string
	clock           time.Duration
	memory, disk    int64
	hostname        string
	machineID       string
	productUUID     string
	foreign         []string
	cgroup, selinux string
	// settings are the values of kernel settings by their names. A setting is absent if the kernel does not have it.
	settings map[string]string
}

// CheckPrograms is the check of the programs that a host without a bundle needs. The SSHHost controller recognizes it.
const CheckPrograms = "Programs"

// Preflight runs all checks and returns their findings, fatal ones first. It changes nothing on the host. The SSHHost
// controller, the preparation of an SSHMachine and `slipway hosts check` call it.
func (h *Host) Preflight(ctx context.Context, o PreflightOptions) ([]Finding, error) {
	began := time.Now()
	out, err := h.run(ctx, call{script: "preflight"})
	if err != nil {
		return nil, err
	}
	return findings(observe(string(out), began, time.Now()), o), nil
}

func observe(text string, began, ended time.Time) observation {
	v := values(text, "SYSTEMD", "CGROUP", "CONTROLLERS", "OVERLAY", "VXLAN", "SETTING", "FIXED", "PROTECTED", "SWAP", "PORT", "DISK_FREE_KIB", "RUN_FREE_KIB", "MEMORY_KIB",
		"CPUS", "NOW", "ARCHITECTURE", "HOSTNAME", "MACHINE_ID", "PRODUCT_UUID", "SELINUX", "CHCON", "APPARMOR", "APPARMOR_PARSER", "VAR_OPTIONS", "READ_ONLY", "FIREWALL", "MISSING",
		"KUBELET", "FOREIGN", "CONTENT", "SOCKET", "PROGRAM", "FORMER", "CNI_CONFIG", "UNRECORDED", "ETC_FREE_KIB", "STORED", "PRELOADED", "IMPORTED", "NO_IMAGES")
	for name, all := range v {
		for i := range all {
			v[name][i] = fact(all[i])
		}
	}
	o := observation{
		values: v, controllers: strings.Fields(first(v, "CONTROLLERS")), clock: clockOffset(number(first(v, "NOW")), began, ended),
		memory: number(first(v, "MEMORY_KIB")) / 1024, disk: number(first(v, "DISK_FREE_KIB")) / 1024, hostname: first(v, "HOSTNAME"),
		machineID: identityHash("machine-id", first(v, "MACHINE_ID")), productUUID: identityHash("product-uuid", first(v, "PRODUCT_UUID")),
		foreign: v["FOREIGN"], cgroup: first(v, "CGROUP"), selinux: first(v, "SELINUX"), settings: map[string]string{},
	}
	for _, line := range v["SETTING"] {
		name, value, _ := strings.Cut(line, " ")
		o.settings[name] = value
	}
	for _, p := range v["PORT"] {
		if n, err := strconv.ParseUint(p, 16, 16); err == nil {
			o.portsInUse = append(o.portsInUse, int(n))
		}
	}
	return o
}

// isSet reports whether the script printed NAME=true.
func (o observation) isSet(name string) bool { return first(o.values, name) == "true" }

// findings runs the checks.
func findings(seen observation, o PreflightOptions) []Finding {
	var out []Finding
	for _, check := range []func(observation, PreflightOptions) []Finding{
		checkSystem, checkControlGroups, checkKernel, checkSettings, checkResources, checkPorts, checkIdentity, checkSecurity, checkInstallation, checkFormerNode,
	} {
		out = append(out, check(seen, o)...)
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		switch {
		case a.Fatal == b.Fatal:
			return strings.Compare(a.Check+a.Problem, b.Check+b.Problem)
		case a.Fatal:
			return -1
		}
		return 1
	})
	return out
}

func fatal(check, problem, remedy string) Finding {
	return Finding{Check: check, Problem: problem, Remedy: remedy, Fatal: true}
}

func warning(check, problem, remedy string) Finding {
	return Finding{Check: check, Problem: problem, Remedy: remedy}
}

func formerNode(check, problem string) Finding {
	return Finding{Check: check, Problem: problem, Remedy: remedyUnrecorded, Fatal: true, FormerNode: true}
}

func checkSystem(seen observation, o PreflightOptions) (out []Finding) {
	if !seen.isSet("SYSTEMD") {
		out = append(out, fatal("Systemd", "systemd does not manage this host", "use a distribution with systemd"))
	}
	if missing := seen.values["MISSING"]; len(missing) > 0 {
		out = append(out, fatal("Tools", "the host lacks "+strings.Join(missing, ", "), "install the packages that contain these commands (coreutils, tar, util-linux, gawk, systemd)"))
	}
	if arch := architecture(first(seen.values, "ARCHITECTURE")); o.Architecture != "" && arch != o.Architecture {
		out = append(out, fatal("Architecture", fmt.Sprintf("the host has the architecture %s, but the bundle is for %s", arch, o.Architecture), "build or import a bundle for "+arch))
	}
	for _, path := range slices.Compact(seen.values["READ_ONLY"]) {
		if path != "/usr/local/bin" && path != "/opt" {
			out = append(out, fatal("FileSystem", path+" cannot be written", "mount it read-write"))
		}
	}
	if slices.Contains(strings.Split(first(seen.values, "VAR_OPTIONS"), ","), "noexec") && o.ManagedBundle {
		out = append(out, fatal("FileSystem", "programs cannot run from /var/lib, which is mounted with noexec", "mount it without noexec: mount -o remount,exec"))
	}
	return out
}

func checkControlGroups(seen observation, _ PreflightOptions) (out []Finding) {
	if seen.cgroup == "1" {
		out = append(out, warning("ControlGroups", "the host has version 1 of control groups, which Kubernetes supports no longer by default",
			"nothing has to be done now: the kubelet is configured to accept it; boot with systemd.unified_cgroup_hierarchy=1 to change it"))
	}
	var missing []string
	for _, c := range []string{"cpu", "memory", "pids", "cpuset"} {
		if !slices.Contains(seen.controllers, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		out = append(out, fatal("ControlGroups", "the kernel does not enable the control group controllers "+strings.Join(missing, ", "),
			"enable them on the kernel command line (cgroup_enable=memory on a Raspberry Pi) and reboot"))
	}
	return out
}

func checkKernel(seen observation, _ PreflightOptions) (out []Finding) {
	if !seen.isSet("OVERLAY") {
		out = append(out, fatal("KernelModules", "the kernel has no overlay file system", "install the kernel's modules, or reboot if the kernel was updated: modprobe overlay"))
	}
	if first(seen.values, "VXLAN") == "" {
		out = append(out, warning("KernelModules", "the kernel has no VXLAN devices", "install the kernel's modules, or use a Pod network that does not need it"))
	}
	return out
}

// kubeletSettings are the kernel settings that the kubelet needs. It sets them when it starts. With protectKernelDefaults, it
// does not start instead if they differ: https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
func kubeletSettings() []kernelSetting {
	return []kernelSetting{
		{"kernel.keys.root_maxbytes", 25000000}, {"kernel.keys.root_maxkeys", 1000000}, {"kernel.panic", 10}, {"kernel.panic_on_oops", 1},
		{"vm.overcommit_memory", 1}, {"vm.panic_on_oom", 0},
	}
}

// kernelSetting is a kernel setting with the value that a node needs.
type kernelSetting struct {
	name  string
	value int64
}

// remedy returns the remedy for another value. A setting is fixed if root cannot change it.
func (k kernelSetting) remedy(isFixed bool) string {
	if isFixed {
		return fmt.Sprintf("set %s to %d where /proc/sys can be written, for example on the machine that runs the container", k.name, k.value)
	}
	return fmt.Sprintf("set it, also after a reboot: echo \"%[1]s = %[2]d\" >>/etc/sysctl.d/90-kubernetes.conf; sysctl -w %[1]s=%[2]d", k.name, k.value)
}

// checkSettings checks the kernel settings of a node. With a managed bundle, Slipway changes those that can be changed.
func checkSettings(seen observation, o PreflightOptions) (out []Finding) {
	isFixed := func(name string) bool { return slices.Contains(seen.values["FIXED"], name) }
	forwarding := kernelSetting{"net.ipv4.ip_forward", 1}
	switch value, ok := seen.settings[forwarding.name]; {
	case value == "1":
	case !ok || isFixed(forwarding.name):
		out = append(out, fatal("KernelSettings", forwarding.name+" is not 1 and cannot be changed, so Pods cannot reach other hosts", forwarding.remedy(true)))
	case !o.ManagedBundle:
		out = append(out, warning("KernelSettings", forwarding.name+" is not 1: kubeadm fails unless the bootstrap data sets it", forwarding.remedy(false)))
	}
	bridge := kernelSetting{"net.bridge.bridge-nf-call-iptables", 1}
	if value, ok := seen.settings[bridge.name]; ok && value != "1" && (isFixed(bridge.name) || !o.ManagedBundle) {
		out = append(out, warning("KernelSettings", bridge.name+" is not 1: Services may not work in Pod networks with a bridge, such as Flannel", bridge.remedy(isFixed(bridge.name))))
	}
	for _, k := range []kernelSetting{{"fs.inotify.max_user_instances", 512}, {"fs.inotify.max_user_watches", 524288}} {
		if value, ok := seen.settings[k.name]; ok && number(value) < k.value && (isFixed(k.name) || !o.ManagedBundle) {
			out = append(out, warning("KernelSettings", fmt.Sprintf("%s is less than %d: programs in many Pods fail with \"too many open files\"", k.name, k.value), k.remedy(isFixed(k.name))))
		}
	}
	for _, k := range kubeletSettings() {
		switch value, ok := seen.settings[k.name]; {
		case !ok || value == strconv.FormatInt(k.value, 10):
		case isFixed(k.name):
			out = append(out, fatal("KernelSettings", fmt.Sprintf("%s is not %d, which the kubelet needs, and cannot be changed", k.name, k.value), k.remedy(true)))
		case !o.ManagedBundle && seen.isSet("PROTECTED"):
			out = append(out, fatal("KernelSettings", fmt.Sprintf("%s is not %d, so the kubelet does not start, because it is configured with protectKernelDefaults", k.name, k.value), k.remedy(false)))
		}
	}
	return out
}

func checkResources(seen observation, o PreflightOptions) (out []Finding) {
	least := int64(minMemoryMiB)
	if o.ControlPlane {
		least = MinControlPlaneMemoryMiB
	}
	if seen.memory < least {
		out = append(out, fatal("Memory", fmt.Sprintf("the host has %s of memory, %d MiB are required", roughly(seen.memory), least), "add memory, or select another host"))
	}
	if cpus := number(first(seen.values, "CPUS")); o.ControlPlane && cpus < MinControlPlaneCPUs {
		out = append(out, fatal("CPUs", "the host has one CPU, a control plane requires two", "add a CPU, or select another host"))
	}
	if need := seen.diskNeeded(o); seen.disk < need {
		out = append(out, fatal("Disk", fmt.Sprintf("/var/lib has %s of free space, %d MiB are required", roughly(seen.disk), need), "free space on the file system of /var/lib, or enlarge it"))
	}
	if free := first(seen.values, "ETC_FREE_KIB"); free != "" && number(free)/1024 < minFreeEtcMiB {
		out = append(out, fatal("Disk", fmt.Sprintf("/etc has less than %d MiB of free space", minFreeEtcMiB), "free space on the file system of /etc"))
	}
	if number(first(seen.values, "RUN_FREE_KIB"))/1024 < minFreeRunMiB {
		out = append(out, fatal("Disk", fmt.Sprintf("/run has less than %d MiB of free space", minFreeRunMiB), "free space in /run"))
	}
	if seen.clock > maxClockOffset || seen.clock < -maxClockOffset {
		out = append(out, fatal("Clock", "the host's clock differs from this machine's by more than "+roughlyTime(seen.clock.Abs()), "synchronize both clocks: timedatectl set-ntp true"))
	}
	if number(first(seen.values, "SWAP")) > 0 {
		out = append(out, warning("Swap", "the host has swap space", "nothing has to be done: Pods do not use it; swapoff -a turns it off"))
	}
	return out
}

// diskNeeded returns the free space that the node needs, in MiB: room to work, the bundle, its unpacked images and the
// archives in between, without what is on the host.
func (o observation) diskNeeded(options PreflightOptions) int64 {
	if !options.ManagedBundle {
		return minFreeDiskMiB
	}
	size := min(options.BundleBytes, math.MaxInt64/4) >> 20
	if options.BundleDigest != "" && first(o.values, "IMPORTED") == options.BundleDigest {
		return 0 // the node has all of it, and uses the space
	}
	need := minFreeDiskMiB + 3*size
	for _, stored := range o.values["STORED"] {
		if digest, kib, _ := strings.Cut(stored, " "); digest == options.BundleDigest {
			need -= min(number(kib)/1024, size)
		}
	}
	if slices.Contains(o.values["PRELOADED"], options.BundleDigest) {
		need -= size
	}
	return need
}

// roughly returns a size in steps, so that a message does not change with each check.
func roughly(mebibytes int64) string {
	switch {
	case mebibytes >= 1024:
		return fmt.Sprintf("about %d GiB", mebibytes/1024)
	case mebibytes >= 128:
		return fmt.Sprintf("about %d MiB", mebibytes/128*128)
	}
	return "less than 128 MiB"
}

// roughlyTime is roughly for the difference of clocks.
func roughlyTime(d time.Duration) string {
	switch {
	case d >= 24*time.Hour:
		return "a day"
	case d >= time.Hour:
		return "an hour"
	case d >= 5*time.Minute:
		return "5 minutes"
	}
	return maxClockOffset.String()
}

// nodePorts and controlPlanePorts are the ports that must be free.
func nodePorts() []int         { return []int{10250, 10248, 10256} }
func controlPlanePorts() []int { return []int{6443, 2379, 2380, 10257, 10259} }

func checkPorts(seen observation, o PreflightOptions) (out []Finding) {
	ports := nodePorts()
	if o.ControlPlane {
		ports = append(ports, controlPlanePorts()...)
	}
	for _, p := range ports {
		if slices.Contains(seen.portsInUse, p) {
			out = append(out, fatal("Ports", fmt.Sprintf("port %d is in use", p), fmt.Sprintf("stop the program that listens on it: ss -ltnp 'sport = :%d'", p)))
		}
	}
	return out
}

// nodeName matches a name that a node can have.
var nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

func checkIdentity(seen observation, o PreflightOptions) (out []Finding) {
	if !nodeName.MatchString(seen.hostname) || seen.hostname == "localhost" || strings.HasPrefix(seen.hostname, "localhost.") {
		out = append(out, fatal("Hostname", fmt.Sprintf("the hostname %q cannot be the name of a node", seen.hostname), "set a lower-case hostname: hostnamectl set-hostname NAME"))
	}
	if other, ok := o.Hostnames[seen.hostname]; ok {
		out = append(out, fatal("Hostname", fmt.Sprintf("host %s of the cluster has the same hostname %q", other, seen.hostname), "set another one: hostnamectl set-hostname NAME"))
	}
	if seen.machineID == "" {
		out = append(out, fatal("MachineID", "the host has no machine ID", "create one: systemd-machine-id-setup"))
	}
	if other, ok := o.MachineIDs[seen.machineID]; ok && seen.machineID != "" {
		out = append(out, fatal("MachineID", fmt.Sprintf("host %s of the cluster has the same machine ID", other), "create another one, and reboot: rm /etc/machine-id; systemd-machine-id-setup"))
	}
	if other, ok := o.ProductUUIDs[seen.productUUID]; ok && seen.productUUID != "" {
		out = append(out, fatal("ProductUUID", fmt.Sprintf("host %s of the cluster has the same product UUID, but kubeadm requires one for each node", other),
			"give the cloned virtual machine a UUID of its own in its hypervisor, or select another host; cat /sys/class/dmi/id/product_uuid shows it"))
	}
	return out
}

func checkSecurity(seen observation, o PreflightOptions) (out []Finding) {
	if seen.selinux == "1" {
		if o.ManagedBundle && !seen.isSet("CHCON") {
			out = append(out, fatal("SELinux", "SELinux is enforcing, and the programs of the bundle cannot be labelled without chcon", "install coreutils with SELinux support, or set SELinux to permissive: setenforce 0"))
		} else {
			out = append(out, warning("SELinux", "SELinux is enforcing", "the programs of the bundle are labelled; Pods that mount directories of the host may need a policy (container-selinux)"))
		}
	}
	if first(seen.values, "APPARMOR") == "Y" && !seen.isSet("APPARMOR_PARSER") {
		out = append(out, warning("AppArmor", "AppArmor is enabled, but apparmor_parser is not installed: containers run without a profile, and Pods that request one may not start",
			"install the package apparmor"))
	}
	for _, f := range seen.values["FIREWALL"] {
		ports := "10250/tcp, 8472/udp and the node ports 30000-32767"
		if o.ControlPlane {
			ports = "6443/tcp, 2379-2380/tcp, " + ports
		}
		if f == "nftables" || f == "iptables" {
			out = append(out, warning("Firewall", "the "+f+" rules of the host reject input that they do not allow", "allow "+ports+" between the hosts, if the rules do not yet"))
			continue
		}
		out = append(out, warning("Firewall", f+" is active and may block the cluster's traffic", "allow "+ports+" between the hosts, or stop it: systemctl disable --now "+f))
	}
	return out
}

func checkInstallation(seen observation, o PreflightOptions) (out []Finding) {
	if seen.isSet("KUBELET") {
		out = append(out, fatal("Kubelet", "a kubelet runs on the host", "the host belongs to another cluster: "+remedyUnrecorded))
	}
	for _, path := range seen.values["CONTENT"] {
		if path == "/var/lib/containerd" {
			if o.ManagedBundle {
				out = append(out, fatal("Content", path+" contains images and containers of another container runtime", "remove them if they are not needed any more: find "+path+" -mindepth 1 -delete"))
			}
			continue
		}
		// Packages of Kubernetes have files in /etc/kubernetes.
		if path != "/etc/kubernetes" || o.ManagedBundle {
			out = append(out, formerNode("Content", path+" contains files of another node"))
		}
	}
	if !o.ManagedBundle {
		for _, program := range []string{"kubelet", "kubeadm", "containerd"} {
			if !slices.Contains(seen.values["PROGRAM"], program) {
				out = append(out, fatal(CheckPrograms, "the host has no "+program, "install it, or let Slipway install a bundle (spec.bundle: Managed)"))
			}
		}
		if seen.isSet("NO_IMAGES") {
			out = append(out, warning("Images", "the host has no container images of Slipway, which the add-ons of a hosted control plane and the Pod network of \"slipway create cluster\" use and which no registry has",
				"import them from the bundle (ctr -n k8s.io images import images/node.tar), or use a KubeadmControlPlane and another Pod network"))
		}
		return out
	}
	for _, socket := range seen.values["SOCKET"] {
		if socket == "/run/containerd/containerd.sock" {
			out = append(out, fatal("ContainerRuntime", "a container runtime that Slipway did not install listens on "+socket, "remove it, or use the programs that are installed (spec.bundle: None)"))
		} else {
			out = append(out, warning("ContainerRuntime", "a container runtime that Slipway did not install listens on "+socket, "it can stay; its containers take memory that the node counts as free"))
		}
	}
	for _, path := range seen.foreign {
		out = append(out, fatal("Installation", path+" exists and was not installed by Slipway", "remove the package or the file, or use the programs that are installed (spec.bundle: None)"))
	}
	return out
}

// checkFormerNode reports what a former node left. Its network would be used for Pods, or its rules for their traffic.
func checkFormerNode(seen observation, _ PreflightOptions) (out []Finding) {
	if seen.isSet("UNRECORDED") {
		out = append(out, formerNode("FormerNode", "the host has a node of Slipway whose record in "+recordPath+" is missing"))
	}
	for _, remains := range seen.values["FORMER"] {
		out = append(out, formerNode("FormerNode", "the host has the "+remains+" of a former node"))
	}
	for _, path := range seen.values["CNI_CONFIG"] {
		if name := strings.ToLower(path); strings.Contains(name, "podman") || strings.Contains(name, "crio") {
			out = append(out, warning("PodNetwork", "Pods use the network in "+path+" until the Pod network of the cluster has written a configuration", "move the file away if nothing needs it"))
			continue
		}
		out = append(out, formerNode("FormerNode", path+" configures the Pod network of a former node"))
	}
	return out
}

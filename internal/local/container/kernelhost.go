package container

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// KernelHost reads and writes the kernel settings of the Docker host: capabilities, limits, routes and addresses. The
// [Engine] uses it when it creates networks and containers. Docker is assumed to run on this host, because nodes reach
// the control planes by the bridge's address.
type KernelHost struct {
	// Proc is where procfs is mounted.
	Proc string
	// Resolvers are files in the format of resolv.conf. Nodes use the first file that lists a name server beyond
	// loopback.
	Resolvers []string
	// Hosts is a file in the format of /etc/hosts; Times are configuration files of time services, which list time
	// servers.
	Hosts string
	Times []string
	// Lookup returns the addresses of a name. Nil: the resolver of this host.
	Lookup func(ctx context.Context, network, name string) ([]netip.Addr, error)
}

// ThisHost returns the KernelHost of this process. systemd-resolved listens on loopback, so its own file is included
// for the upstream servers. [New] and commands call it.
func ThisHost() KernelHost {
	return KernelHost{
		Proc: "/proc", Resolvers: []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}, Hosts: "/etc/hosts",
		Times: []string{"/etc/systemd/timesyncd.conf", "/etc/chrony/chrony.conf", "/etc/chrony.conf", "/etc/ntp.conf", "/etc/ntpsec/ntp.conf"},
	}
}

// NameServers returns the name servers that Pods use for names outside of the cluster: none without internet access,
// else the configured servers, else the host's servers that containers can reach by IPv4. The result is empty if the
// host has only name servers on loopback. [Engine.Create] passes them to the node.
func (h KernelHost) NameServers(internet bool, told []netip.Addr) ([]netip.Addr, error) {
	switch {
	case !internet:
		return nil, nil
	case len(told) > 0:
		return told, nil
	}
	for _, file := range h.Resolvers {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("reading the name servers of the host: %w", err)
		}
		if servers := nameServers(string(text)); len(servers) > 0 {
			return servers, nil
		}
	}
	return nil, nil
}

// nameServers returns the IPv4 name servers in a resolv.conf, without loopback addresses.
func nameServers(text string) []netip.Addr {
	var out []netip.Addr
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(fields[1]); err == nil && a.Is4() && !a.IsLoopback() && !a.IsUnspecified() && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// Processors returns the number of processors of the host, or 0 if it is unknown. `slipway create cluster` and the
// limits of machines use it.
func (h KernelHost) Processors() int {
	text, err := os.ReadFile(filepath.Join(h.Proc, "cpuinfo"))
	if err != nil {
		return 0
	}
	n := 0
	for _, fields := range lines(string(text)) {
		if fields[0] == "processor" {
			n++
		}
	}
	return n
}

// MemoryMiB returns the memory of the host that programs can use without swapping, and all of its memory. 0: unknown.
// `slipway create cluster` compares it with the memory that the nodes need.
func (h KernelHost) MemoryMiB() (available, total int64) {
	text, err := os.ReadFile(filepath.Join(h.Proc, "meminfo"))
	if err != nil {
		return 0, 0
	}
	for _, fields := range lines(string(text)) {
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		switch {
		case err != nil:
		case fields[0] == "MemTotal:":
			total = n >> 10
		case fields[0] == "MemAvailable:":
			available = n >> 10
		}
	}
	return available, total
}

// capabilities lists the names of the capabilities in the order of their bits.
func capabilities() []string {
	return strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
		NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE
		SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL
		SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)
}

// MissingCapabilities returns the capabilities that no process on the host can have, according to the bounding set of
// process 1. A container that requests one of them does not start, and a privileged container requests all.
// [Engine.Create] calls it before it chooses the privileges of a container.
func (h KernelHost) MissingCapabilities() ([]string, error) {
	status, err := os.ReadFile(filepath.Join(h.Proc, "1/status"))
	if err != nil {
		return nil, fmt.Errorf("reading the capabilities of the host: %w", err)
	}
	limit := len(capabilities())
	if highest, err := h.number("sys/kernel/cap_last_cap"); err == nil && highest+1 < limit {
		limit = highest + 1
	}
	return missingCapabilities(string(status), limit)
}

// missingCapabilities returns the names of the first limit capabilities that are not in the bounding set of a process
// status.
func missingCapabilities(status string, limit int) ([]string, error) {
	for _, line := range strings.Split(status, "\n") {
		hex, ok := strings.CutPrefix(line, "CapBnd:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the capabilities of the host: %w", err)
		}
		var out []string
		for bit, name := range capabilities()[:limit] {
			if set&(1<<bit) == 0 {
				out = append(out, name)
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("reading the capabilities of the host: no bounding set")
}

// limit is a setting of the kernel that nodes share with the host.
type limit struct {
	path string
	want int
}

// limits returns the settings that are too low for more than a few nodes: each node's systemd, containerd and kubelet
// watch many files. The values are chosen by Slipway.
func limits() []limit {
	return []limit{
		{"sys/fs/inotify/max_user_instances", 8192},
		{"sys/fs/inotify/max_user_watches", 524288},
	}
}

// RaiseLimits raises the limits that are too low, and returns a note for each that the host refuses. [Engine.Create]
// calls it, and the LocalMachine controller emits the notes as events.
func (h KernelHost) RaiseLimits() []string {
	var notes []string
	for _, l := range limits() {
		now, err := h.number(l.path)
		if err != nil || now >= l.want {
			continue
		}
		if err := os.WriteFile(filepath.Join(h.Proc, l.path), []byte(strconv.Itoa(l.want)), 0); err != nil {
			key := strings.ReplaceAll(strings.TrimPrefix(l.path, "sys/"), "/", ".")
			notes = append(notes, fmt.Sprintf("the host allows only %d for %s, enough for about %d nodes, and refuses to raise it; run: sysctl -w %s=%d",
				now, key, nodesFor(now, l), key, l.want))
		}
	}
	return notes
}

// nodesFor estimates how many nodes a limit allows: a node uses 16 instances or 24000 watches.
func nodesFor(now int, l limit) int {
	if strings.HasSuffix(l.path, "instances") {
		return now / 16
	}
	return now / 24000
}

func (h KernelHost) number(path string) (int, error) {
	b, err := os.ReadFile(filepath.Join(h.Proc, path))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

package managerproc

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// leastLimit is the memory that a manager may use on any host.
const leastLimit = 512 << 20

// DefaultLimit is half of the memory that this process can have: the rest is for etcd, the API server, and the nodes.
func DefaultLimit() (int64, error) {
	total, err := field("/proc/meminfo", "MemTotal:")
	if err != nil {
		return 0, fmt.Errorf("read the memory of this host: %w", err)
	}
	return max(leastLimit, min(total<<10, cgroupLimit("/proc/self/cgroup", "/sys/fs/cgroup", total<<10))/2), nil
}

// OwnLimit is how much memory this process may use: what the process that started it, or its Pod, has set (GOMEMLIMIT),
// otherwise [DefaultLimit]. Zero: it is not known.
func OwnLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	limit, err := DefaultLimit()
	if err != nil {
		return 0
	}
	return limit
}

// cgroupLimit is the least limit of the control groups (version 2) that this process is in.
func cgroupLimit(own, root string, otherwise int64) int64 {
	data, err := os.ReadFile(own)
	if err != nil {
		return otherwise
	}
	limit := otherwise
	for line := range strings.Lines(string(data)) {
		path, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for ; unified && path != "." && path != ""; path = filepath.Dir(path) {
			text, err := os.ReadFile(filepath.Join(root, path, "memory.max"))
			if n, wrong := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && wrong == nil {
				limit = min(limit, n)
			}
			if path == "/" {
				break
			}
		}
	}
	return limit
}

// resident is the memory of a process in bytes.
func resident(pid int) (int64, error) {
	kilobytes, err := field(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
	return kilobytes << 10, err
}

// KilledByKernel counts the processes that the kernel killed for want of memory since the host began.
func KilledByKernel() int64 {
	n, _ := field("/proc/vmstat", "oom_kill") // a kernel that does not count: 0 then and now
	return n
}

// field is the number after a name at the beginning of a line.
func field(path, name string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if f := strings.Fields(string(line)); len(f) > 1 && f[0] == name {
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %s", path, name)
}

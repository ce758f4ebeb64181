package heap

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

// leastLimit is the smallest default memory limit of a manager.
const leastLimit = 512 << 20

// DefaultLimit returns half of the memory that is available to this process, the default limit of the manager of
// `slipway up`. The remainder is for etcd, the API server and nodes.
func DefaultLimit() (int64, error) {
	total, err := field("/proc/meminfo", "MemTotal:")
	if err != nil {
		return 0, fmt.Errorf("read the memory of this host: %w", err)
	}
	return max(leastLimit, min(total<<10, cgroupLimit("/proc/self/cgroup", "/sys/fs/cgroup", total<<10))/2), nil
}

// OwnLimit returns the memory limit of this process: GOMEMLIMIT, as set by the parent process or the Pod, or
// [DefaultLimit]. Zero means unknown. The manager derives the limits for responses of workload clusters from it.
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

// cgroupLimit returns the smallest limit of the control groups (version 2) of this process.
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

// Resident returns the resident memory of a process, in bytes, or zero if it has exited. `slipway status` shows it, and
// `slipway up` enforces the limit of its manager with it.
func Resident(pid int) int64 {
	kilobytes, err := field(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// KilledByKernel returns the number of processes that the kernel has killed because of memory shortage since
// the host was started. Package childproc compares two results to detect that the kernel killed its child process.
func KilledByKernel() int64 {
	n, _ := field("/proc/vmstat", "oom_kill") // always 0 on kernels without this counter
	return n
}

// field returns the number after a name at the beginning of a line.
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

package procfs

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Memory is the resident memory of a process in bytes.
type Memory struct {
	Resident  int64 // all of it
	Anonymous int64 // heap and stacks: what no file backs
	File      int64 // pages of files, of the program's own binary first of all; the kernel can drop them
	// Share is Resident with a part alone of each page that several processes use: all shares together are what the processes take.
	Share int64
}

// ReadMemory reads the memory of one process of proc, the file system at /proc.
func ReadMemory(proc fs.FS, pid int) (Memory, error) {
	data, err := fs.ReadFile(proc, strconv.Itoa(pid)+"/status")
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	values, err := kilobytes(data, "VmRSS", "RssAnon", "RssFile")
	if err != nil {
		return Memory{}, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	maps, err := fs.ReadFile(proc, strconv.Itoa(pid)+"/smaps_rollup")
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	share, err := kilobytes(maps, "Pss")
	if err != nil {
		return Memory{}, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	return Memory{Resident: values[0], Anonymous: values[1], File: values[2], Share: share[0]}, nil
}

// Add returns both together.
func (m Memory) Add(o Memory) Memory {
	return Memory{Resident: m.Resident + o.Resident, Anonymous: m.Anonymous + o.Anonymous, File: m.File + o.File, Share: m.Share + o.Share}
}

// kilobytes finds lines like "VmRSS:   1234 kB" and returns bytes, in the order of the names.
func kilobytes(data []byte, names ...string) ([]int64, error) {
	found := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		number, kilo := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		if !kilo {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64); err == nil {
			found[name] = n << 10
		}
	}
	out := make([]int64, len(names))
	for i, name := range names {
		n, ok := found[name]
		if !ok {
			return nil, fmt.Errorf("there is no line %s in kB", name)
		}
		out[i] = n
	}
	return out, nil
}

// Host is what the kernel says of the machine.
type Host struct {
	Memory int64      // bytes
	Kernel string     // release
	Load   [3]float64 // processes that wanted to run, over 1, 5 and 15 minutes
}

// ReadHost reads the machine from proc, the file system at /proc.
func ReadHost(proc fs.FS) (Host, error) {
	var h Host
	memory, err := fs.ReadFile(proc, "meminfo")
	if err != nil {
		return h, fmt.Errorf("read the machine's memory: %w", err)
	}
	total, err := kilobytes(memory, "MemTotal")
	if err != nil {
		return h, fmt.Errorf("memory of the machine: %w", err)
	}
	h.Memory = total[0]
	release, err := fs.ReadFile(proc, "sys/kernel/osrelease")
	if err != nil {
		return h, fmt.Errorf("read the kernel's release: %w", err)
	}
	h.Kernel = strings.TrimSpace(string(release))
	load, err := fs.ReadFile(proc, "loadavg")
	if err != nil {
		return h, fmt.Errorf("read the load: %w", err)
	}
	fields := strings.Fields(string(load))
	if len(fields) < len(h.Load) {
		return h, fmt.Errorf("load: want three numbers in %q", load)
	}
	for i := range h.Load {
		if h.Load[i], err = strconv.ParseFloat(fields[i], 64); err != nil {
			return h, fmt.Errorf("load: %w", err)
		}
	}
	return h, nil
}

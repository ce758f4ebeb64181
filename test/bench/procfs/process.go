package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of CPU time in /proc: USER_HZ is 100 on every architecture that Go compiles for.
const tick = 10 * time.Millisecond

// Process is one process at one moment.
type Process struct {
	PID, Parent int
	CPU         time.Duration // user and system time since it began, without its children's; to 10 ms
	Pages       int64         // resident memory, in pages
}

// Processes are all processes of a moment, by process id.
type Processes map[int]Process

// Read reads the processes of proc, the file system at /proc. What ends meanwhile is left out.
func Read(proc fs.FS) (Processes, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	out := Processes{}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		data, err := fs.ReadFile(proc, e.Name()+"/stat")
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read a process: %w", err)
		}
		p, err := ParseStat(data)
		if err != nil {
			return nil, fmt.Errorf("process %s: %w", e.Name(), err)
		}
		out[p.PID] = p
	}
	return out, nil
}

// gone reports whether a process ended before or while its file was read.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// ParseStat reads /proc/PID/stat (proc_pid_stat(5)). The name of the program stands in parentheses and may itself hold
// spaces and parentheses.
func ParseStat(data []byte) (Process, error) {
	open, shut := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || shut < open {
		return Process{}, fmt.Errorf("stat has no name in parentheses: %q", data)
	}
	pid := strings.TrimSpace(string(data[:open]))
	fields := strings.Fields(string(data[shut+1:])) // from the third field, the state, on
	const parent, user, system, resident = 1, 11, 12, 21
	if len(fields) <= resident {
		return Process{}, fmt.Errorf("stat has %d fields after the name, want more than %d", len(fields), resident)
	}
	var n [5]int64
	for i, text := range []string{pid, fields[parent], fields[user], fields[system], fields[resident]} {
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Process{}, fmt.Errorf("stat: %w", err)
		}
		n[i] = value
	}
	return Process{PID: int(n[0]), Parent: int(n[1]), CPU: time.Duration(n[2]+n[3]) * tick, Pages: n[4]}, nil
}

// Tree is root and everything below it, root first, the others by process id; empty where root is gone.
func (p Processes) Tree(root int) []Process {
	if _, ok := p[root]; !ok {
		return nil
	}
	children := map[int][]int{}
	for _, one := range p {
		children[one.Parent] = append(children[one.Parent], one.PID)
	}
	out := []Process{p[root]}
	for i := 0; i < len(out); i++ {
		below := children[out[i].PID]
		slices.Sort(below)
		for _, pid := range below {
			if pid != root {
				out = append(out, p[pid])
			}
		}
	}
	return out
}

// Arguments are the command line of a process; nil where it is gone.
func Arguments(proc fs.FS, pid int) ([]string, error) {
	data, err := fs.ReadFile(proc, strconv.Itoa(pid)+"/cmdline")
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the command line of process %d: %w", pid, err)
	}
	return strings.Split(strings.TrimRight(string(data), "\x00"), "\x00"), nil
}

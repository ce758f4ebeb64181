package freebind

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Holder names the process of this host that listens at an address, ADDRESS:PORT, in words that follow "is taken by": its number and program and,
// if it is a slipway, its data directory. The processes of other users are not visible to users other than root.
func Holder(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return "another process"
	}
	wanted := sockets(a)
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		files, _ := filepath.Glob(p + "/fd/*")
		for _, f := range files {
			target, err := os.Readlink(f)
			if err == nil && slices.Contains(wanted, target) {
				return describe(p)
			}
		}
	}
	return "another process"
}

// sockets are the names, as the links of open files have them, of the sockets that listen at an address or at all addresses.
func sockets(a netip.AddrPort) (names []string) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			f := strings.Fields(string(line))
			const listening = "0A"
			if len(f) > 9 && f[3] == listening && listensAt(f[1], a) {
				names = append(names, "socket:["+f[9]+"]")
			}
		}
	}
	return names
}

// listensAt reports whether a local address of the kernel's table, ADDRESS:PORT in hexadecimal with the words of the address in the order of the
// host, is the address or all addresses.
func listensAt(local string, a netip.AddrPort) bool {
	words, port, _ := strings.Cut(local, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil || uint16(n) != a.Port() {
		return false
	}
	if strings.Trim(words, "0") == "" {
		return true
	}
	var want strings.Builder
	raw := a.Addr().Unmap().AsSlice()
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
		fmt.Fprintf(&want, "%X", word)
	}
	return strings.HasSuffix(words, want.String())
}

// describe names a process, whose folder in /proc this is.
func describe(p string) string {
	args := arguments(p)
	if len(args) == 0 {
		return "process " + filepath.Base(p)
	}
	name := filepath.Base(args[0])
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		name += " " + args[1]
	}
	text := fmt.Sprintf("process %s (%s)", filepath.Base(p), name)
	if dir := dataDirectory(p); dir != "" {
		text += " of data directory " + dir
	}
	return text
}

// dataDirectory is the data directory of a slipway or of the one that started it; empty: the process is none.
func dataDirectory(p string) string {
	const generations = 3 // the manager is a child of the management cluster, which is one of its supervisor
	for range generations {
		args := arguments(p)
		if i := slices.Index(args, "--data-dir"); i >= 0 && i+1 < len(args) {
			return args[i+1]
		}
		for _, a := range args {
			if dir, ok := strings.CutPrefix(a, "--data-dir="); ok {
				return dir
			}
		}
		data, err := os.ReadFile(p + "/stat")
		end := bytes.LastIndexByte(data, ')') // of the name, which may contain anything
		if err != nil || end < 0 {
			return ""
		}
		fields := strings.Fields(string(data[end+1:]))
		if len(fields) < 2 || fields[1] == "0" || fields[1] == "1" {
			return ""
		}
		p = "/proc/" + fields[1]
	}
	return ""
}

func arguments(p string) []string {
	data, err := os.ReadFile(p + "/cmdline")
	if err != nil || len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}

package listeners

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

// AddressHolder describes the process of this host that listens on ADDRESS:PORT, in words that follow "is taken by":
// its PID, its program and, if it is a slipway, its data directory. Package controlplane adds this to the error if
// `slipway up` cannot listen. Only root can identify the processes of other users.
func AddressHolder(address string) string {
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

// sockets returns the names of the sockets that listen on the address or on all addresses, in the format of the links
// in /proc/PID/fd.
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

// listensAt reports whether a local address in the kernel's table equals the address or stands for all addresses. The
// table has the format ADDRESS:PORT in hexadecimal, with the 32-bit words of the address in host byte order.
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

// describe describes the process with this directory in /proc.
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

// dataDirectory returns the data directory of a slipway process, from the arguments of the process or its
// ancestors, and an empty string for other processes.
func dataDirectory(p string) string {
	const generations = 3 // the manager is a child of the management cluster, which is a child of its supervisor
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
		end := bytes.LastIndexByte(data, ')') // the end of the name, which may contain any character
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

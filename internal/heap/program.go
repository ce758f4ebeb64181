package heap

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgram drops the resident pages of the program file from this process; it is called after the start and after a
// busy phase. Pages that are needed again are read from the page cache; pages that only the start needed are not. As a
// result, the resident memory of the process shows its real need, and the kernel, which prefers to evict unmapped
// pages, has more pages to evict.
func dropProgram() {
	if exe, err := os.Readlink("/proc/self/exe"); err == nil {
		drop(exe)
	}
}

// drop drops the resident, unmodified pages of a file from this process.
func drop(file string) {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	for _, m := range clean(smaps, file) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED) // if the kernel refuses, the pages remain
	}
}

// mapping is an address range, from inclusive to exclusive.
type mapping struct{ from, to uintptr }

// clean returns the mappings of a file in smaps (proc_pid_smaps(5)) that are read-only and have no private copies of
// pages. Only such pages have the same content when they are read from the file again.
func clean(smaps io.Reader, file string) []mapping {
	var found []mapping
	candidate := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0:
		case !strings.HasSuffix(fields[0], ":"):
			var m mapping
			if m, candidate = parseMapping(lines.Text(), file); candidate {
				found = append(found, m)
			}
		case candidate && isOwn(fields[0]) && (len(fields) < 2 || fields[1] != "0"):
			found, candidate = found[:len(found)-1], false
		}
	}
	return found
}

// isOwn reports whether a field counts private pages, whose content can differ from the file. Dirty pages do not count:
// the pages of a file that was just written are dirty, but still belong to the file.
func isOwn(field string) bool { return field == "Anonymous:" || field == "Swap:" }

// parseMapping returns the mapping in a line of smaps, and false unless it is a read-only mapping of the file.
func parseMapping(line, file string) (mapping, bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || !strings.HasSuffix(line, " "+file) || !strings.HasPrefix(fields[1], "r-") {
		return mapping{}, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	first, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return mapping{}, false
	}
	last, err := strconv.ParseUint(to, 16, 64)
	if err != nil || last <= first {
		return mapping{}, false
	}
	return mapping{uintptr(first), uintptr(last)}, true
}

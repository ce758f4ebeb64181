package heap

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgram lets go of the pages of the program's file that this process has in memory. What it still needs comes back from the
// kernel's cache at the next use; what only its start or much work needed does not. Then the memory of a process tells what it needs,
// and the kernel, which rather drops a page that no process has, has more to choose from.
func dropProgram() {
	if exe, err := os.Readlink("/proc/self/exe"); err == nil {
		drop(exe)
	}
}

// drop lets go of the pages of a file that this process has in memory and did not change.
func drop(file string) {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	for _, m := range clean(smaps, file) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED) // refused: the pages stay
	}
}

// mapping is a part of the address space, from one address up to another.
type mapping struct{ from, to uintptr }

// clean is the mappings of a file in smaps (proc_pid_smaps(5)) that the process cannot write, and of which it has no page that
// differs from the file: only those are the same when they were dropped.
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
			if m, candidate = ofFile(lines.Text(), file); candidate {
				found = append(found, m)
			}
		case candidate && isOwn(fields[0]) && (len(fields) < 2 || fields[1] != "0"):
			found, candidate = found[:len(found)-1], false
		}
	}
	return found
}

// isOwn reports whether a field counts pages that are not those of the file any more. Pages of a file that was just written are
// dirty, and the file's all the same.
func isOwn(field string) bool { return field == "Anonymous:" || field == "Swap:" }

// ofFile is the mapping that a line of smaps begins, if it is one of the file that is not written.
func ofFile(line, file string) (mapping, bool) {
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

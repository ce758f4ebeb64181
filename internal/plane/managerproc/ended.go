package managerproc

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
)

// ending is what is known of the end of a manager's process.
type ending struct {
	state *os.ProcessState
	// reported is the message of the error that it ended with, if it said so.
	reported string
	// overLimit: it was killed because it used more memory than limit bytes.
	overLimit bool
	limit     int64
	// outOfMemory: the kernel killed something for want of memory meanwhile.
	outOfMemory bool
	lastWords   string // why it crashed, as it said itself
	suspects    []Subject
}

// describe says how the manager ended, and whether what it was working on may be the cause: a person who kills it is not
// the fault of an object.
func (e ending) describe() (how string, objects bool) {
	status, ok := e.state.Sys().(syscall.WaitStatus)
	switch {
	case e.overLimit:
		return fmt.Sprintf("it was killed because it used more memory than its limit of %d MiB (manager.memoryMiB)", e.limit>>20), true
	case e.reported != "":
		return "it ended with an error: " + e.reported, false
	case ok && status.Signaled() && status.Signal() == syscall.SIGKILL && e.outOfMemory:
		return "the kernel killed it because this host is out of memory", true
	case ok && status.Signaled() && ends(status.Signal()):
		return fmt.Sprintf("it was ended from outside (%s)", e.state), false
	case ok && status.Signaled():
		return fmt.Sprintf("it crashed (%s)", e.state), true
	case e.state.ExitCode() == 2: // that of the Go runtime
		return "it crashed: " + cmp.Or(e.lastWords, e.state.String()), true
	}
	return fmt.Sprintf("it ended (%s)", e.state), false
}

// ends reports whether people end processes with the signal.
func ends(s syscall.Signal) bool {
	return s == syscall.SIGKILL || s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGHUP
}

// log passes what the manager writes on, and remembers the line of a crash that says why.
type log struct {
	to io.Writer

	mu        sync.Mutex
	line      []byte // so far
	lastWords string
}

// Write implements io.Writer.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0 && l.lastWords == ""; {
		before, after, whole := bytes.Cut(rest, []byte("\n"))
		if room := 256 - len(l.line); room > 0 {
			l.line = append(l.line, before[:min(room, len(before))]...)
		}
		rest = after
		if !whole {
			break
		}
		for _, prefix := range []string{"panic: ", "fatal error: ", "runtime: "} {
			if strings.HasPrefix(string(l.line), prefix) {
				l.lastWords = string(l.line)
			}
		}
		l.line = l.line[:0]
	}
	return l.to.Write(p)
}

func (l *log) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastWords
}

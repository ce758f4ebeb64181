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

// exitState describes the exit of a manager process, for [Run] in the process that supervises it.
type exitState struct {
	state *os.ProcessState
	// reported is the message of the error that the manager reported, if any.
	reported string
	// overLimit means that it was killed because it used more memory than limit bytes.
	overLimit bool
	limit     int64
	// outOfMemory means that the kernel killed it because of memory shortage.
	outOfMemory bool
	crashLine   string // the message of its crash
	suspects    []Subject
}

// describe returns how the manager exited, to complete "the manager exited:", and whether its work may be the cause. A
// manager that was killed by hand does not count as a failure of an object. assess (run.go) calls it.
func (e exitState) describe() (how string, objects bool) {
	status, ok := e.state.Sys().(syscall.WaitStatus)
	switch {
	case e.overLimit:
		return fmt.Sprintf("it was killed because it used more memory than its limit of %d MiB (manager.memoryMiB)", e.limit>>20), true
	case e.reported != "":
		return "it failed with an error: " + e.reported, false
	case e.outOfMemory:
		return "the kernel killed it because this host is out of memory", true
	case ok && status.Signaled() && ends(status.Signal()):
		return fmt.Sprintf("another process stopped it (%s)", e.state), false
	case ok && status.Signaled():
		return fmt.Sprintf("it crashed (%s)", e.state), true
	case e.state.ExitCode() == 2: // the exit code of Go runtime crashes
		return "it crashed: " + cmp.Or(e.crashLine, e.state.String()), true
	}
	return fmt.Sprintf("it exited (%s)", e.state), false
}

// ends reports whether the signal is commonly used to end processes by hand.
func ends(s syscall.Signal) bool {
	return s == syscall.SIGKILL || s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGHUP
}

// log forwards the output of the manager to the log of `slipway up`, and records the line with the cause of a crash.
// launch (launch.go) creates one for each process.
type log struct {
	to io.Writer

	mu        sync.Mutex
	line      []byte // incomplete line
	lastWords string
}

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

func (l *log) crashLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastWords
}

package up

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

// reportLine is one line of the report that a background process of `slipway up -d` writes to its parent through a
// pipe. Both run the same program, so the fields may change. A background process sends lines with [report], readReport
// reads them for `slipway up -d`, and the supervisor forwards them (supervise.go).
type reportLine struct {
	Step  string `json:"step,omitempty"`
	Ready bool   `json:"ready,omitempty"`
	// Ended describes how the process ended, if it reported no error.
	Ended string `json:"ended,omitempty"`
	// Fields of an error. Message is empty if there is none.
	Kind    fault.Kind `json:"kind,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
}

// endedWithout describes how a process ended that reported no error.
type endedWithout string

// Error implements error.
func (e endedWithout) Error() string { return string(e) }

// readReport prints the steps of a report until the process is ready or has failed. `slipway up -d` calls it
// (detach.go).
func readReport(e term.Env, lines *bufio.Scanner) (ready bool, err error) {
	for lines.Scan() {
		var m reportLine
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return false, fmt.Errorf("report of the background process: %w", err)
		}
		switch {
		case m.Ready:
			return true, nil
		case m.Message != "":
			return false, fault.New(m.Kind, m.Reason, "%s", m.Message)
		case m.Ended != "":
			return false, endedWithout(m.Ended)
		default:
			_, _ = fmt.Fprintln(e.Err, m.Step)
		}
	}
	return false, lines.Err()
}

// report is the writing end of the background process's report. The supervisor and its child process have one each
// ([openReport]). It is safe for concurrent use.
type report struct {
	mu   sync.Mutex
	file *os.File // nil: the parent process does not need it any more
}

// openReport opens the report of this process. flags.run calls it with the flag --report-fd. The descriptor is closed
// when the process starts others, because an open one would prevent the end of the report.
func openReport(fd int) *report {
	syscall.CloseOnExec(fd)
	return &report{file: os.NewFile(uintptr(fd), "report")}
}

func (r *report) step(step string) { r.send(reportLine{Step: step}) }

// ready ends the wait of the command. The supervisor continues to read the report.
func (r *report) ready() { r.send(reportLine{Ready: true}) }

// finish reports err and returns it. flags.run calls it at the end of the process.
func (r *report) finish(err error) error {
	if err != nil && !errors.Is(err, context.Canceled) {
		m := reportLine{Kind: fault.KindOf(err), Message: fault.UserMessage(err)}
		if f := fault.As(err); f != nil {
			m.Reason = f.Reason
		}
		r.send(m)
	}
	r.close()
	return err
}

// send ignores errors, because the parent process may be gone.
func (r *report) send(m reportLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return
	}
	_ = json.NewEncoder(r.file).Encode(m)
}

func (r *report) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}

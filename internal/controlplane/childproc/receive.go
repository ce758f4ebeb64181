package childproc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/slipwayhq/slipway/internal/controlplane/listeners"
)

// Protocol is the revision of the protocol between parent and child. A program with another revision is rejected. Each
// change of the lines or the request must increase it, because such programs contain an earlier version of this file.
const Protocol = 1

// File descriptors of the child after the standard ones.
const (
	reportFD        = 3
	firstListenerFD = 4
)

// Lines of the protocol: the child reports configured and ready, and waits for run in between.
const (
	configured = "configured"
	run        = "run"
	ready      = "ready"
)

// request is the first line that the child reads. [Launch] writes it.
type request struct {
	Protocol  int `json:"protocol"`
	Listeners int `json:"listeners"`
	Config    any `json:"config"`
}

// Parent is the connection to the process that started this one.
type Parent struct {
	lines  *bufio.Reader
	report io.Writer
}

// Receive reads the configuration and the listener of the parent, in the program of another Kubernetes version
// (internal/controlplane/program). The argument in is standard input.
func Receive(in io.Reader, config any) (*Parent, net.Listener, error) {
	p := &Parent{lines: bufio.NewReader(in), report: os.NewFile(reportFD, "report")}
	first, err := p.lines.ReadBytes('\n')
	if err != nil {
		return nil, nil, fmt.Errorf("read the configuration: %w; slipway starts this program", err)
	}
	r := request{Config: config}
	if err := json.Unmarshal(first, &r); err != nil {
		return nil, nil, fmt.Errorf("read the configuration: %w", err)
	}
	if r.Protocol != Protocol {
		return nil, nil, fmt.Errorf("slipway uses revision %d of the protocol and this program %d: remove the Kubernetes version and add it again", r.Protocol, Protocol)
	}
	l, err := inherited(r.Listeners)
	return p, l, err
}

// AwaitRun reports that the configuration is accepted and returns when this process may run. From then on,
// this process exits when the parent does. The program calls it after it has parsed the configuration.
func (p *Parent) AwaitRun() error {
	_, _ = fmt.Fprintln(p.report, configured)
	if next, err := p.lines.ReadString('\n'); err != nil || next != run+"\n" {
		return errors.New("the parent process exited before it started this one")
	}
	go func() {
		_, _ = io.Copy(io.Discard, p.lines)
		os.Exit(1) // the parent has exited
	}()
	return nil
}

// Ready reports that the components of this process are ready. The program calls it.
func (p *Parent) Ready() { _, _ = fmt.Fprintln(p.report, ready) }

// inherited merges the n inherited listeners into one.
func inherited(n int) (net.Listener, error) {
	var all net.Listener
	for i := range n {
		f := os.NewFile(uintptr(firstListenerFD+i), "listener")
		l, err := net.FileListener(f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("inherited listener %d: %w", i, err)
		}
		if all == nil {
			all = l
			continue
		}
		all = listeners.Merge(all, l)
	}
	if all == nil {
		return nil, errors.New("no listener was inherited")
	}
	return all, nil
}

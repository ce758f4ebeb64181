package childproc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// endWithin is how long a child may take to stop before it is killed.
const endWithin = 12 * time.Second

// Child is the program of another Kubernetes version (internal/controlplane/program), as a process that is configured
// and not running its components yet.
type Child struct {
	*Process
	in     io.WriteCloser
	report *bufio.Reader
}

// Launch starts the program of another Kubernetes version for package controlplane, passes the listeners to it, and
// returns when it accepts the configuration.
func Launch(ctx context.Context, program string, config any, listeners []*net.TCPListener) (*Child, error) {
	text, err := json.Marshal(request{Protocol: Protocol, Listeners: len(listeners), Config: config})
	if err != nil {
		return nil, err
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for _, l := range listeners {
		f, err := l.File()
		if err != nil {
			return nil, fmt.Errorf("pass a listener to %s: %w", pathOf(program), err)
		}
		files = append(files, f)
	}
	c, err := startChild(program, files)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", pathOf(program), err)
	}
	defer context.AfterFunc(ctx, c.shutDown)()
	_, _ = c.in.Write(append(text, '\n')) // if the child cannot read it, it has exited, and the report ends
	if !c.reports(configured) {
		c.shutDown()
		return nil, fmt.Errorf("%s does not accept its configuration: %w", pathOf(program), c.exitError())
	}
	return c, nil
}

func startChild(program string, listeners []*os.File) (*Child, error) {
	cmd := exec.Command(program)
	cmd.Args = []string{pathOf(program)}
	cmd.ExtraFiles = listeners
	// Wrapped, so that the child does not inherit the files: this process may replace its log file.
	cmd.Stdout, cmd.Stderr = struct{ io.Writer }{os.Stderr}, struct{ io.Writer }{os.Stderr}
	cmd.WaitDelay = endWithin
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p, report, err := StartWithReport(cmd, Bound, reportFD)
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Done()
		_ = report.Close()
	}()
	return &Child{Process: p, in: in, report: bufio.NewReader(report)}, nil
}

// pathOf returns the path of the program for messages. It resolves a path that refers to an open file of this
// process.
func pathOf(program string) string {
	if !strings.HasPrefix(program, "/proc/self/fd/") {
		return program
	}
	path, err := os.Readlink(program)
	if err != nil {
		return program
	}
	return path
}

func (c *Child) exitError() error { return fmt.Errorf("it exited with %s", c.State()) }

// reports waits for a line of the child. It returns false if the child exits before.
func (c *Child) reports(line string) bool {
	got, err := c.report.ReadString('\n')
	return err == nil && strings.TrimSpace(got) == line
}

// Run lets the child run until ctx ends or the child exits. It returns nil if ctx ended. It calls isReady
// when the child is ready.
func (c *Child) Run(ctx context.Context, isReady func()) error {
	_, _ = io.WriteString(c.in, run+"\n")
	defer context.AfterFunc(ctx, c.shutDown)()
	go func() {
		if c.reports(ready) {
			isReady()
		}
	}()
	<-c.Done()
	if ctx.Err() != nil {
		return nil
	}
	return c.exitError()
}

// shutDown returns when the child has exited.
func (c *Child) shutDown() { _ = c.Stop(context.Background(), endWithin) }

// Close stops a child that is not running.
func (c *Child) Close() {
	_ = c.in.Close()
	c.shutDown()
}

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
	"runtime"
	"strings"
	"syscall"
	"time"
)

// endWithin is how long a child may take to stop before it is killed.
const endWithin = 12 * time.Second

// Child is a process that is configured and not running yet.
type Child struct {
	in     io.WriteCloser
	report *bufio.Reader
	stop   context.CancelFunc
	pid    int
	ended  chan struct{}
	err    error // error of the exit; read only after ended is closed
}

// Launch starts the program, passes the listeners to it, and returns when it accepts the configuration.
func Launch(ctx context.Context, program string, config any, listeners []*net.TCPListener) (*Child, error) {
	text, err := json.Marshal(request{Protocol: Protocol, Listeners: len(listeners), Config: config})
	if err != nil {
		return nil, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files := []*os.File{writer}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for _, l := range listeners {
		f, err := l.File()
		if err != nil {
			return nil, fmt.Errorf("hand a listener over: %w", err)
		}
		files = append(files, f)
	}
	c := &Child{report: bufio.NewReader(reader), ended: make(chan struct{})}
	if err := c.start(program, files); err != nil {
		_ = reader.Close()
		return nil, err
	}
	go func() {
		<-c.ended
		_ = reader.Close()
	}()
	defer context.AfterFunc(ctx, c.stop)()
	_, _ = c.in.Write(append(text, '\n')) // if the child cannot read it, it has exited, and the report ends
	if !c.reports(configured) {
		c.stop()
		<-c.ended
		return nil, fmt.Errorf("%s does not accept its configuration: %w", pathOf(program), c.err)
	}
	return c, nil
}

func (c *Child) start(program string, files []*os.File) (err error) {
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = []string{pathOf(program)}
	cmd.ExtraFiles = files
	// Wrapped, so that the child does not inherit the files: this process may replace its log file.
	cmd.Stdout, cmd.Stderr = struct{ io.Writer }{os.Stderr}, struct{ io.Writer }{os.Stderr}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endWithin
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if c.in, err = cmd.StdinPipe(); err != nil {
		stop()
		return err
	}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child when the thread that started it ends, therefore the thread is locked
		// while the child runs.
		runtime.LockOSThread()
		defer close(c.ended)
		err := cmd.Start()
		if err == nil {
			c.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			c.err = ending(cmd.Wait())
		}
	}()
	c.stop = stop
	if err := <-started; err != nil {
		stop()
		return fmt.Errorf("start %s: %w", pathOf(program), err)
	}
	return nil
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

func ending(err error) error {
	if err == nil {
		return fmt.Errorf("it ended with exit status 0")
	}
	return fmt.Errorf("it ended with %w", err)
}

// reports waits for a line of the child. It returns false if the child exits before.
func (c *Child) reports(line string) bool {
	got, err := c.report.ReadString('\n')
	return err == nil && strings.TrimSpace(got) == line
}

// Run lets the child run until ctx ends or the child exits. It returns nil if ctx ended. It calls isReady
// when the child is ready.
func (c *Child) Run(ctx context.Context, isReady func()) error {
	_, _ = io.WriteString(c.in, run+"\n")
	defer context.AfterFunc(ctx, c.stop)()
	go func() {
		if c.reports(ready) {
			isReady()
		}
	}()
	<-c.ended
	if ctx.Err() != nil {
		return nil
	}
	return c.err
}

// PID returns the process ID of the child.
func (c *Child) PID() int { return c.pid }

// Close stops a child that is not running.
func (c *Child) Close() {
	_ = c.in.Close()
	c.stop()
	<-c.ended
}

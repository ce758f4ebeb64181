package remote

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/redact"
)

//go:embed scripts/*.sh
var scripts embed.FS

const (
	// maxOutput and maxErrors limit what is read from a script. The rest is discarded.
	maxOutput = 1 << 20
	maxErrors = 16 << 10
	// defaultTimeout limits a script that has no limit of its own.
	defaultTimeout = time.Minute
	// shownErrors is the part of a script's error output that becomes part of an error.
	shownErrors = 512
)

// Host is a host in a [Pool]. Its methods may be called at the same time.
type Host struct {
	pool   *Pool
	target Target
}

// Address returns the address of the host as the target has it.
func (h *Host) Address() string { return h.target.Address }

// errNoSession is the cause of an error if no session could be opened, so that nothing has run.
var errNoSession = errors.New("opening a session")

// use calls f with an open connection whose user is root. A slot of the pool is taken meanwhile. If the connection
// turns out to be lost before anything has run, f is called once more with a new one.
func (h *Host) use(ctx context.Context, f func(context.Context, *link) error) error {
	select {
	case h.pool.slots <- struct{}{}:
	case <-ctx.Done():
		return unreachable(h.target, ctx.Err())
	}
	defer func() { <-h.pool.slots }()
	err := h.useOnce(ctx, f)
	if errors.Is(err, errNoSession) && ctx.Err() == nil {
		err = h.useOnce(ctx, f)
	}
	return err
}

func (h *Host) useOnce(ctx context.Context, f func(context.Context, *link) error) error {
	l, err := h.pool.connect(ctx, h.target)
	if err != nil {
		return err
	}
	defer h.pool.release(l)
	if err := h.checkPrivileges(ctx, l); err != nil {
		return err
	}
	return f(ctx, l)
}

// checkPrivileges checks once for each connection that scripts run as root.
func (h *Host) checkPrivileges(ctx context.Context, l *link) error {
	l.transfer.Lock()
	defer l.transfer.Unlock()
	if l.privileged {
		return nil
	}
	out, err := h.exec(ctx, l, call{script: "privileges"})
	var failed *scriptError
	switch {
	case errors.As(err, &failed) && h.target.Sudo, err == nil && strings.TrimSpace(string(out)) != "0" && h.target.Sudo:
		return fault.New(fault.Invalid, reasonNotRoot,
			"user %s of host %s cannot become root with \"sudo -n\"; allow it without a password in /etc/sudoers.d: \"%[1]s ALL=(ALL) NOPASSWD: ALL\"", h.target.User, h.target.Address).From(err)
	case err != nil:
		return err
	case strings.TrimSpace(string(out)) != "0":
		return fault.New(fault.Invalid, reasonNotRoot, "user %s of host %s is not root; use root, or let the user become root with sudo and set spec.sudo to Always", h.target.User, h.target.Address)
	}
	l.privileged = true
	return nil
}

// parameter is a NAME=value line for a script.
type parameter struct{ name, value string }

// call is a script to run.
type call struct {
	// script is the name of a file in scripts without its extension.
	script     string
	parameters []parameter
	// input follows the parameters on standard input.
	input   io.Reader
	timeout time.Duration
}

// scriptError is the failure of a script.
type scriptError struct {
	script string
	code   int
	errors string
}

// Error implements error.
func (e *scriptError) Error() string {
	return fmt.Sprintf("%s ended with exit status %d: %s", e.script, e.code, e.errors)
}

// run runs a script and returns its output, at most maxOutput bytes. A script that fails is a *scriptError, a lost
// connection a fault of kind Unreachable.
func (h *Host) run(ctx context.Context, c call) (out []byte, err error) {
	err = h.use(ctx, func(ctx context.Context, l *link) error {
		out, err = h.exec(ctx, l, c)
		return err
	})
	return out, err
}

// exec runs a script in a session of a connection.
func (h *Host) exec(ctx context.Context, l *link, c call) ([]byte, error) {
	command, err := h.command(c.script)
	if err != nil {
		return nil, err
	}
	input, err := standardInput(c)
	if err != nil {
		return nil, err
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	session, done, err := h.session(ctx, l)
	if err != nil {
		return nil, err
	}
	defer done()
	stdout, stderr := &limitedBuffer{most: maxOutput}, &limitedBuffer{most: maxErrors}
	session.Stdout, session.Stderr = stdout, stderr
	err = runWithInput(session, command, input)
	var exit *ssh.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, unreachable(h.target, fmt.Errorf("running %s: %w", c.script, ctx.Err()))
	case errors.As(err, &exit) && exit.Signal() == "":
		return stdout.Bytes(), &scriptError{script: c.script, code: exit.ExitStatus(), errors: shown(stderr.Bytes())}
	case err != nil:
		return nil, unreachable(h.target, fmt.Errorf("running %s: %w", c.script, err))
	}
	return stdout.Bytes(), nil
}

// runWithInput runs a command. A command may end before it has read its input.
func runWithInput(session *ssh.Session, command string, input io.Reader) error {
	in, err := session.StdinPipe()
	if err != nil {
		return err
	}
	if err := session.Start(command); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(in, input)
		_ = in.Close()
	}()
	return session.Wait()
}

// shown returns the end of a text from a host, safe for a terminal.
func shown(text []byte) string { return redact.Escape(redact.Tail(string(text), shownErrors)) }

// session opens a session that ends with the context.
func (h *Host) session(ctx context.Context, l *link) (*ssh.Session, func(), error) {
	select {
	case l.sessions <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, unreachable(h.target, ctx.Err())
	}
	opened := make(chan error, 1)
	var session *ssh.Session
	go func() {
		var err error
		session, err = l.client.NewSession()
		opened <- err
	}()
	var err error
	select {
	case err = <-opened:
	case <-ctx.Done(): // the host does not respond, so the connection is useless
		h.pool.end(l)
		err = <-opened
		if err == nil {
			_ = session.Close()
			err = ctx.Err()
		}
	}
	if err != nil {
		<-l.sessions
		h.pool.end(l)
		return nil, nil, unreachable(h.target, fmt.Errorf("%w: %w", errNoSession, err))
	}
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	return session, func() {
		stop()
		_ = session.Close()
		<-l.sessions
	}, nil
}

// command returns the command line for a script. It is a constant for each script.
func (h *Host) command(script string) (string, error) {
	library, err := scripts.ReadFile("scripts/library.sh")
	if err != nil {
		return "", err
	}
	text, err := scripts.ReadFile("scripts/" + script + ".sh")
	if err != nil {
		return "", fault.New(fault.Bug, "NoScript", "there is no script %s", script).From(err)
	}
	command := "/bin/sh -c " + quote("# slipway: "+script+"\n"+string(library)+string(text))
	if h.target.Sudo {
		command = "sudo -n -- " + command
	}
	return command, nil
}

// quote quotes a text for a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// standardInput returns the parameters, an empty line, and the input.
func standardInput(c call) (io.Reader, error) {
	var b bytes.Buffer
	for _, p := range c.parameters {
		if strings.ContainsAny(p.value, "\n\r\x00") {
			return nil, fault.New(fault.Invalid, "InvalidParameter", "the parameter %s of script %s contains a line break", p.name, c.script)
		}
		b.WriteString(p.name + "=" + p.value + "\n")
	}
	b.WriteByte('\n')
	if c.input == nil {
		return &b, nil
	}
	return io.MultiReader(&b, c.input), nil
}

// limitedBuffer stores the first bytes that are written to it, and discards the rest.
type limitedBuffer struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := b.most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// fileTransfer returns the connection for file transfers, with the permissions of root.
func (h *Host) fileTransfer(ctx context.Context, l *link) (*sftp.Client, error) {
	l.transfer.Lock()
	defer l.transfer.Unlock()
	if l.files != nil {
		return l.files, nil
	}
	stop := context.AfterFunc(ctx, func() { h.pool.end(l) }) // a server that never responds
	defer stop()
	session, err := l.client.NewSession()
	if err != nil {
		h.pool.end(l)
		return nil, unreachable(h.target, fmt.Errorf("%w: %w", errNoSession, err))
	}
	files, err := h.startFileServer(session)
	if err != nil {
		_ = session.Close()
		return nil, fault.New(fault.Invalid, "NoFileTransfer",
			"host %s has no SFTP server; install openssh-sftp-server, or enable \"Subsystem sftp\" in /etc/ssh/sshd_config", h.target.Address).From(err)
	}
	l.files = files
	go func() {
		_ = files.Wait()
		_ = session.Close()
		l.transfer.Lock()
		defer l.transfer.Unlock()
		if l.files == files {
			l.files = nil
		}
	}()
	return files, nil
}

// startFileServer starts the SFTP subsystem, or the server's program with sudo.
func (h *Host) startFileServer(session *ssh.Session) (*sftp.Client, error) {
	in, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if h.target.Sudo {
		var command string
		if command, err = h.command("sftp"); err == nil {
			err = session.Start(command)
		}
	} else {
		err = session.RequestSubsystem("sftp")
	}
	if err != nil {
		return nil, err
	}
	return sftp.NewClientPipe(out, in, sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(32))
}

// transfer calls f with a connection for file transfers. Errors of the connection are faults of kind Unreachable, errors
// of the host's file system are not.
func (h *Host) transfer(ctx context.Context, f func(*sftp.Client) error) error {
	return h.use(ctx, func(ctx context.Context, l *link) error {
		files, err := h.fileTransfer(ctx, l)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = files.Close() })
		defer stop()
		err = f(files)
		var status *sftp.StatusError
		switch {
		case err == nil, fault.As(err) != nil, errors.As(err, &status), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrExist):
			return err
		}
		return unreachable(h.target, fmt.Errorf("transferring a file: %w", err))
	})
}

package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
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

// Host is a host in a [Pool]. Its methods may be called at the same time. [Pool.Connect] returns it for the target of
// one SSHHost.
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
	if err := h.pool.slots.acquire(ctx, h.target.Namespace); err != nil {
		return fault.New(fault.Unreachable, ReasonBusy, "too many calls to hosts are in progress").From(err)
	}
	defer h.pool.slots.release(h.target.Namespace)
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
	if err := l.lock(ctx); err != nil {
		return unreachable(h.target, err)
	}
	defer l.unlock()
	if l.privileged {
		return nil
	}
	out, err := h.exec(ctx, l, call{script: "privileges"})
	var failed *scriptError
	switch {
	case errors.As(err, &failed) && h.target.Sudo, err == nil && strings.TrimSpace(string(out)) != "0" && h.target.Sudo:
		return fault.New(fault.Invalid, reasonNotRoot,
			"user %s of host %s cannot become root with \"sudo -n\"; allow it without a password in /etc/sudoers.d: \"%[1]s ALL=(ALL) NOPASSWD: ALL\"", h.target.User, h.target.Address).From(err)
	case errors.As(err, &failed): // such as the shell nologin, or a command in authorized_keys that asks for another user
		text, _, _ := strings.Cut(strings.TrimSpace(string(out)+"\n"+failed.errors), "\n")
		return fault.New(fault.Invalid, reasonNotRoot, "user %s of host %s cannot run commands: %q; use another user (--user of \"slipway hosts add\" and \"slipway hosts update\")",
			h.target.User, h.target.Address, cmp.Or(fact(text), failed.Error())).From(err)
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
	input   []byte
	timeout time.Duration
}

// scriptError is the failure of a script.
type scriptError struct {
	script string
	code   int
	errors string
}

// Error implements error.
func (e *scriptError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// run runs a script and returns its output, at most maxOutput bytes. A script that fails is a fault of kind Transient that wraps a
// *scriptError, a lost connection a fault of kind Unreachable. All methods that run a script on the host call it.
func (h *Host) run(ctx context.Context, c call) (out []byte, err error) {
	err = h.use(ctx, func(ctx context.Context, l *link) error {
		out, err = h.exec(ctx, l, c)
		return err
	})
	var failed *scriptError
	if errors.As(err, &failed) && fault.As(err) == nil {
		err = fault.New(fault.Transient, ReasonScriptFailed, "script %s failed on host %s: %s", failed.script, h.target.Address, cmp.Or(failed.errors, failed.Error())).From(failed)
	}
	return out, err
}

// exec runs a script in a session of a connection. If the context ends first, the connection is closed, because a session
// ends only if the host confirms it.
func (h *Host) exec(ctx context.Context, l *link, c call) ([]byte, error) {
	input, err := standardInput(c)
	if err != nil {
		return nil, err
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	session, err := h.session(ctx, l)
	if err != nil {
		return nil, err
	}
	defer func() { <-l.sessions }()
	stdout, stderr := &limitedBuffer{most: maxOutput}, &limitedBuffer{most: maxErrors}
	session.Stdout, session.Stderr = stdout, stderr
	ended := make(chan error, 1)
	go func() { ended <- runWithInput(session, h.command(), input) }()
	select {
	case err = <-ended:
		_ = session.Close()
	case <-ctx.Done():
		h.pool.abandon(l)
		return nil, unreachable(h.target, fmt.Errorf("running %s: %w", c.script, ctx.Err()))
	}
	var exit *ssh.ExitError
	switch {
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

// session opens a session in one of the slots for sessions, which the caller releases.
func (h *Host) session(ctx context.Context, l *link) (*ssh.Session, error) {
	select {
	case l.sessions <- struct{}{}:
	case <-ctx.Done():
		return nil, unreachable(h.target, ctx.Err())
	}
	type result struct {
		session *ssh.Session
		err     error
	}
	opened := make(chan result, 1)
	go func() {
		session, err := l.client.NewSession()
		opened <- result{session, err}
	}()
	var r result
	select {
	case r = <-opened:
	case <-ctx.Done(): // the host does not respond, so the connection is useless
		r.err = ctx.Err()
	}
	if r.err != nil {
		<-l.sessions
		h.pool.abandon(l)
		return nil, unreachable(h.target, fmt.Errorf("%w: %w", errNoSession, r.err))
	}
	return r.session, nil
}

// loader is the command that runs every script. It reads the script from standard input up to the line endOfScript and runs
// it with the rest of the input. sudo writes the command line of each call to the log of the system, and every user of the
// host can read it, so it is short and always the same. A script that has not arrived completely does not run. The shell
// itself reads a script in blocks, which would take the input away from the script. The command has one line and no single
// quote, so that every login shell of the user understands it.
const loader = `break=$(printf "\nx"); break=${break%x}; script= end=; while IFS= read -r line; do if [ "$line" = "` + endOfScript + `" ]; then end=true; break; fi; ` +
	`script=$script$line$break; done; [ -n "$end" ] || { echo "the script has not arrived completely" >&2; exit 1; }; eval "$script"`

// endOfScript is the line after a script.
const endOfScript = "# slipway: end"

// command returns the command line of every script.
func (h *Host) command() string {
	if h.target.Sudo {
		return "sudo -n -- /bin/sh -c " + quote(loader)
	}
	return "/bin/sh -c " + quote(loader)
}

// scriptText returns a script with the library and the line that ends it.
func scriptText(script string) (string, error) {
	library, err := scripts.ReadFile("scripts/library.sh")
	if err != nil {
		return "", err
	}
	text, err := scripts.ReadFile("scripts/" + script + ".sh")
	if err != nil {
		return "", fault.New(fault.Bug, "NoScript", "there is no script %s", script).From(err)
	}
	return "# slipway: " + script + "\n" + string(library) + string(text) + endOfScript + "\n", nil
}

// quote quotes a text for a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// standardInput returns the script, the parameters, an empty line, and the input. The size and the hash of the input are parameters,
// because the input of a script ends early if the connection is lost.
func standardInput(c call) (io.Reader, error) {
	text, err := scriptText(c.script)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBufferString(text)
	all := c.parameters
	if c.input != nil {
		sum := sha256.Sum256(c.input)
		all = append(slices.Clone(all), parameter{"INPUT_SIZE", strconv.Itoa(len(c.input))}, parameter{"INPUT_SHA256", hex.EncodeToString(sum[:])})
	}
	for _, p := range all {
		if strings.ContainsAny(p.value, "\n\r\x00") {
			return nil, fault.New(fault.Invalid, "InvalidParameter", "the parameter %s of script %s contains a line break", p.name, c.script)
		}
		b.WriteString(p.name + "=" + p.value + "\n")
	}
	b.WriteByte('\n')
	return io.MultiReader(b, bytes.NewReader(c.input)), nil
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
	if err := l.lock(ctx); err != nil {
		return nil, unreachable(h.target, err)
	}
	defer l.unlock()
	if l.files != nil {
		return l.files, nil
	}
	type result struct {
		files *sftp.Client
		err   error
	}
	opened := make(chan result, 1)
	go func() {
		files, err := h.openFiles(l)
		opened <- result{files, err}
	}()
	select {
	case r := <-opened:
		l.files = r.files
		return r.files, r.err
	case <-ctx.Done():
		h.pool.abandon(l)
		return nil, unreachable(h.target, fmt.Errorf("%w: %w", errNoSession, ctx.Err()))
	}
}

// openFiles starts the SFTP server in a session. The client is forgotten when the session ends.
func (h *Host) openFiles(l *link) (*sftp.Client, error) {
	session, err := l.client.NewSession()
	if err != nil {
		h.pool.abandon(l)
		return nil, unreachable(h.target, fmt.Errorf("%w: %w", errNoSession, err))
	}
	files, err := h.startFileServer(session)
	if err != nil {
		if !probe(l.client, h.pool.limits.Keepalive) { // the connection was lost meanwhile
			h.pool.abandon(l)
			return nil, unreachable(h.target, fmt.Errorf("%w: %w", errNoSession, err))
		}
		_ = session.Close()
		return nil, fault.New(fault.Invalid, reasonNoFileTransfer,
			"host %s has no SFTP server; install openssh-sftp-server, or enable \"Subsystem sftp\" in /etc/ssh/sshd_config", h.target.Address).From(err)
	}
	go func() {
		_ = files.Wait()
		_ = session.Close()
		_ = l.lock(context.Background()) // each holder is limited in time
		defer l.unlock()
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
	if err := h.requestFileServer(session, in); err != nil {
		return nil, err
	}
	return sftp.NewClientPipe(out, in, sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(32))
}

func (h *Host) requestFileServer(session *ssh.Session, in io.Writer) error {
	if !h.target.Sudo {
		return session.RequestSubsystem("sftp")
	}
	text, err := scriptText("sftp")
	if err != nil {
		return err
	}
	if err := session.Start(h.command()); err != nil {
		return err
	}
	_, err = io.WriteString(in, text)
	return err
}

// transfer calls f with a connection for file transfers. Errors of the connection are faults of kind Unreachable, errors
// of the host's file system are faults of kind Transient. If the context ends, or f does not call progress for the time of the pool's limit,
// the connection is closed; f may then still run when transfer has returned, so it returns its result as a value. The
// upload of a bundle and [Host.ReadRecord] call it.
func transfer[T any](ctx context.Context, h *Host, f func(files *sftp.Client, progress func()) (T, error)) (out T, err error) {
	err = h.use(ctx, func(ctx context.Context, l *link) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stall := time.AfterFunc(h.pool.limits.Stall, func() { cancel(errStalled) })
		defer stall.Stop()
		files, err := h.fileTransfer(ctx, l)
		if err != nil {
			return err
		}
		type result struct {
			value T
			err   error
		}
		ended := make(chan result, 1)
		go func() {
			value, err := f(files, func() { stall.Reset(h.pool.limits.Stall) })
			ended <- result{value, err}
		}()
		var r result
		select {
		case r = <-ended:
		case <-ctx.Done():
			h.pool.abandon(l)
			r.err = context.Cause(ctx)
		}
		out = r.value
		return h.transferError(r.err)
	})
	return out, err
}

// errStalled is the cause of an error if the host did not respond during a file transfer.
var errStalled = errors.New("the host does not respond")

func (h *Host) transferError(err error) error {
	var status *sftp.StatusError
	switch {
	case err == nil, fault.As(err) != nil:
		return err
	case errors.As(err, &status), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrExist):
		return fault.New(fault.Transient, ReasonFilesFailed, "a file of Slipway cannot be read or written on host %s: %s", h.target.Address, fact(err.Error())).From(err)
	}
	return unreachable(h.target, fmt.Errorf("transferring a file: %w", err))
}

package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/redact"
)

// maxOutput limits the part of a command's output that is retained, in bytes.
const maxOutput = 64 << 10

// Exit codes of Docker and of a shell for a program that cannot be executed and for a missing program.
const commandNotExecutable, commandNotFound = 126, 127

// exec runs a shell program in a running container with the given input and returns its output. A non-zero exit code is
// an error. All programs that this package runs in nodes go through this file. [Engine.stream] records its programs in
// [ownExecs], so that their end is no event for the controllers.
func (e *Engine) exec(ctx context.Context, c ownContainer, program string, input []byte) (string, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	out := &tail{max: maxOutput}
	code, sent, err := e.stream(ctx, c, shell(program), bytes.NewReader(input), out)
	switch {
	case err != nil:
		return "", err
	case code == commandNotExecutable, code == commandNotFound:
		return "", fault.New(fault.Invalid, reasonNoNodeImage,
			"Container %s cannot run a shell script, so its image is not a node image; use an image that `slipway image list` shows, or one with kind's layout", c.name).
			From(fmt.Errorf("exit code %d: %s", code, out.buf))
	case code != 0:
		return "", fault.New(fault.Transient, reasonError, "A command in container %s failed with exit code %d: %s", c.name, code, redact.Tail(string(out.buf), logBytes))
	}
	return string(out.buf), e.fault("sending the input of a command to container "+c.name, sent)
}

func shell(program string) []string { return []string{"/bin/sh", "-c", program} }

// execDetached starts a shell program in a running container and does not wait for it; its output is discarded. The
// program must not be recorded in ownExecs: its end is the event with which the machine is reconciled again
// ([Engine.Watch]).
func (e *Engine) execDetached(ctx context.Context, c ownContainer, program string) error {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	id, err := e.prepare(ctx, c, client.ExecCreateOptions{Cmd: shell(program)})
	if err != nil {
		return err
	}
	_, err = e.api.ExecStart(ctx, id, client.ExecStartOptions{Detach: true})
	return e.fault("starting a command in container "+c.name, err)
}

// Run implements backend.EtcdShell and backend.ImageLoader. [Engine.Bootstrap] writes the bootstrap script with it, and
// backend.EtcdMembers runs the programs of an etcd recovery.
func (e *Engine) Run(ctx context.Context, ref backend.Ref, program string, input []byte) (string, error) {
	c, err := e.running(ctx, ref)
	if err != nil {
		return "", err
	}
	return e.exec(ctx, c, program, input)
}

// Pipe implements backend.EtcdShell. backend.EtcdMembers stages snapshots with it.
func (e *Engine) Pipe(ctx context.Context, ref backend.Ref, program string, input io.Reader) (code int, out string, err error) {
	c, err := e.running(ctx, ref)
	if err != nil {
		return 0, "", err
	}
	said := &tail{max: maxOutput}
	code, sent, err := e.stream(ctx, c, shell(program), input, said)
	if err == nil && code == 0 {
		err = sent
	}
	return code, string(said.buf), err
}

// Start implements backend.EtcdShell. [Engine.Bootstrap] starts the bootstrap script with it, and backend.EtcdMembers
// the rebuild of etcd.
func (e *Engine) Start(ctx context.Context, ref backend.Ref, program string) error {
	c, err := e.running(ctx, ref)
	if err != nil {
		return err
	}
	return e.execDetached(ctx, c, program)
}

// importImages imports the archive into containerd in the container. [Engine.LoadImages] calls it.
func (e *Engine) importImages(ctx context.Context, c ownContainer, archive io.Reader) (string, error) {
	said := &tail{max: maxOutput}
	code, sent, err := e.stream(ctx, c, []string{"ctr", "--namespace", "k8s.io", "images", "import", "-"}, archive, said)
	switch {
	case err != nil:
		return "", err
	case code != 0:
		return "", fault.New(fault.Invalid, reasonError, "containerd of %s does not accept the archive: %s", c.name, redact.Tail(string(said.buf), logBytes)).
			From(errors.Join(fmt.Errorf("exit code %d", code), sent))
	}
	return string(said.buf), nil
}

// stream runs a program in a running container until ctx ends, with input and output of any length. A program may exit
// before it has read all input, so the error of sending it is returned separately as sent.
func (e *Engine) stream(ctx context.Context, c ownContainer, command []string, in io.Reader, out io.Writer) (code int, sent, err error) {
	doing := "running " + command[0] + " in container " + c.name
	id, err := e.prepare(ctx, c, client.ExecCreateOptions{Cmd: command, AttachStdin: true, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return 0, nil, err
	}
	e.execs.Begin(id)
	attached, err := e.api.ExecAttach(ctx, id, client.ExecAttachOptions{})
	if err != nil {
		return 0, nil, e.fault(doing, err)
	}
	defer attached.Close()
	stop := context.AfterFunc(ctx, attached.Close)
	defer stop()
	read := make(chan error, 1)
	go func() { // the program may stop reading and print the reason
		_, err := stdcopy.StdCopy(out, out, attached.Reader)
		read <- err
	}()
	_, sent = io.Copy(attached.Conn, in)
	_ = attached.CloseWrite()
	err = <-read
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return 0, sent, e.fault(doing, err)
	}
	r, err := e.api.ExecInspect(ctx, id, client.ExecInspectOptions{})
	return r.ExitCode, sent, e.fault(doing, err)
}

func (e *Engine) prepare(ctx context.Context, c ownContainer, options client.ExecCreateOptions) (string, error) {
	r, err := e.api.ExecCreate(ctx, c.id, options)
	if cerrdefs.IsConflict(err) || cerrdefs.IsNotFound(err) {
		return "", notRunning(c.name).From(err)
	}
	return r.ID, e.fault("preparing a command in container "+c.name, err)
}

func notRunning(name string) *fault.Fault {
	return fault.New(fault.Conflict, reasonNotRunning, "container %s does not run", name)
}

// tail retains the last max bytes written to it.
type tail struct {
	buf []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - t.max; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

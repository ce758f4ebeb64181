package container

import (
	"context"
	"fmt"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// Files of a bootstrap inside a node. A restart of the container deletes files under /run but not files under /var,
// which reveals an interrupted bootstrap. The script contains secrets, so it is stored under /run, readable by root
// only, and removed when it has ended.
const (
	scriptFile  = "/run/slipway/bootstrap.sh"
	runningMark = "/run/slipway/bootstrap.running"
	stateFolder = "/var/lib/slipway"
	startedMark = stateFolder + "/bootstrap.started"
	resultFile  = stateFolder + "/bootstrap.result"
	logFile     = "/var/log/slipway-bootstrap.log"
)

// logBytes limits the part of a program's output that is shown.
const logBytes = 4096

// Bootstrap implements backend.Scripts. The LocalMachine controller calls it when the machine runs and its bootstrap
// data exists. The script runs as a process of the container and needs neither this program nor a connection to it. It
// cannot run twice: only the process that creates the directory startedMark continues. runningMark is created first, so
// a script with startedMark and without runningMark was interrupted.
func (e *Engine) Bootstrap(ctx context.Context, ref backend.Ref, script backend.Script) error {
	place := fmt.Sprintf(`set -e; umask 077; [ ! -e %[1]s ] || { cat >/dev/null; exit 0; }; mkdir -p /run/slipway; cat >%[2]s.new.$$; mv %[2]s.new.$$ %[2]s`,
		startedMark, scriptFile)
	if _, err := e.Run(ctx, ref, place, script.Body); err != nil {
		return fmt.Errorf("writing the bootstrap script: %w", err)
	}
	if err := e.Start(ctx, ref, runProgram(script)); err != nil {
		return fmt.Errorf("starting the bootstrap script: %w", err)
	}
	return nil
}

// running looks up the container of a machine. It reports a missing container as not running.
func (e *Engine) running(ctx context.Context, ref backend.Ref) (ownContainer, error) {
	c, _, err := e.container(ctx, ref, e.ownership.Ownership)
	if isGone(err) {
		err = notRunning(ref.Name).From(err)
	}
	return c, err
}

// runProgram returns the program that runs the script in the container and writes its result to resultFile.
func runProgram(s backend.Script) string {
	return fmt.Sprintf(`mkdir -p %[1]s /var/log %[7]s
[ -e %[2]s ] && [ ! -e %[3]s ] && mkdir -p %[4]s && mkdir %[3]s || exit 0
timeout -k 10 %[8]d /bin/sh %[2]s </dev/null >>%[5]s 2>&1
code=$?
[ "$code" != 124 ] || echo "slipway: ended after %[8]d seconds (bootstrapTimeoutSeconds)" >>%[5]s
if [ -e %[9]s ]; then echo succeeded >%[6]s.new; else { echo "failed $code"; %[10]s; } >%[6]s.new; fi
rm -f %[2]s
mv %[6]s.new %[6]s`,
		stateFolder, scriptFile, startedMark, runningMark, logFile, resultFile,
		folderOf(s.Sentinel), int(s.Timeout.Seconds()), s.Sentinel, statusScript())
}

func folderOf(path string) string { return path[:strings.LastIndex(path, "/")+1] }

// Progress implements backend.Scripts. It reads the files of the bootstrap in the container ([statusFiles]).
func (e *Engine) Progress(ctx context.Context, ref backend.Ref) (backend.Progress, error) {
	c, err := e.running(ctx, ref)
	if err != nil {
		return backend.Progress{}, err
	}
	program := statusFiles{Started: startedMark, Running: runningMark, Result: resultFile, Log: logFile}.Program()
	out, err := e.exec(ctx, c, program, nil)
	if f := fault.As(err); f != nil && f.Reason == reasonNoNodeImage {
		return backend.Progress{Phase: backend.Unusable, Log: f.Message}, nil
	}
	if err != nil {
		return backend.Progress{}, fmt.Errorf("reading the bootstrap's result: %w", err)
	}
	p, err := parseStatus(out)
	if err != nil {
		err = fault.New(fault.Transient, reasonError, "Container %s does not report the progress of its bootstrap; retrying", c.name).From(err)
	}
	return p, err
}

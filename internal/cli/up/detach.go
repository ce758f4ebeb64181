package up

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// reportFD is the file descriptor through which a background process reports. The supervisor passes the flag
// --report-fd on to its child process, so both use the same number.
const reportFD = 3

// detached implements `slipway up -d`: it starts this program in the background in a new session, and reads its report
// until it is ready or has failed. flags.run calls it.
func (f *flags) detached(ctx context.Context, e term.Env, dir datadir.Dir, set *pflag.FlagSet) error {
	began := e.Now()
	executable, err := e.Executable()
	if err != nil {
		return err
	}
	args := append([]string{"up", superviseFlag, "--data-dir", string(dir), "--report-fd", strconv.Itoa(reportFD)}, f.node.args()...)
	for _, name := range savedFlags { // including empty flags, otherwise the process would use the flags of the last start
		text, err := textOf(set.Lookup(name))
		if err != nil {
			return err
		}
		args = append(args, "--"+name+"="+text)
	}
	cmd := exec.Command(executable, args...)
	cmd.Dir = "/"
	p, reader, err := childproc.StartWithReport(cmd, childproc.Detached, reportFD)
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	defer func() { _ = reader.Close() }()
	defer context.AfterFunc(ctx, p.Terminate)()
	ready, err := readReport(e, bufio.NewScanner(reader))
	if ready {
		welcome(e.Err, dir, e.Now().Sub(began))
		return nil
	}
	<-p.Done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if how := endedWithout(""); errors.As(err, &how) {
		return backgroundError(dir, string(how))
	}
	if err != nil {
		return err
	}
	return backgroundError(dir, p.State().String())
}

// backgroundError returns the error for a background process that ended without a report.
func backgroundError(dir datadir.Dir, exit string) error {
	if space, err := datadir.SpaceOf(dir); err == nil && space.IsFull() {
		return datadir.DiskFullFault(dir, space, startOf(dir))
	}
	tail, _ := childproc.TailLog(dir.Log(), 15)
	return fault.New(fault.Transient, "BackgroundProcessEnded", "the background process exited before it was ready (%s); the end of %s:\n%s",
		exit, dir.Log(), strings.Join(tail, "\n"))
}

// startOf returns the command that starts the management cluster of a directory.
func startOf(dir datadir.Dir) string {
	if d, err := datadir.Default(os.Getenv); err == nil && d == dir {
		return "slipway up -d"
	}
	return "slipway up -d --data-dir " + string(dir)
}

// checkSpace fails if the disk is full, because etcd would stop immediately, and warns if it is nearly full. `slipway
// up` calls it before it starts anything.
func checkSpace(w io.Writer, dir datadir.Dir, space datadir.Space) error {
	switch {
	case space.IsFull():
		return datadir.DiskFullFault(dir, space, startOf(dir))
	case space.IsLow():
		_, err := fmt.Fprintf(w, "Warning: the disk of %s is nearly full (%s): without space the management cluster stops\n", dir, space)
		return err
	}
	return nil
}

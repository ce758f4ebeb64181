package up_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/cli/up"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

// stopped is a data directory that no one holds.
func stopped(t *testing.T) *datadir.Handle {
	t.Helper()
	h, err := datadir.Open(datadir.Dir(t.TempDir()), datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

func downRun(t *testing.T, dir datadir.Dir, remove up.Delete, args ...string) (string, error) {
	t.Helper()
	var said bytes.Buffer
	cmd := up.DownCommand(term.Env{Err: &said, Now: time.Now, Getenv: func(string) string { return "/nowhere" }}, remove)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"--data-dir", string(dir)}, args...))
	err := cmd.ExecuteContext(t.Context())
	return said.String(), err
}

func never(context.Context, string, string, func(gone, of int)) error {
	panic("nothing is to be deleted")
}

func TestWithoutDelete(t *testing.T) {
	h := stopped(t)
	said, err := downRun(t, h.Dir, never)
	at := " --data-dir " + string(h.Dir)
	if err != nil || !strings.Contains(said, "The data in "+string(h.Dir)+" is retained; \"slipway up"+at+"\" continues, \"slipway down --delete"+at+"\" removes it.") {
		t.Errorf("%v: %s", err, said)
	}
	if _, err := datadir.ReadInstance(h.Dir); err != nil {
		t.Errorf("the data: %v", err)
	}
	if strings.Contains(said, "Nodes in containers") {
		t.Errorf("there is no control plane: %s", said)
	}
	if err := os.MkdirAll(filepath.Join(h.Dir.Planes(), "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	if said, err := downRun(t, h.Dir, never); err != nil || !strings.Contains(said, "Nodes in containers keep running") {
		t.Errorf("what is left running is not said: %v: %s", err, said)
	}
	unused := datadir.Dir(t.TempDir())
	if said, err := downRun(t, unused, never, "--delete"); err != nil || !strings.Contains(said, "Nothing to stop") {
		t.Errorf("a folder that is not slipway's: %v: %s", err, said)
	}
	if _, err := os.Stat(string(unused)); err != nil {
		t.Errorf("it was removed: %v", err)
	}
}

func TestDelete(t *testing.T) {
	unreachable := fault.New(fault.Unreachable, "DockerUnreachable", "Docker does not respond")
	tests := map[string]struct {
		reason string
		planes bool // the instance had a workload cluster
		err    error
		kept   bool
	}{
		"all removed":                         {"then the data goes too", true, nil, false},
		"Docker down":                         {"containers would be left behind", true, unreachable, true},
		"Docker down, and never was anything": {"there is nothing that could be left behind", false, unreachable, false},
		"another error":                       {"something would be left behind", false, errors.New("container busy"), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := stopped(t)
			if test.planes {
				if err := os.MkdirAll(string(processconfig.Folder(h.Path("planes", "default.demo"))), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			var asked string
			_, err := downRun(t, h.Dir, func(_ context.Context, dataDir, instance string, _ func(gone, of int)) error {
				asked = dataDir + " " + instance
				return test.err
			}, "--delete")
			if want := string(h.Dir) + " " + h.Instance; asked != want {
				t.Errorf("asked to delete %q, want %q", asked, want)
			}
			if (err != nil) != test.kept || (err != nil && !strings.Contains(err.Error(), "is retained")) {
				t.Errorf("error %v: %s", err, test.reason)
			}
			if _, err := os.Stat(string(h.Dir)); (err == nil) != test.kept {
				t.Errorf("the data is kept: %v, want %v: %s", err == nil, test.kept, test.reason)
			}
		})
	}
}

// How far a long deletion is stands on the terminal each second, and its end always.
func TestProgress(t *testing.T) {
	h := stopped(t)
	now := time.Now()
	var said bytes.Buffer
	cmd := up.DownCommand(term.Env{Err: &said, Now: func() time.Time { return now }}, func(_ context.Context, _, _ string, tell func(gone, of int)) error {
		for gone := range 9 {
			tell(gone+1, 9)
			now = now.Add(300 * time.Millisecond)
		}
		return nil
	})
	cmd.SetArgs([]string{"--data-dir", string(h.Dir), "--delete"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5 of 9", "9 of 9"} {
		if !strings.Contains(said.String(), "removed "+want+" containers, volumes and networks\n") {
			t.Errorf("%q is not said: %s", want, &said)
		}
	}
	if got := strings.Count(said.String(), "removed "); got != 2 {
		t.Errorf("%d lines of progress: %s", got, &said)
	}
}

func TestDeleteIsRefusedWhileHeld(t *testing.T) {
	dir := datadir.Dir(t.TempDir())
	holder := datadir.Holder{PID: 1 << 30, Host: "other"} // no process has this ID
	h, err := datadir.Open(dir, holder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	cmd := up.DownCommand(term.Env{Err: &bytes.Buffer{}, Now: time.Now}, never)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--data-dir", string(dir), "--delete"})
	if err := cmd.ExecuteContext(ctx); err == nil {
		t.Error("deleted while another holds it")
	}
}

// The directory of a manager whose data could not be deleted stays that of the manager, for all who ask whose it is.
func TestDirectoryStaysTheManagers(t *testing.T) {
	h, err := datadir.Open(datadir.Dir(t.TempDir()), datadir.Holder{PID: os.Getpid(), ManagerOf: "https://192.0.2.1:6443", Command: "slipway manager --kubeconfig=x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := downRun(t, h.Dir, func(context.Context, string, string, func(gone, of int)) error { return errors.New("container busy") }, "--delete"); err == nil {
		t.Error("it is deleted")
	}
	state, err := datadir.Inspect(h.Dir)
	if err != nil || state.Holder.ManagerOf == "" || state.Holder.Command == "" {
		t.Errorf("nothing says any more of which cluster it is: %+v, %v", state.Holder, err)
	}
}

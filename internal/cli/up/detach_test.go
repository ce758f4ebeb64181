package up

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// What the background process says arrives in the foreground, an error with its kind.
func TestReportIsFollowed(t *testing.T) {
	taken := fault.New(fault.Invalid, "PortTaken", "port 1 is taken; choose another")
	tests := map[string]struct {
		reason string
		say    func(*report)
		ready  bool
		kind   fault.Kind
		want   string // of the error
		shows  string
	}{
		"ready": {
			reason: "steps are shown; what comes later is not for the foreground",
			say: func(r *report) {
				r.step("one")
				r.ready()
				r.step("two")
				_ = r.finish(errors.New("later"))
			},
			ready: true, shows: "one\n",
		},
		"a fault": {
			reason: "the user reads the message, and the exit code fits",
			say:    func(r *report) { _ = r.finish(taken) }, kind: fault.Invalid, want: "port 1 is taken; choose another",
		},
		"an error": {
			reason: "its text", say: func(r *report) { _ = r.finish(errors.New("disk full")) }, want: "disk full",
		},
		"silence": {
			reason: "the process died; the caller looks at the log", say: func(r *report) { r.close() },
		},
		"interrupted": {
			reason: "no error of its own", say: func(r *report) { _ = r.finish(context.Canceled) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = reader.Close() }()
			test.say(&report{file: writer})
			var shown bytes.Buffer
			ready, err := readReport(term.Env{Err: &shown}, bufio.NewScanner(reader))
			if ready != test.ready || shown.String() != test.shows {
				t.Errorf("ready %v, shows %q: %s", ready, shown.String(), test.reason)
			}
			if (err == nil) != (test.want == "") || (err != nil && (err.Error() != test.want || fault.KindOf(err) != test.kind)) {
				t.Errorf("got %v of kind %s: %s", err, fault.KindOf(err), test.reason)
			}
		})
	}
}

func TestDiedShowsTheEndOfTheLog(t *testing.T) {
	dir := datadir.Dir(t.TempDir())
	if err := os.MkdirAll(dir.Path("log"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Log(), []byte("panic: everything is wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := backgroundError(dir, "exit status 2"); !strings.Contains(err.Error(), "everything is wrong") || !strings.Contains(err.Error(), dir.Log()) {
		t.Errorf("got %v", err)
	}
}

func TestWelcomeSaysWhatToDo(t *testing.T) {
	var out bytes.Buffer
	welcome(&out, "/data", 1234*time.Millisecond)
	for _, s := range []string{"1.23s", "export KUBECONFIG=/data/kubeconfig", "slipway down --data-dir /data"} {
		if !strings.Contains(out.String(), s) {
			t.Errorf("it does not say %q: %s", s, out.String())
		}
	}
}

var _ progressReporter = terminalReporter{w: io.Discard}

package up

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rowsOf collects rows as lines.
func rowsOf(write func(row func(string, any))) string {
	var out strings.Builder
	write(func(key string, value any) { _, _ = fmt.Fprintf(&out, "%s: %v\n", key, value) })
	return out.String()
}

// A full disk is named with what to do, also as the reason of an end, and one that is nearly full is warned of.
func TestDisk(t *testing.T) {
	const mib = 1 << 20
	start := "slipway up -d"
	for name, test := range map[string]struct {
		status     statusReport
		rows, last string
	}{
		"roomy":            {statusReport{Disk: datadir.Space{Free: 1 << 40, Total: 1 << 41}}, "", "was killed, or its machine went down"},
		"not known":        {statusReport{}, "", "was killed, or its machine went down"},
		"low":              {statusReport{DataDir: "/d", Disk: datadir.Space{Free: 150 * mib, Total: 260 * mib}}, "Disk: The disk of /d is nearly full (150 of 260 MiB free): free some space, without which the management cluster stops\n", "was killed, or its machine went down"},
		"full":             {statusReport{DataDir: "/d", Disk: datadir.Space{Total: 260 * mib}}, "Disk: The disk of /d is full (0 of 260 MiB free): free some space, then slipway up -d\n", "ended, because its disk is full"},
		"full, restarts":   {statusReport{DataDir: "/d", Disk: datadir.Space{Total: 260 * mib}, State: restarting}, "Disk: The disk of /d is full (0 of 260 MiB free): free some space, then the management cluster is started again\n", "ended, because its disk is full"},
		"full, still runs": {statusReport{DataDir: "/d", Disk: datadir.Space{Total: 260 * mib}, Management: &managementStatus{}}, "Disk: The disk of /d is full (0 of 260 MiB free): free some space\n", "ended, because its disk is full"},
	} {
		if got := rowsOf(func(row func(string, any)) { test.status.diskRow(row, start) }); got != test.rows {
			t.Errorf("%s: got %q, want %q", name, got, test.rows)
		}
		if got := test.status.howKilled(); got != test.last {
			t.Errorf("%s: the last process %q, want %q", name, got, test.last)
		}
	}
}

// A command of another build than the process says so.
func TestBuildRow(t *testing.T) {
	for _, test := range []struct{ running, own, want string }{
		{"a", "a", ""}, {"", "a", ""},
		{"a", "b", "  This command: slipway b, another build: restart the process with it, or use the program of the process\n"},
	} {
		if got := rowsOf(func(row func(string, any)) { buildRow(row, test.running, test.own) }); got != test.want {
			t.Errorf("running %q, command %q: got %q, want %q", test.running, test.own, got, test.want)
		}
	}
}

// Restarts have a reason and, while the next start is awaited, say when it is or what it waits for.
func TestSupervision(t *testing.T) {
	ended := datadir.Supervision{PID: 1, Restarts: 2, LastExit: "the kernel killed it because this host is out of memory", LastExitAt: at.Add(-3 * time.Second)}
	due, waits := ended, ended
	due.NextStart = at.Add(20 * time.Second)
	waits.Waiting = "the disk of /d is full"
	for name, test := range map[string]struct {
		status statusReport
		want   string
	}{
		"none":  {statusReport{State: stateRunning}, ""},
		"well":  {statusReport{State: stateRunning, Supervision: &datadir.Supervision{PID: 1}}, ""},
		"runs":  {statusReport{State: stateRunning, Supervision: &ended}, "Restarts of it: 2\n  Last exit: 3s ago: the kernel killed it because this host is out of memory\n"},
		"due":   {statusReport{State: restarting, Supervision: &due}, "Restarts of it: 2\n  Last exit: 3s ago: the kernel killed it because this host is out of memory\n  Next start: in 20s\n"},
		"waits": {statusReport{State: restarting, Supervision: &waits}, "Restarts of it: 2\n  Last exit: 3s ago: the kernel killed it because this host is out of memory\n  Next start: the disk of /d is full\n"},
	} {
		if got := rowsOf(func(row func(string, any)) { test.status.supervisionRows(row, at) }); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The state of the manager is whether it answers, and not whether there is a process.
func TestManagerState(t *testing.T) {
	for want, m := range map[string]managerStatus{
		"Not responding since " + at.Add(-4*time.Minute).Local().Format(time.DateTime) + " (4m ago): it hangs": {
			Manager: datadir.Manager{PID: 1, Diagnostics: "https://127.0.0.1:1", UnresponsiveSince: at.Add(-4 * time.Minute)}, Problem: "it hangs"},
		"Running":                  {Manager: datadir.Manager{PID: 1, Diagnostics: "https://127.0.0.1:1"}},
		"Starting":                 {Manager: datadir.Manager{PID: 1}},
		"Restarting":               {},
		"Restarting in 30s":        {Manager: datadir.Manager{NextStart: at.Add(30 * time.Second)}},
		"Not responding: it hangs": {Manager: datadir.Manager{PID: 1, Diagnostics: "https://127.0.0.1:1"}, Problem: "it hangs"},
	} {
		if got := rowsOf(func(row func(string, any)) { m.rows(row, at) }); !strings.HasPrefix(got, "Manager: "+want+"\n") {
			t.Errorf("got %q, want %s", got, want)
		}
	}
}

// Any answer is one, a refusal too; silence is none.
func TestAnswers(t *testing.T) {
	refuses := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	dir := datadir.Dir(t.TempDir())
	if !responds(t.Context(), refuses.URL, dir) {
		t.Error("without an authority nothing is known, which is no problem")
	}
	if err := os.MkdirAll(dir.PKI(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Path("pki", "ca.crt"), certificateOf(refuses), 0o600); err != nil {
		t.Fatal(err)
	}
	if !responds(t.Context(), refuses.URL, dir) {
		t.Error("a refusal is an answer")
	}
	hangs := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hangs.Close()
	if err := os.WriteFile(dir.Path("pki", "ca.crt"), certificateOf(hangs), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if responds(ctx, hangs.URL, dir) {
		t.Error("silence is no answer")
	}
}

func certificateOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// A process that a signal has stopped is told from one that is slow.
func TestIsStopped(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if management.IsStopped(cmd.Process.Pid) {
		t.Error("it runs")
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); !management.IsStopped(cmd.Process.Pid); <-time.After(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("it is stopped")
		}
	}
}

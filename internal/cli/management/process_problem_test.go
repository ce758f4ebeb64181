package management

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

var testTime = time.Date(2026, 11, 28, 18, 0, 0, 0, time.UTC)

// connected returns a connection for a data directory with a kubeconfig.
func connected(t *testing.T, dir datadir.Dir) *Connection {
	t.Helper()
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}], clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: x, user: {}}]}`
	if err := os.WriteFile(dir.Kubeconfig(), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := (&Flags{DataDir: string(dir)}).Connect(term.Env{Now: func() time.Time { return testTime }, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestProblemOfManagerProcess(t *testing.T) {
	h, err := datadir.Open(datadir.Dir(t.TempDir()), datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	c := connected(t, h.Dir)
	const url, killed = "https://127.0.0.1:1", "the manager exited: it was ended from outside (signal: killed)"
	exitedAt := testTime.Add(-8 * time.Second)
	for name, tc := range map[string]struct {
		manager *datadir.Manager
		cause   string // empty: there is no problem
		since   time.Time
		remedy  string
	}{
		"not started yet":      {manager: nil},
		"starting":             {manager: &datadir.Manager{PID: os.Getpid()}},
		"runs":                 {manager: &datadir.Manager{PID: os.Getpid(), Diagnostics: url}},
		"waits for its start":  {&datadir.Manager{Restarts: 1, LastExit: killed, LastExitAt: exitedAt, NextStart: testTime.Add(12 * time.Second)}, "Restarting, because " + killed, exitedAt, "It is started again in 12s; nothing is reconciled"},
		"starts again":         {&datadir.Manager{PID: os.Getpid(), Restarts: 1, LastExit: killed, LastExitAt: exitedAt}, "Restarting, because " + killed, exitedAt, "It is being started; nothing is reconciled"},
		"exited once":          {manager: &datadir.Manager{PID: os.Getpid(), Diagnostics: url, Restarts: 1, LastExit: killed, LastExitAt: exitedAt}},
		"exits repeatedly":     {&datadir.Manager{PID: os.Getpid(), Diagnostics: url, Restarts: 4, LastExit: killed, LastExitAt: exitedAt}, "Restarted 4 times, the last time because " + killed, exitedAt, "If it exits again, read the end of its log " + h.Log()},
		"exited long ago":      {manager: &datadir.Manager{PID: os.Getpid(), Diagnostics: url, Restarts: 4, LastExit: killed, LastExitAt: testTime.Add(-time.Hour)}},
		"does not respond":     {&datadir.Manager{PID: os.Getpid(), Diagnostics: url, UnresponsiveSince: exitedAt}, "does not respond: this host is busy, or the process hangs", exitedAt, "to have it restarted"},
		"the start takes long": {manager: &datadir.Manager{}},
	} {
		if err := h.WriteRun(datadir.Run{PID: os.Getpid(), Manager: tc.manager}); err != nil {
			t.Fatal(err)
		}
		got, found := c.ProcessProblem()
		if found != (tc.cause != "") {
			t.Errorf("%s: there is a problem: %t (%s)", name, found, got.Root().Message)
			continue
		}
		if root := got.Root(); found && (root.Object.String() != "Manager "+string(h.Dir) || !strings.Contains(root.Message, tc.cause) || !root.Since.Equal(tc.since) || !strings.Contains(got.Remedy.Text, tc.remedy)) {
			t.Errorf("%s: %s: %q since %s, %q", name, root.Object, root.Message, root.Since, got.Remedy.Text)
		}
	}
}

// While the API server does not run, each command reports since when, why, and what ends it.
func TestProblemOfStoppedManagementCluster(t *testing.T) {
	h, err := datadir.Open(datadir.Dir(t.TempDir()), datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	c, refused := connected(t, h.Dir), &net.OpError{Op: "dial", Err: errors.New("refused")}
	if _, found := c.ProcessProblem(); found {
		t.Error("a management cluster that was stopped has a problem")
	}
	lock, _, _, err := datadir.Acquire(h.SupervisorLock(), datadir.Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	supervision := datadir.Supervision{PID: os.Getpid(), Restarts: 1, LastExit: "the kernel killed it", LastExitAt: testTime.Add(-time.Minute), NextStart: testTime.Add(4 * time.Second)}
	if err := datadir.WriteSupervision(h.Dir, supervision); err != nil {
		t.Fatal(err)
	}
	want := "Management cluster " + string(h.Dir) + ", since 60s: Exited: the kernel killed it. It is started again in 4s"
	if got := fault.UserMessage(c.Explain(refused)); got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}

func TestProblemOfFullDisk(t *testing.T) {
	space, since := datadir.Space{Free: 1 << 20, Total: 260 << 20}, testTime.Add(-2*time.Minute)
	for name, tc := range map[string]struct {
		state datadir.State
		want  string
	}{
		"it runs":              {datadir.State{Held: true}, `Management cluster /d: The disk of /d is full (1 of 260 MiB free); the process ends when it cannot write. Free space on this disk: "df -h /d"`},
		"it is supervised":     {datadir.State{Supervision: &datadir.Supervision{LastExitAt: since}}, `Management cluster /d, since 2m: The disk of /d is full (1 of 260 MiB free), so that it does not run. Free space on this disk; the management cluster is then started without a command: "df -h /d"`},
		"it is not supervised": {datadir.State{}, `Management cluster /d: The disk of /d is full (1 of 260 MiB free), so that it does not run. Free space on this disk, then start the management cluster: "slipway up -d"`},
	} {
		p := diskProblem("/d", "slipway up -d", tc.state, space)
		p.time = testTime
		if got := p.text(); got != tc.want || p.isDown == tc.state.Held {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if _, found := readProcessProblem(filepath.Join(t.TempDir(), "none"), "", testTime); found {
		t.Error("a directory that does not exist has a problem")
	}
}

package managerproc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/controlplane/managerproc"
	"github.com/slipwayhq/slipway/internal/fault"
)

// played is the variable in whose presence this program is a manager instead of a test.
const played = "SLIPWAY_TEST_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(played) != "" {
		play()
		return
	}
	os.Exit(m.Run())
}

var (
	pool    = managerproc.Subject{APIVersion: "infrastructure.slipway.dev/v1alpha1", Kind: "LocalMachinePool", Namespace: "team-a", Name: "x", UID: "u"}
	machine = managerproc.Subject{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine", Namespace: "team-b", Name: "m", UID: "v"}
	cluster = managerproc.Subject{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Namespace: "team-a", Name: "s1"}
	calm    = managerproc.Subject{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Namespace: "team-b", Name: "calm"}
)

// play is a manager that reconciles the pool, which makes it do what the test says, and the machine beside it.
func play() {
	var what string
	m, err := managerproc.Attach(os.Stdin, &what, time.Now)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if what == "refuses" {
		_ = m.Ended(fault.New(fault.Invalid, "Reason", "a gate is unknown"))
		os.Exit(2)
	}
	if kind, ok := map[string]fault.Kind{"late": fault.Unreachable, "fails": fault.Transient}[what]; ok {
		_ = m.Ended(fault.New(kind, "Reason", "preparing webhooks: the request ran out of time"))
		os.Exit(1)
	}
	m.Ready("https://127.0.0.1:1")
	fmt.Fprintln(os.Stderr, "hello from", what)
	if until := m.SuspendedUntil(cluster); !until.IsZero() {
		fmt.Fprintln(os.Stderr, "without the cluster")
		select {}
	}
	done, aside := m.Begin(pool)
	if aside > 0 {
		fmt.Fprintln(os.Stderr, "without the pool")
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {}
	}
	fails(what, m)
	done()
	select {}
}

func fails(what string, m *managerproc.Manager) {
	over, _ := m.Begin(machine)
	over() // what has ended is no cause
	switch what {
	case "memory":
		var kept bytes.Buffer
		for {
			kept.Write(bytes.Repeat([]byte{1}, 8<<20))
		}
	case "answer": // beside the pool, which has nothing to do with it
		decoding := m.Decode(cluster)
		decoding.Weigh(200 << 20)
		m.Decode(calm).Weigh(2 << 20)
		fails("memory", m)
	case "panic":
		go func() { panic("a field is missing") }() // beyond what the driver recovers from
		select {}
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "invalid":
		_ = m.Ended(fault.New(fault.Invalid, "Reason", "a gate is unknown"))
		os.Exit(2)
	}
}

// observer collects what Run says.
type observer struct {
	mu       sync.Mutex
	log      bytes.Buffer
	failures []managerproc.Failure
	last     managerproc.Status
	changed  chan struct{}
	ended    chan error // what Run returns
}

func (o *observer) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.poke()
	return o.log.Write(p)
}

func (o *observer) poke() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// until waits for something to have been said.
func (o *observer) until(t *testing.T, what string, f func() bool) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		o.mu.Lock()
		ok := f()
		text := fmt.Sprintf("%+v\n%+v\n%s", o.last, o.failures, o.log.String())
		o.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-o.changed:
		case <-timeout:
			t.Fatalf("waiting for %s: %s", what, text)
		}
	}
}

func run(t *testing.T, what string) (o *observer, stop func() error) {
	t.Helper()
	return runCommand(t, os.Args[0], what)
}

func runCommand(t *testing.T, command, what string) (o *observer, stop func() error) {
	t.Helper()
	t.Setenv(played, "1")
	o = &observer{changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- managerproc.Run(ctx, managerproc.Config{
			Command: []string{command}, Instructions: what, MemoryLimit: 256 << 20, Log: o, Now: time.Now,
			Ready: func() {},
			Changed: func(s managerproc.Status) {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.last = s
				o.poke()
			},
			Failed: func(f managerproc.Failure) {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.failures = append(o.failures, f)
				o.poke()
			},
		})
	}()
	o.ended = ended
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(cancel)
	return o, stop
}

// H3: an object that makes the manager use memory without end, or crash, is named, and after the second time the manager
// goes on without it.
func TestObjectThatEndsTheManager(t *testing.T) {
	for what, says := range map[string]string{"memory": "limit of 256 MiB", "panic": "panic: a field is missing"} {
		t.Run(what, func(t *testing.T) {
			o, stop := run(t, what)
			o.until(t, "the manager to go on without the pool", func() bool { return strings.Contains(o.log.String(), "without the pool") })
			o.until(t, "where it serves diagnostics", func() bool { return o.last.Diagnostics == "https://127.0.0.1:1" })
			o.until(t, "the failures", func() bool { return len(o.failures) == 2 })
			for i, f := range o.failures {
				if !strings.Contains(f.String(), says) || !strings.Contains(f.String(), "it was reconciling LocalMachinePool team-a/x") ||
					strings.Contains(f.String(), machine.Name+",") {
					t.Errorf("failure %d: %s", i, f)
				}
				if diff := cmp.Diff([]managerproc.Subject{pool}, f.Suspects); diff != "" {
					t.Error(diff)
				}
			}
			if len(o.failures[0].NewlyQuarantined) != 0 || len(o.failures[1].NewlyQuarantined) != 1 || o.last.Restarts != 2 || o.last.PID == 0 {
				t.Errorf("%+v, %+v", o.failures, o.last)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A cluster whose answers make the manager use memory without end is blamed after one crash, and neither the objects that are
// reconciled beside it nor clusters that sent little.
func TestAnswerThatEndsTheManager(t *testing.T) {
	o, stop := run(t, "answer")
	o.until(t, "the manager to continue without the cluster", func() bool { return strings.Contains(o.log.String(), "without the cluster") })
	o.until(t, "the failure", func() bool { return len(o.failures) == 1 })
	f := o.failures[0]
	blamed := cluster
	blamed.Work = managerproc.Decoding
	if diff := cmp.Diff([]managerproc.Subject{blamed}, f.Suspects); diff != "" || len(f.NewlyQuarantined) != 1 || f.NewlyQuarantined[0].Subject != blamed {
		t.Errorf("%+v: %s", f, diff)
	}
	if want := "it was decoding responses from the API of Cluster team-a/s1"; !strings.Contains(f.String(), want) {
		t.Errorf("%s, want: %s", f, want)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Who kills the manager does not blame what it was doing.
func TestKilledByAPerson(t *testing.T) {
	o, _ := run(t, "killed")
	o.until(t, "three ends", func() bool { return len(o.failures) >= 3 })
	for _, f := range o.failures {
		if len(f.Suspects)+len(f.NewlyQuarantined) != 0 || !strings.Contains(f.String(), "another process stopped it") {
			t.Errorf("%+v", f)
		}
	}
	if pauses := []time.Duration{o.failures[0].Pause, o.failures[1].Pause, o.failures[2].Pause}; !slices.IsSorted(pauses) || pauses[0] == pauses[2] {
		t.Errorf("pauses %v do not grow", pauses)
	}
}

// A manager that cannot start for a reason that a person has to remove ends Run, with its error; once it has started, it is
// started again.
func TestErrors(t *testing.T) {
	refused, _ := run(t, "refuses")
	if f := fault.As(<-refused.ended); f == nil || f.Kind != fault.Invalid || f.Reason != "Reason" || f.Message != "a gate is unknown" {
		t.Errorf("%+v", f)
	}
	o, _ := run(t, "invalid")
	o.until(t, "an end", func() bool { return len(o.failures) > 0 })
	if f := o.failures[0]; !strings.Contains(f.String(), "a gate is unknown") || len(f.Suspects) != 0 {
		t.Errorf("%s", f)
	}
}

// A first start that meets an API server which does not answer in time is tried again, one that fails for no known reason a few times.
func TestStartThatMayPass(t *testing.T) {
	o, stop := run(t, "late")
	o.until(t, "more starts than those of an unknown reason", func() bool { return len(o.failures) > 3 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	o, _ = run(t, "fails")
	if f := fault.As(<-o.ended); f == nil || f.Kind != fault.Transient || len(o.failures) != 2 {
		t.Errorf("%+v after %d starts", f, len(o.failures)+1)
	}
}

// The manager ends with Run, and the kernel would choose it before the API server.
func TestStop(t *testing.T) {
	o, stop := run(t, "waits")
	pid := 0
	o.until(t, "a manager", func() bool { pid = o.last.PID; return strings.Contains(o.log.String(), "hello") && pid != 0 })
	if score, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/oom_score_adj"); err != nil || strings.TrimSpace(string(score)) < "500" {
		t.Errorf("oom_score_adj %q, %v: the kernel does not choose it first", score, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", pid, err)
	}
}

// A manager that cannot be started again for a while does not end Run, and the API server with it.
func TestStartedAgainLater(t *testing.T) {
	command := filepath.Join(t.TempDir(), "manager")
	if err := os.Symlink(os.Args[0], command); err != nil {
		t.Fatal(err)
	}
	o, stop := runCommand(t, command, "killed")
	o.until(t, "an end", func() bool { return len(o.failures) > 0 })
	if err := os.Remove(command); err != nil {
		t.Fatal(err)
	}
	last := func() string { return o.failures[len(o.failures)-1].How }
	o.until(t, "a start that fails", func() bool { return strings.Contains(last(), "could not be restarted") })
	if err := os.Symlink(os.Args[0], command); err != nil {
		t.Fatal(err)
	}
	o.until(t, "a start", func() bool { return strings.Contains(last(), "another process stopped it") })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

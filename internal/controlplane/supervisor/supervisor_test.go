package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	controlplanesupervisor "github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
	"github.com/slipwayhq/slipway/internal/fault"
)

// asChild makes this test binary play a control plane: it takes the lock, says
// what it is, keeps a file as its data, and ends when asked.
const asChild = "play-control-plane"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asChild {
		os.Exit(play(os.Args[2], 0))
	}
	if len(os.Args) == 5 && os.Args[1] == asChild && os.Args[3] == "--user" {
		user, _ := strconv.Atoi(os.Args[4])
		os.Exit(play(os.Args[2], user))
	}
	os.Exit(m.Run())
}

func play(path string, user int) int {
	c, err := processconfig.Load(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f := processconfig.Folder(filepath.Dir(path))
	if user != 0 {
		if err := errors.Join(uidisolation.ChownFolder(string(f), user), uidisolation.SwitchUser(user)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		f = processconfig.WorkingDir
	}
	if c.Cluster == "broken" {
		fmt.Fprintln(os.Stderr, "etcd: disk full")
		return 7
	}
	if c.Cluster == "explains" {
		_ = f.WriteEnd("unknown api groups nosuch.example.com")
		return 1
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	lock, _, held, err := datadir.Acquire(f.Lock(), datadir.Holder{PID: os.Getpid(), Since: time.Now()})
	if err != nil || held {
		fmt.Fprintln(os.Stderr, "lock:", held, err)
		return 1
	}
	defer func() { _ = lock.Release() }()
	if err := f.WriteRun(processconfig.Run{PID: os.Getpid(), Since: time.Now(), Version: c.Version, Config: c.Hash()}); err != nil {
		return 1
	}
	if c.Cluster == "hostile" {
		return beHostile(f)
	}
	if c.Cluster == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
		select {}
	}
	<-asked
	return 0
}

func config(cluster string) processconfig.Config {
	return processconfig.Config{
		Cluster: cluster, Version: "v1.36.3", Endpoint: "127.0.0.9:6443",
		ServiceCIDRs: []string{"10.1.0.0/16"}, PodCIDRs: []string{"10.2.0.0/16"},
	}
}

func supervisor(t *testing.T, root string) *controlplanesupervisor.Supervisor {
	t.Helper()
	return supervisorAt(t, root, time.Now)
}

func supervisorAt(t *testing.T, root string, now func() time.Time) *controlplanesupervisor.Supervisor {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := controlplanesupervisor.New(t.Context(), controlplanesupervisor.Config{Root: root, Command: []string{exe, asChild}, Versions: func() []string { return []string{"v1.36.3"} }, Now: now})
	t.Cleanup(func() {
		s.Close()
		if err := controlplanesupervisor.StopAll(context.Background(), root); err != nil {
			t.Errorf("stop what is left: %v", err)
		}
	})
	return s
}

// await polls, because a process is a process.
func await(t *testing.T, s *controlplanesupervisor.Supervisor, name, what string, is func(controlplanesupervisor.Status) bool) controlplanesupervisor.Status {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		st, _, err := s.Status(name)
		if err != nil {
			t.Fatal(err)
		}
		if is(st) {
			return st
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not happen: %+v", what, st)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func ensure(t *testing.T, s *controlplanesupervisor.Supervisor, name string, c processconfig.Config) {
	t.Helper()
	if _, err := s.Ensure(t.Context(), name, c); err != nil {
		t.Fatal(err)
	}
}

func running(st controlplanesupervisor.Status) bool { return st.Running && st.Version != "" }

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestEnsureStartsAndChangesAreTold(t *testing.T) {
	s := supervisor(t, t.TempDir())
	told := make(chan string, 100)
	cancel := s.Subscribe(func(name string) { told <- name })
	ensure(t, s, "ns.demo", config("demo"))
	st := await(t, s, "ns.demo", "a running process", running)
	if st.Endpoint != "127.0.0.9:6443" || st.Memory == 0 || st.Restarts != 0 {
		t.Errorf("status: %+v", st)
	}
	if name := <-told; name != "ns.demo" {
		t.Errorf("told of %q", name)
	}
	cancel()
	ensure(t, s, "ns.demo", config("demo"))
	if again := await(t, s, "ns.demo", "a running process", running); again.PID != st.PID {
		t.Error("started again though nothing changed")
	}
}

func TestKilledProcessIsStartedAgain(t *testing.T) {
	s := supervisor(t, t.TempDir())
	ensure(t, s, "ns.demo", config("demo"))
	first := await(t, s, "ns.demo", "a running process", running)
	data := filepath.Join(string(s.Folder("ns.demo")), "etcd-data")
	if err := os.WriteFile(data, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	kill(t, first.PID)
	st := await(t, s, "ns.demo", "another process", func(st controlplanesupervisor.Status) bool { return running(st) && st.PID != first.PID })
	if st.Restarts != 1 || st.LastExit != "signal: killed" {
		t.Errorf("status: %+v", st)
	}
	if got, err := os.ReadFile(data); err != nil || string(got) != "precious" {
		t.Errorf("data: %q, %v", got, err)
	}
}

func TestProcessIsTakenOverFromADeadSupervisor(t *testing.T) {
	root := t.TempDir()
	earlier := supervisor(t, root)
	ensure(t, earlier, "ns.demo", config("demo"))
	first := await(t, earlier, "ns.demo", "a running process", running)
	earlier.Close() // as when its process is killed: the child is not ended

	s := supervisor(t, root)
	ensure(t, s, "ns.demo", config("demo"))
	if st := await(t, s, "ns.demo", "the same process", running); st.PID != first.PID {
		t.Fatalf("process %d was started though %d ran", st.PID, first.PID)
	}
	kill(t, first.PID)
	st := await(t, s, "ns.demo", "another process", func(st controlplanesupervisor.Status) bool { return running(st) && st.PID != first.PID })
	if st.Restarts != 1 || !strings.Contains(st.LastExit, "earlier slipway") {
		t.Errorf("status: %+v", st)
	}
}

func TestDeathBeforeTheFirstLook(t *testing.T) {
	root := t.TempDir()
	earlier := supervisor(t, root)
	ensure(t, earlier, "ns.demo", config("demo"))
	first := await(t, earlier, "ns.demo", "a running process", running)
	earlier.Close()

	var once sync.Once
	s := supervisorAt(t, root, func() time.Time { // it knows the process, and has yet to look again
		once.Do(func() {
			if was, err := childproc.Terminate(t.Context(), earlier.Folder("ns.demo").Lock(), 20*time.Second); err != nil || !was {
				t.Errorf("terminated %v, %v", was, err)
			}
		})
		return time.Now()
	})
	ensure(t, s, "ns.demo", config("demo"))
	st := await(t, s, "ns.demo", "another process", func(st controlplanesupervisor.Status) bool { return running(st) && st.PID != first.PID })
	if st.Restarts != 1 || !strings.Contains(st.LastExit, "earlier slipway") {
		t.Errorf("nobody has asked for its end: %+v", st)
	}
}

func TestAnotherConfigurationRestarts(t *testing.T) {
	s := supervisor(t, t.TempDir())
	ensure(t, s, "ns.demo", config("demo"))
	first := await(t, s, "ns.demo", "a running process", running)
	changed := config("demo")
	changed.APIServer = []string{"--v=2"}
	ensure(t, s, "ns.demo", changed)
	st := await(t, s, "ns.demo", "another process", func(st controlplanesupervisor.Status) bool { return running(st) && st.PID != first.PID })
	if st.Restarts != 0 || st.LastExit != "" {
		t.Errorf("a restart that was asked for counts as a death: %+v", st)
	}
}

func TestProcessThatEndsAtOnceIsReported(t *testing.T) {
	s := supervisor(t, t.TempDir())
	ensure(t, s, "ns.demo", config("broken"))
	st := await(t, s, "ns.demo", "several restarts", func(st controlplanesupervisor.Status) bool { return st.Restarts >= 3 })
	if st.LastExit != "exit status 7" || len(st.LastLog) == 0 || st.LastLog[len(st.LastLog)-1] != "etcd: disk full" {
		t.Errorf("status: %+v", st)
	}
	all, err := controlplanesupervisor.Inspect(filepath.Dir(string(s.Folder("ns.demo"))))
	if err != nil || len(all) != 1 || all[0].LastExit != "exit status 7" {
		t.Errorf("from outside: %+v, %v", all, err)
	}
}

// The reason that a process gives is how it ended, and not its exit status.
func TestProcessThatExplainsItsEnd(t *testing.T) {
	s := supervisor(t, t.TempDir())
	ensure(t, s, "ns.demo", config("explains"))
	st := await(t, s, "ns.demo", "a restart", func(st controlplanesupervisor.Status) bool { return st.Restarts >= 1 })
	if st.LastExit != "unknown api groups nosuch.example.com" {
		t.Errorf("status: %+v", st)
	}
}

// A process that hangs is ended, and that counts and has a reason as any other death. The clock of the supervisor goes faster here.
func TestProcessThatHangs(t *testing.T) {
	began := time.Now()
	s := supervisorAt(t, t.TempDir(), func() time.Time { return began.Add(200 * time.Since(began)) })
	ensure(t, s, "ns.demo", config("demo"))
	first := await(t, s, "ns.demo", "a running process", running)
	st := await(t, s, "ns.demo", "another process", func(st controlplanesupervisor.Status) bool { return running(st) && st.PID != first.PID })
	if st.Restarts != 1 || !strings.HasPrefix(st.LastExit, "it was stopped, because it did not become ready in time") {
		t.Errorf("status: %+v", st)
	}
}

func TestStopAndRemove(t *testing.T) {
	s := supervisor(t, t.TempDir())
	ensure(t, s, "ns.demo", config("demo"))
	first := await(t, s, "ns.demo", "a running process", running)
	if err := s.Stop(t.Context(), "ns.demo"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first.PID, 0); err != syscall.ESRCH {
		t.Errorf("process %d is still there after Stop: %v", first.PID, err)
	}
	ensure(t, s, "ns.demo", config("demo"))
	second := await(t, s, "ns.demo", "a running process", func(st controlplanesupervisor.Status) bool { return running(st) && st.PID != first.PID })
	if second.Restarts != 0 {
		t.Errorf("a stop that was asked for counts as a death: %+v", second)
	}
	if err := s.Remove(t.Context(), "ns.demo"); err != nil {
		t.Fatal(err)
	}
	if _, found, err := s.Status("ns.demo"); found || err != nil {
		t.Errorf("found after Remove: %v, %v", found, err)
	}
	if _, err := os.Stat(string(s.Folder("ns.demo"))); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := s.Remove(t.Context(), "ns.demo"); err != nil {
		t.Errorf("remove twice: %v", err)
	}
}

func TestRemoveRightAfterEnsureLeavesNothing(t *testing.T) {
	s := supervisor(t, t.TempDir())
	for range 10 {
		ensure(t, s, "ns.demo", config("demo"))
		if err := s.Remove(t.Context(), "ns.demo"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(string(s.Folder("ns.demo"))); !os.IsNotExist(err) {
			t.Fatalf("the folder is still there: %v", err)
		}
	}
}

func TestStopAllEndsWhatAnEarlierSlipwayLeft(t *testing.T) {
	root := t.TempDir()
	s := supervisor(t, root)
	var pids []int
	for _, name := range []string{"a.one", "a.two"} {
		ensure(t, s, name, config("demo"))
		pids = append(pids, await(t, s, name, "a running process", running).PID)
	}
	s.Close()
	if err := controlplanesupervisor.StopAll(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if _, held, err := datadir.Probe(string(s.Folder("a.one").Lock())); held || err != nil {
			t.Errorf("process %d still holds its lock (%v)", pid, err)
		}
	}
}

func TestTerminateKillsAProcessThatDoesNotListen(t *testing.T) {
	s := supervisor(t, t.TempDir())
	ensure(t, s, "ns.demo", config("stubborn"))
	await(t, s, "ns.demo", "a running process", running)
	s.Close()
	was, err := childproc.Terminate(t.Context(), s.Folder("ns.demo").Lock(), 200*time.Millisecond)
	if err != nil || !was {
		t.Errorf("held %v, %v", was, err)
	}
	if _, held, err := datadir.Probe(s.Folder("ns.demo").Lock()); held || err != nil {
		t.Errorf("the lock is still held (%v)", err)
	}
}

func TestEnsureRefuses(t *testing.T) {
	wrongVersion, wrongEndpoint := config("demo"), config("demo")
	wrongVersion.Version, wrongEndpoint.Endpoint = "v1.35.0", "example:6443"
	tests := map[string]struct {
		name   string
		config processconfig.Config
		kind   fault.Kind
		says   string
	}{
		"a version that is not included": {"ns.demo", wrongVersion, fault.Invalid, "which has v1.36.3"},
		"a host name as endpoint":        {"ns.demo", wrongEndpoint, fault.Invalid, "IP address of this machine"},
		"a name with a slash":            {"../demo", config("demo"), fault.Bug, "cannot be the name"},
	}
	for name, test := range tests {
		s := supervisor(t, t.TempDir())
		_, err := s.Ensure(t.Context(), test.name, test.config)
		if fault.KindOf(err) != test.kind || err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A control plane has nothing of the operator's environment, cannot gain rights, and leaves no core behind.
func TestConfined(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	t.Setenv("HTTPS_PROXY", "http://user:s3cret@proxy")
	t.Setenv("GOMEMLIMIT", "12345678901")
	t.Setenv("TZ", "UTC")
	s := supervisor(t, t.TempDir())
	ensure(t, s, "a", config("a"))
	st := await(t, s, "a", "the start", running)
	read := func(file string) string {
		t.Helper()
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", st.PID, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := strings.Trim(read("environ"), "\x00"); !slices.Contains(strings.Split(got, "\x00"), "TZ=UTC") {
		t.Errorf("the environment is not the one of the test: %q", got)
	}
	for entry := range strings.SplitSeq(strings.Trim(read("environ"), "\x00"), "\x00") {
		if name, _, _ := strings.Cut(entry, "="); !slices.Contains([]string{"TZ", "TMPDIR", "GOGC"}, name) {
			t.Errorf("the process has %s", name)
		}
	}
	if !strings.Contains(read("status"), "NoNewPrivs:\t1\n") {
		t.Errorf("rights can be gained:\n%s", read("status"))
	}
	for _, line := range strings.Split(read("limits"), "\n") {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "Max core file size") && !slices.Equal(fields[4:6], []string{"0", "0"}):
			t.Error(line)
		case strings.HasPrefix(line, "Max open files"):
			if n, err := strconv.Atoi(fields[4]); err != nil || n > 65536 || n < 256 {
				t.Error(line)
			}
		}
	}
	if own, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(syscall.Gettid()) + "/status"); err != nil || strings.Contains(string(own), "NoNewPrivs:\t1\n") {
		t.Errorf("this process lost rights as well: %v", err)
	}
}

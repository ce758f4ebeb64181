package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	controlplanesupervisor "github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// victimFile has, in the folder of a hostile control plane, the number of the process that it names as its own.
const victimFile = "victim"

// beHostile is what a control plane does that was taken over: its lock names another process, or leads to the lock of another program, its record is
// garbage, its log leads to a file of root, it leaves a process behind, and it does not end when it is asked to.
func beHostile(f processconfig.Folder) int {
	signal.Ignore(syscall.SIGTERM)
	text, err := os.ReadFile(filepath.Join(string(f), victimFile))
	if err != nil {
		return 1
	}
	how := strings.Fields(string(text))
	victim, outside := how[0], how[1]
	orphan := exec.Command("/bin/sh", "-c", "trap '' TERM; while :; do sleep 1000; done")
	orphan.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	errs := []error{orphan.Start(), os.WriteFile(filepath.Join(string(f), "run.json"), []byte("garbage"), 0o600)}
	switch how[2] {
	case "names":
		errs = append(errs, os.WriteFile(f.Lock(), []byte(`{"pid":`+victim+`}`), 0o600)) // it stays held
	case "links":
		errs = append(errs, os.Remove(f.Lock()), os.Symlink(outside, f.Lock()))
	}
	errs = append(errs, os.Remove(f.Log()), os.Symlink(outside, f.Log()), os.Symlink(outside, f.Log()+".1"))
	if err := errors.Join(append(errs, os.WriteFile(filepath.Join(string(f), "done"), nil, 0o600))...); err != nil {
		return 1
	}
	select {}
}

// withUsers is a supervisor that gives control planes users of their own; nil where this is not possible, because the tests are not run as root.
func withUsers(t *testing.T, root string) *controlplanesupervisor.Supervisor {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := controlplanesupervisor.New(t.Context(), controlplanesupervisor.Config{
		Root: root, Command: []string{exe, asChild}, Versions: func() []string { return []string{"v1.36.3"} }, Now: time.Now, SeparateUsers: true,
	})
	t.Cleanup(func() {
		s.Close()
		if err := controlplanesupervisor.StopAll(context.Background(), root); err != nil {
			t.Errorf("stop what is left: %v", err)
		}
	})
	if err := uidisolation.Unavailable(root); err != nil {
		if !errors.Is(err, uidisolation.ErrNotRoot) {
			t.Fatal(err)
		}
		ensure(t, s, "ns.demo", config("demo"))
		if st := await(t, s, "ns.demo", "a running process", running); st.User != 0 {
			t.Errorf("it runs as user %d", st.User)
		}
		return nil
	}
	return s
}

// Each has a user of its own, which it keeps over restarts and supervisors, and what ran as root before runs as that from its next start.
func TestOwnUsers(t *testing.T) {
	root := t.TempDir()
	s := withUsers(t, root)
	if s == nil {
		return
	}
	before := supervisor(t, root)
	ensure(t, before, "ns.demo", config("demo"))
	first := await(t, before, "ns.demo", "a running process", running)
	before.Close()
	data := filepath.Join(string(s.Folder("ns.demo")), "etcd", "data")
	if _, err := datadir.WriteFile(data, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	ensure(t, s, "ns.demo", config("demo"))
	ensure(t, s, "ns.other", config("other"))
	if st := await(t, s, "ns.demo", "the takeover", running); st.PID != first.PID || st.User != 0 {
		t.Errorf("what runs as root is not restarted: %+v", st)
	}
	kill(t, first.PID)
	hasUser := func(st controlplanesupervisor.Status) bool { return running(st) && st.User != 0 }
	demo, other := await(t, s, "ns.demo", "a user", hasUser), await(t, s, "ns.other", "a user", hasUser)
	if demo.User == other.User || !uidisolation.IsControlPlaneUser(demo.User) {
		t.Errorf("users %d and %d", demo.User, other.User)
	}
	var st unix.Stat_t
	if err := unix.Lstat(data, &st); err != nil || int(st.Uid) != demo.User {
		t.Errorf("its data belongs to %d, %v", st.Uid, err)
	}
	s.Close()
	again := withUsers(t, root)
	ensure(t, again, "ns.demo", config("demo"))
	if st := await(t, again, "ns.demo", "the takeover", running); st.PID != demo.PID || st.User != demo.User {
		t.Errorf("taken over: %+v, was %+v", st, demo)
	}
	ensure(t, again, "ns.demo", config("changed"))
	restarted := await(t, again, "ns.demo", "another configuration", func(st controlplanesupervisor.Status) bool { return running(st) && st.PID != demo.PID })
	if restarted.User != demo.User || restarted.Restarts != 1 {
		t.Errorf("restarted: %+v, was %+v", restarted, demo)
	}
	if err := again.Remove(t.Context(), "ns.demo"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(string(s.Folder("ns.demo"))); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
}

// A control plane that was taken over is ended with everything that it started, and does not make a program of root end another process, write or
// read elsewhere, or fail for the others.
func TestHostileControlPlane(t *testing.T) {
	for _, how := range []string{"names", "links"} {
		t.Run(how, func(t *testing.T) { testHostile(t, how) })
	}
}

func testHostile(t *testing.T, how string) {
	root := t.TempDir()
	s := withUsers(t, filepath.Join(root, "planes"))
	if s == nil {
		return
	}
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	}()
	outside := filepath.Join(root, "lock") // of the management cluster
	lock, _, _, err := datadir.Acquire(outside, datadir.Holder{PID: victim.Process.Pid})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	was, err := os.ReadFile(outside)
	if err != nil {
		t.Fatal(err)
	}
	folder := s.Folder("ns.demo")
	text := fmt.Sprintf("%d %s %s", victim.Process.Pid, outside, how)
	if _, err := datadir.WriteFile(filepath.Join(string(folder), victimFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ensure(t, s, "ns.good", config("good"))
	await(t, s, "ns.good", "a running process", running)
	ensure(t, s, "ns.demo", config("hostile"))
	await(t, s, "ns.good", "that the other one is hostile", func(controlplanesupervisor.Status) bool {
		_, err := os.Lstat(filepath.Join(string(folder), "done"))
		return err == nil
	})
	user, own := uidisolation.UserOfFolder(string(folder))
	if !own || processesOf(t, user) < 2 {
		t.Fatalf("user %d (%v) has %d processes", user, own, processesOf(t, user))
	}
	isUnharmed := func() {
		t.Helper()
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", victim.Process.Pid)); err != nil || !strings.Contains(string(status), "\nState:\tS") {
			t.Errorf("the process that it named does not run: %v\n%s", err, status)
		}
		if is, err := os.ReadFile(outside); err != nil || string(is) != string(was) {
			t.Errorf("the file of root: %q, %v, was %q", is, err, was)
		}
		if st, _, err := s.Status("ns.good"); err != nil || !running(st) || st.Restarts != 0 {
			t.Errorf("the other one: %+v, %v", st, err)
		}
	}
	if all, err := s.List(); err != nil || len(all) != 2 {
		t.Errorf("all: %v, %v", all, err)
	}
	if all, err := controlplanesupervisor.Inspect(filepath.Dir(string(folder))); err != nil || len(all) != 2 || all[0].Problem == "" || all[1].Problem != "" {
		t.Errorf("inspected: %+v, %v", all, err)
	}
	if lines, err := childproc.TailLog(folder.Log(), 5); err == nil {
		t.Errorf("its log is read: %q", lines)
	}
	if err := controlplanesupervisor.StopFolder(t.Context(), folder, 0); err != nil {
		t.Error(err)
	}
	isUnharmed()
	if err := s.Remove(t.Context(), "ns.demo"); err != nil {
		t.Error(err)
	}
	if n := processesOf(t, user); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	isUnharmed()
}

// processesOf counts the processes of a user that have not ended.
func processesOf(t *testing.T, user int) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, _ := os.ReadFile(path)
		if strings.Contains(string(text), fmt.Sprintf("\nUid:\t%d\t", user)) && !strings.Contains(string(text), "\nState:\tZ") {
			n++
		}
	}
	return n
}

// A lock that a process of another user holds, to which the control plane has handed it, neither ends that process nor keeps the control plane from
// being removed.
func TestLockHandedToAnother(t *testing.T) {
	s := withUsers(t, t.TempDir())
	if s == nil {
		return
	}
	ensure(t, s, "ns.demo", config("demo"))
	st := await(t, s, "ns.demo", "a running process", running)
	folder := s.Folder("ns.demo")
	if err := os.Remove(folder.Lock()); err != nil {
		t.Fatal(err)
	}
	lock, _, held, err := datadir.Acquire(folder.Lock(), datadir.Holder{PID: os.Getpid()})
	if err != nil || held {
		t.Fatalf("held %v, %v", held, err)
	}
	defer func() { _ = lock.Release() }()
	if err := s.Stop(t.Context(), "ns.demo"); err != nil {
		t.Fatal(err)
	}
	if n := processesOf(t, st.User); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if err := s.Remove(t.Context(), "ns.demo"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(string(folder)); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
}

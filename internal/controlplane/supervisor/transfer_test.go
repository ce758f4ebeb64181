package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	controlplanesupervisor "github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/fault"
)

// slipway is a supervisor of a data directory of its own.
type slipway struct {
	*controlplanesupervisor.Supervisor
	dir  datadir.Dir
	book *hosttransfer.Store
}

func (s slipway) folder(name string) string { return filepath.Join(s.dir.Planes(), name) }

func newSlipway(t *testing.T, instance string) slipway {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := slipway{dir: datadir.Dir(t.TempDir())}
	s.book = hosttransfer.Open(s.dir, instance)
	s.Supervisor = controlplanesupervisor.New(t.Context(), controlplanesupervisor.Config{
		Root: s.dir.Planes(), Command: []string{exe, asChild}, Versions: func() []string { return []string{"v1.36.3"} }, Now: time.Now, Transfers: s.book,
	})
	t.Cleanup(func() {
		s.Close()
		if err := controlplanesupervisor.StopAll(context.Background(), s.dir.Planes()); err != nil {
			t.Errorf("stop what is left: %v", err)
		}
	})
	return s
}

// supervised waits for the lock that a supervisor holds, and takes it.
func untilReleased(t *testing.T, folder string) *datadir.Lock {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		lock, _, held, err := datadir.Acquire(hosttransfer.SupervisorLock(folder), datadir.Holder{PID: os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		if !held {
			return lock
		}
	}
	t.Fatal("the supervisor does not let the folder go")
	return nil
}

func isHandedOver(err error) bool {
	f := fault.As(err)
	return f != nil && f.Kind == fault.Conflict && f.Reason == controlplanesupervisor.ReasonTransferred
}

// A control plane goes from one slipway to another without noticing, and the first one neither starts, ends nor removes it any more.
func TestHandedOver(t *testing.T) {
	a, b := newSlipway(t, "a"), newSlipway(t, "b")
	ensure(t, a.Supervisor, "x", config("c"))
	first := await(t, a.Supervisor, "x", "the start", running)
	if !first.Supervised {
		t.Error("it is not supervised")
	}
	record := hosttransfer.Record{Cluster: "ns/x", UID: "u", From: "a", To: "b", Planes: []string{"x"}}
	if err := a.book.BeginTransfer(record); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Ensure(t.Context(), "x", config("other")); !isHandedOver(err) {
		t.Errorf("while it is being given, another configuration: %v", err)
	}
	if err := a.Remove(t.Context(), "x"); !isHandedOver(err) {
		t.Errorf("while it is being given, its removal: %v", err)
	}
	if err := hosttransfer.AssignSupervisor(a.folder("x"), "b"); err != nil {
		t.Fatal(err)
	}
	lock := untilReleased(t, a.folder("x"))
	await(t, a.Supervisor, "x", "that it is let go", func(st controlplanesupervisor.Status) bool { return !st.Supervised && st.PID == first.PID })
	if err := datadir.Rename(a.folder("x"), b.folder("x")); err != nil {
		t.Fatal(err)
	}
	ensure(t, b.Supervisor, "x", config("c"))
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	untilSupervised(t, b.folder("x"))
	if st := await(t, b.Supervisor, "x", "the takeover", running); st.PID != first.PID || st.Restarts != 0 {
		t.Errorf("got %+v, want process %d", st, first.PID)
	}
	if _, found, err := a.Status("x"); found || err != nil {
		t.Errorf("the first has it still: %v, %v", found, err)
	}
	kill(t, first.PID)
	await(t, b.Supervisor, "x", "its restart by the second", func(st controlplanesupervisor.Status) bool {
		return running(st) && st.PID != first.PID && st.Restarts == 1
	})
	if entries, err := os.ReadDir(a.dir.Planes()); len(entries) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := a.book.FinishTransfer(record); err != nil {
		t.Fatal(err)
	}
	ensure(t, a.Supervisor, "x", config("another")) // of the same name
	await(t, a.Supervisor, "x", "the start of another one", running)
}

// untilSupervised waits until a supervisor holds the folder.
func untilSupervised(t *testing.T, folder string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, held, err := datadir.Probe(hosttransfer.SupervisorLock(folder)); err != nil {
			t.Fatal(err)
		} else if held {
			return
		}
	}
	t.Fatal("no supervisor takes the folder")
}

// A hand-over that is taken back before the folder has moved leaves the control plane where it was: it is kept running once it is
// asked for.
func TestHandOverTakenBack(t *testing.T) {
	a := newSlipway(t, "a")
	ensure(t, a.Supervisor, "x", config("c"))
	first := await(t, a.Supervisor, "x", "the start", running)
	record := hosttransfer.Record{Cluster: "ns/x", UID: "u", From: "a", To: "b", Planes: []string{"x"}}
	for _, err := range []error{a.book.BeginTransfer(record), hosttransfer.AssignSupervisor(a.folder("x"), "b"), untilReleased(t, a.folder("x")).Release()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	await(t, a.Supervisor, "x", "that it is let go", func(st controlplanesupervisor.Status) bool { return !st.Supervised })
	for _, err := range []error{hosttransfer.UnassignSupervisor(a.folder("x")), a.book.CancelTransfer(record)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ensure(t, a.Supervisor, "x", config("c"))
	await(t, a.Supervisor, "x", "the same process", func(st controlplanesupervisor.Status) bool { return st.Supervised && st.PID == first.PID })
	if err := a.Remove(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}

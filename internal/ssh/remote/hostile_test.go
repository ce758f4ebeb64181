package remote_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// ends fails the test if a call does not end. It returns the error of the call.
func ends(t *testing.T, call func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the call does not end")
		return nil
	}
}

// TestFrozenHost covers a host that keeps its connection, but does not even confirm that a session is closed.
func TestFrozenHost(t *testing.T) {
	limits := remote.Limits{Keepalive: time.Hour, Stall: 200 * time.Millisecond}
	t.Run("script", func(t *testing.T) {
		s := sshtest.Start(t)
		h := connect(t, newPool(t, limits), s.Target())
		ctx, cancel := context.WithCancel(t.Context())
		s.Handle("boot-id", func(sshtest.Call) sshtest.Result {
			s.Freeze()
			cancel()
			<-t.Context().Done()
			return sshtest.Result{}
		})
		err := ends(t, func() error {
			_, err := h.BootID(ctx)
			return err
		})
		if fault.KindOf(err) != fault.Unreachable {
			t.Errorf("%v", err)
		}
	})
	t.Run("file", func(t *testing.T) {
		s := sshtest.Start(t)
		h := connect(t, newPool(t, limits), s.Target())
		if _, err := h.ReadRecord(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Freeze()
		err := ends(t, func() error {
			_, err := h.ReadRecord(t.Context())
			return err
		})
		if fault.KindOf(err) != fault.Unreachable {
			t.Errorf("%v", err)
		}
	})
}

func TestRecordIsNoPipe(t *testing.T) {
	s := sshtest.Start(t)
	s.WriteFile("/etc/slipway/x", "")
	if err := syscall.Mkfifo(s.Path("/etc/slipway/machine.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	err := ends(t, func() error {
		_, err := h.ReadRecord(t.Context())
		return err
	})
	if f := fault.As(err); f == nil || f.Reason != remote.ReasonInvalidRecord {
		t.Errorf("%v", err)
	}
}

// TestWaitingEndsWithContext covers callers that wait for another one, which uses the same connection.
func TestWaitingEndsWithContext(t *testing.T) {
	s := sshtest.Start(t)
	checking, release := make(chan struct{}, 9), make(chan struct{})
	s.Handle("privileges", func(sshtest.Call) sshtest.Result {
		checking <- struct{}{}
		<-release
		return sshtest.Result{Output: "0\n"}
	})
	pool := newPool(t, remote.Limits{})
	first := make(chan error, 1)
	go func() {
		_, err := pool.Connect(t.Context(), s.Target())
		first <- err
	}()
	<-checking
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := ends(t, func() error {
		_, err := pool.Connect(ctx, s.Target())
		return err
	})
	if fault.KindOf(err) != fault.Unreachable || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("the other caller is not affected: %v", err)
	}
}

func TestConnectionLostBeforeTransfer(t *testing.T) {
	s := sshtest.Start(t)
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	s.CutFiles()
	if _, err := h.ReadRecord(t.Context()); err != nil {
		t.Errorf("a connection that is lost is opened again: %v", err)
	}
}

// TestDataIsDeleted runs the script of the unit with data that does not end.
func TestDataIsDeleted(t *testing.T) {
	s, h := sandbox(t, claim)
	record(t, h)
	if err := h.StartBootstrap(t.Context(), bootstrapOf("#cloud-config\nruncmd: [\"echo hello\"]\n")); err != nil {
		t.Fatal(err)
	}
	s.WriteFile("/run/slipway/bootstrap/data", "exec sleep 60\n")
	s.WriteFile("/run/slipway/step-0.sh", "secret")
	if out, err := exec.Command("/bin/sh", s.Path("/run/slipway/bootstrap/run"), claim, "0.1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if exists(s, "/run/slipway/bootstrap/data") || exists(s, "/run/slipway/step-0.sh") {
		t.Error("the data remains")
	}
	if text, err := os.ReadFile(s.Path("/run/slipway/bootstrap/failure")); err != nil || string(text) != "timeout\n" {
		t.Errorf("%q %v", text, err)
	}
}

package remote_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

const claim = "abcdefghijklmnopqrstuvwxyz"

// readScripts returns the library and scripts by name.
func readScripts(t *testing.T, names ...string) (string, map[string]string) {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("scripts", name+".sh"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	out := map[string]string{}
	for _, n := range names {
		out[n] = read(n)
	}
	return read("library"), out
}

// runLocally lets the host run scripts that do not need root.
func runLocally(t *testing.T, s *sshtest.Server, names ...string) {
	t.Helper()
	library, scripts := readScripts(t, names...)
	s.RunLocally(library, "chown() { :; }\nkubelet_runs() { false; }\ninventory() { echo 'path /etc/kubernetes'; }\n", scripts)
}

func connect(t *testing.T, pool *remote.Pool, target remote.Target) *remote.Host {
	t.Helper()
	h, err := pool.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newPool(t *testing.T, l remote.Limits) *remote.Pool {
	t.Helper()
	pool := remote.NewPool(l)
	t.Cleanup(pool.Close)
	return pool
}

func TestConnect(t *testing.T) {
	other := sshtest.Start(t)
	cases := map[string]struct {
		reason string
		change func(*sshtest.Server, *remote.Target)
		want   string // the reason of the fault
		kind   fault.Kind
	}{
		"good":     {"the key is pinned and the user known", func(*sshtest.Server, *remote.Target) {}, "", 0},
		"host key": {"a reinstalled host or another machine", func(s *sshtest.Server, _ *remote.Target) { s.ReplaceHostKey() }, remote.ReasonHostKeyMismatch, fault.Invalid},
		"second key": {"several keys may be pinned", func(_ *sshtest.Server, to *remote.Target) {
			to.HostKeys = append([]string{other.HostKey()}, to.HostKeys...)
		}, "", 0},
		"no host key": {"nothing is trusted on first use", func(_ *sshtest.Server, to *remote.Target) { to.HostKeys = nil }, "InvalidTarget", fault.Invalid},
		"user":        {"the key is not authorized", func(s *sshtest.Server, _ *remote.Target) { s.RefuseUsers(true) }, "AuthenticationFailed", fault.Invalid},
		"key":         {"the Secret contains something else", func(_ *sshtest.Server, to *remote.Target) { to.PrivateKey = []byte("hello") }, "InvalidTarget", fault.Invalid},
		"certificate": {"a public key is no certificate", func(s *sshtest.Server, to *remote.Target) { to.Certificate = []byte(s.HostKey()) }, "InvalidTarget", fault.Invalid},
		"nothing":     {"nothing listens", func(_ *sshtest.Server, to *remote.Target) { to.Port = 1 }, remote.ReasonUnreachable, fault.Unreachable},
		"silence":     {"a host that hangs", func(s *sshtest.Server, _ *remote.Target) { s.Silence(true) }, remote.ReasonUnreachable, fault.Unreachable},
		"not root":    {"the user has no permissions", func(s *sshtest.Server, _ *remote.Target) { s.Answer("privileges", "1000\n") }, "NotRoot", fault.Invalid},
		"no sudo": {"sudo needs a password", func(s *sshtest.Server, to *remote.Target) {
			to.Sudo = true
			s.Handle("privileges", func(sshtest.Call) sshtest.Result { return sshtest.Result{Code: 1} })
		}, "NotRoot", fault.Invalid},
		"jump":      {"through another host", func(_ *sshtest.Server, to *remote.Target) { jump := other.Target(); to.Jump = &jump }, "", 0},
		"lost jump": {"the other host does not respond", func(_ *sshtest.Server, to *remote.Target) { jump := other.Target(); jump.Port = 1; to.Jump = &jump }, remote.ReasonUnreachable, fault.Unreachable},
		"key of jump": {"the other host has another key", func(s *sshtest.Server, to *remote.Target) {
			jump := other.Target()
			jump.HostKeys = []string{s.HostKey()}
			to.Jump = &jump
		}, remote.ReasonHostKeyMismatch, fault.Invalid},
		"bad address": {"an address that is an option", func(_ *sshtest.Server, to *remote.Target) { to.Address = "-v" }, "InvalidTarget", fault.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := sshtest.Start(t)
			to := s.Target()
			tc.change(s, &to)
			_, err := newPool(t, remote.Limits{Dial: 2 * time.Second}).Connect(t.Context(), to)
			if tc.want == "" {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			f := fault.As(err)
			if f == nil || f.Reason != tc.want || f.Kind != tc.kind {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestHostKeyMismatchNamesBothKeys(t *testing.T) {
	s := sshtest.Start(t)
	to := s.Target()
	pinned, err := remote.Fingerprint(s.HostKey())
	if err != nil {
		t.Fatal(err)
	}
	s.ReplaceHostKey()
	presented, err := remote.Fingerprint(s.HostKey())
	if err != nil {
		t.Fatal(err)
	}
	_, err = newPool(t, remote.Limits{}).Connect(t.Context(), to)
	if text := fault.UserMessage(err); !strings.Contains(text, pinned) || !strings.Contains(text, presented) || !strings.Contains(text, "slipway hosts update") {
		t.Errorf("the message must contain both fingerprints and a remedy: %s", text)
	}
}

func TestScan(t *testing.T) {
	s := sshtest.Start(t)
	keys, err := newPool(t, remote.Limits{}).ScanHostKeys(t.Context(), remote.Target{Address: "127.0.0.1", Port: s.Target().Port})
	if diff := cmp.Diff([]string{s.HostKey()}, keys); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if s.Logins() != 0 {
		t.Error("a scan must not log in")
	}
}

func TestConnectionsAreShared(t *testing.T) {
	s := sshtest.Start(t)
	s.Answer("boot-id", "b\n")
	pool := newPool(t, remote.Limits{})
	for range 3 {
		if _, err := connect(t, pool, s.Target()).BootID(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Logins() != 1 {
		t.Errorf("%d connections instead of one", s.Logins())
	}
	s.Cut()
	h := connect(t, pool, s.Target())
	if _, err := h.BootID(t.Context()); err != nil {
		t.Errorf("a lost connection must be opened again: %v", err)
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	s := sshtest.Start(t)
	s.Answer("boot-id", "b\n")
	h := connect(t, newPool(t, remote.Limits{Idle: time.Millisecond}), s.Target())
	for s.Logins() < 3 { // each call finds that the connection before was closed, or was faster
		if _, err := h.BootID(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSlowScriptEndsWithContext(t *testing.T) {
	s := sshtest.Start(t)
	s.Answer("boot-id", "b\n")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	s.Delay(time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := h.BootID(ctx); fault.KindOf(err) != fault.Unreachable || time.Since(began) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	s.Delay(0)
	s.Cut()
}

func TestOutputIsLimited(t *testing.T) {
	s := sshtest.Start(t)
	s.Answer("boot-id", strings.Repeat("x", 8<<20))
	id, err := connect(t, newPool(t, remote.Limits{}), s.Target()).BootID(t.Context())
	if err != nil || len(id) > 200 {
		t.Errorf("%d bytes, %v", len(id), err)
	}
}

func TestSudo(t *testing.T) {
	s := sshtest.Start(t)
	s.Answer("boot-id", "b\n")
	to := s.Target()
	to.User, to.Sudo = "ops", true
	s.WriteFile("/etc/slipway/machine.json", `{"claimID":"`+claim+`"}`)
	h := connect(t, newPool(t, remote.Limits{}), to)
	if _, err := h.BootID(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls := s.Calls(); len(calls) != 1 || !calls[0].Sudo {
		t.Errorf("%+v", calls)
	}
	if r, err := h.ReadRecord(t.Context()); err != nil || r.ClaimID != claim {
		t.Errorf("%v %v", r, err)
	}
}

func TestRecord(t *testing.T) {
	s := sshtest.Start(t)
	runLocally(t, s, "record-create", "record-delete")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	ctx := t.Context()
	if r, err := h.ReadRecord(ctx); r != nil || err != nil {
		t.Fatalf("a fresh host has no record: %v %v", r, err)
	}
	record := remote.Record{ClaimID: claim, Namespace: "team", Name: "m1", Cluster: "demo"}
	for range 2 {
		if err := h.WriteRecord(ctx, record); err != nil {
			t.Fatalf("writing a record may be repeated: %v", err)
		}
	}
	got, err := h.ReadRecord(ctx)
	if diff := cmp.Diff(&record, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if text, err := os.ReadFile(s.Path("/var/lib/slipway/node/inventory")); err != nil || string(text) != "claim "+claim+"\npath /etc/kubernetes\n" {
		t.Errorf("the inventory is written with the record: %q %v", text, err)
	}
	other := remote.Record{ClaimID: strings.Repeat("a", 26)}
	for what, err := range map[string]error{"write": h.WriteRecord(ctx, other), "delete": h.DeleteRecord(ctx, other.ClaimID)} {
		if f := fault.As(err); f == nil || f.Reason != remote.ReasonClaimedByAnother || f.Kind != fault.Conflict {
			t.Errorf("%s of another claim: %v", what, err)
		}
	}
	for range 2 {
		if err := h.DeleteRecord(ctx, claim); err != nil {
			t.Fatalf("deleting a record may be repeated: %v", err)
		}
	}
	if r, err := h.ReadRecord(ctx); r != nil || err != nil {
		t.Errorf("the record was deleted: %v %v", r, err)
	}
}

func TestForeignRecord(t *testing.T) {
	s := sshtest.Start(t)
	s.WriteFile("/etc/slipway/machine.json", "something else")
	_, err := connect(t, newPool(t, remote.Limits{}), s.Target()).ReadRecord(t.Context())
	if f := fault.As(err); f == nil || f.Reason != remote.ReasonInvalidRecord {
		t.Errorf("%v", err)
	}
}

// testBundle writes a bundle with one large file and returns it.
func testBundle(t *testing.T, size int) bundle.Bundle {
	t.Helper()
	data := make([]byte, size)
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	return sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": data, "lib/x": []byte("x"), "images/control-plane.tar": []byte("images")})
}

func TestInstallBundle(t *testing.T) {
	s := sshtest.Start(t)
	runLocally(t, s, "bundle-begin", "bundle-finish")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	b := testBundle(t, 9<<20)
	var last int64
	report := func(done, total int64) {
		if done < last || done > total || total != b.Size() {
			t.Errorf("progress %d after %d of %d", done, last, total)
		}
		last = done
	}
	if err := h.InstallBundle(t.Context(), b, report); err != nil {
		t.Fatal(err)
	}
	if last != b.Size() {
		t.Errorf("progress ended at %d of %d", last, b.Size())
	}
	for _, f := range b.Files {
		want, err := os.ReadFile(filepath.Join(b.Dir, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(s.Path("/var/lib/slipway/bundles/" + b.Digest + "/" + f.Path))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", f.Path, len(got), err)
		}
	}
	before := len(s.Calls())
	if err := h.InstallBundle(t.Context(), b, nil); err != nil || len(s.Calls()) != before+1 {
		t.Errorf("a complete bundle is found with one call: %d, %v", len(s.Calls())-before, err)
	}
	worker := b.ForNode(false)
	if err := h.InstallBundle(t.Context(), worker, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Path("/var/lib/slipway/bundles/" + worker.Digest + "/images/control-plane.tar")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a worker gets no images of control planes: %v", err)
	}
}

func TestInstallBundleResumes(t *testing.T) {
	s := sshtest.Start(t)
	runLocally(t, s, "bundle-begin", "bundle-finish")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	b := testBundle(t, 20<<20)
	s.CutAfter(13 << 20)
	if err := h.InstallBundle(t.Context(), b, nil); fault.KindOf(err) != fault.Unreachable {
		t.Fatalf("the connection was cut: %v", err)
	}
	var begin int64 = -1
	err := h.InstallBundle(t.Context(), b, func(done, _ int64) {
		if begin < 0 {
			begin = done
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if begin < 8<<20 {
		t.Errorf("the upload began again: the first report is %d", begin)
	}
	if got, err := os.ReadFile(s.Path("/var/lib/slipway/bundles/" + b.Digest + "/bin/kubelet")); err != nil || len(got) != 20<<20 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestInstallBundleVerifies(t *testing.T) {
	s := sshtest.Start(t)
	runLocally(t, s, "bundle-begin", "bundle-finish")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	b := testBundle(t, 1000)
	// The file in the store changed after its manifest was written.
	if err := os.WriteFile(filepath.Join(b.Dir, "bin/kubelet"), make([]byte, 1000), 0o755); err != nil {
		t.Fatal(err)
	}
	err := h.InstallBundle(t.Context(), b, nil)
	if f := fault.As(err); f == nil || f.Reason != bundle.ReasonInvalid || !strings.Contains(f.Message, "bin/kubelet") {
		t.Errorf("the bundle is damaged, and not the host: %v", err)
	}
	if _, err := os.Stat(s.Path("/var/lib/slipway/bundles/" + b.Digest + "/complete")); err == nil {
		t.Error("the bundle counts as complete")
	}
}

// TestDamagedFile covers a host whose disk does not return what was written to it.
func TestDamagedFile(t *testing.T) {
	s := sshtest.Start(t)
	runLocally(t, s, "bundle-begin", "bundle-finish")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	b := testBundle(t, 1000)
	s.Answer("bundle-finish", "DAMAGED=bin/kubelet\n")
	message := ""
	for i, want := range []struct {
		reason string
		kind   fault.Kind
		retry  time.Duration
	}{
		{"BundleDamaged", fault.Transient, 10 * time.Second}, {"BundleDamaged", fault.Transient, 20 * time.Second},
		{"DiskSuspected", fault.Invalid, 40 * time.Second}, {"DiskSuspected", fault.Invalid, 80 * time.Second},
	} {
		err := h.InstallBundle(t.Context(), b, nil)
		f := fault.As(err)
		if f == nil || f.Reason != want.reason || f.Kind != want.kind || f.RetryAfter != want.retry || !strings.Contains(f.Message, "bin/kubelet") {
			t.Errorf("%d: %#v", i, err)
			continue
		}
		if i == 3 && f.Message != message {
			t.Errorf("the message changes from %q to %q", message, f.Message)
		}
		message = f.Message
	}
	s.Answer("bundle-finish", "DAMAGED=../../etc/passwd\n")
	if err := h.InstallBundle(t.Context(), b, nil); fault.As(err) == nil || fault.As(err).Reason != "UnexpectedOutput" {
		t.Errorf("a file that the bundle does not have: %v", err)
	}
	s.Answer("bundle-finish", "")
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	s.Answer("bundle-finish", "DAMAGED=bin/kubelet\n")
	if err := h.InstallBundle(t.Context(), b, nil); fault.RetryAfter(err) != 10*time.Second {
		t.Errorf("after a success, the delay begins again: %v", err)
	}
}

func TestBundlesArePruned(t *testing.T) {
	s := sshtest.Start(t)
	runLocally(t, s, "bundle-begin", "bundle-finish")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	for range 4 {
		if err := h.InstallBundle(t.Context(), testBundle(t, 100), nil); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(s.Path("/var/lib/slipway/bundles"))
	if err != nil || len(entries) != 2 {
		t.Errorf("%d bundles remain instead of two: %v", len(entries), err)
	}
}

func TestBootstrap(t *testing.T) {
	s := sshtest.Start(t)
	s.Answer("bootstrap-start", "")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	secret := "s3cr3t-t0k3n-value"
	data := "#cloud-config\nwrite_files:\n- path: /etc/kubeadm.yml\n  content: " + secret + "\nruncmd:\n- kubeadm join\n"
	b := remote.Bootstrap{ClaimID: claim, Name: "m1", Hostname: "h1", ProviderID: "ssh://" + claim, Address: "192.0.2.7", Data: []byte(data), Timeout: time.Minute}
	if err := h.StartBootstrap(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	call := s.Calls()[0]
	want := map[string][]string{"CLAIM": {claim}, "TIMEOUT": {"60"}, "FILE": {"/etc/kubeadm.yml"}}
	delete(call.Parameters, "INPUT_SIZE")
	delete(call.Parameters, "INPUT_SHA256")
	if diff := cmp.Diff(want, call.Parameters); diff != "" {
		t.Error(diff)
	}
	if !bytes.Contains(call.Input, []byte("kubeadm")) || !bytes.Contains(call.Input, []byte("ssh://"+claim)) {
		t.Errorf("the script must contain the commands and the provider ID: %s", call.Input)
	}
	b.Data = []byte("#!/bin/sh\necho hello\n")
	if err := h.StartBootstrap(t.Context(), b); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a script is no cloud-config: %v", err)
	}
}

func TestBootstrapProgress(t *testing.T) {
	s := sshtest.Start(t)
	runLocally(t, s, "bootstrap-progress")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	steps := []struct {
		reason string
		change func()
		want   remote.BootstrapState
		fails  string
	}{
		{"nothing was started", func() {}, remote.BootstrapNone, ""},
		{"the host rebooted, and /run is empty", func() { s.WriteFile("/var/lib/slipway/node/started", claim+"\n") }, remote.BootstrapFailed, "reboot"},
		{"the unit ended without a status", func() { s.WriteFile("/run/slipway/bootstrap/log", "a\nb\n") }, remote.BootstrapFailed, "stopped"},
		{"the data ended without the sentinel file", func() { s.WriteFile("/run/slipway/bootstrap/exit", "1\n") }, remote.BootstrapFailed, ""},
		{"the sentinel file was seen", func() { s.WriteFile("/var/lib/slipway/node/bootstrapped", claim+"\n") }, remote.BootstrapDone, ""},
	}
	for _, step := range steps {
		step.change()
		p, err := h.BootstrapProgress(t.Context(), claim)
		if err != nil || p.State != step.want || p.Failure != step.fails {
			t.Errorf("%s: %+v %v", step.reason, p, err)
		}
	}
	if _, err := h.BootstrapProgress(t.Context(), strings.Repeat("b", 26)); fault.As(err) == nil || fault.As(err).Reason != remote.ReasonClaimedByAnother {
		t.Errorf("the data of another claim: %v", err)
	}
}

func TestReset(t *testing.T) {
	s := sshtest.Start(t)
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	s.Answer("node-reset", "LEFTOVER=mount /var/lib/kubelet/pods\nRESET=true\n")
	left, err := h.Reset(t.Context())
	if diff := cmp.Diff([]remote.Leftover{{Kind: "mount", Item: "/var/lib/kubelet/pods"}}, left); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	s.Answer("node-reset", "")
	if _, err := h.Reset(t.Context()); err == nil {
		t.Error("a script that did not reach its end cleaned nothing")
	}
}

func TestLogs(t *testing.T) {
	s := sshtest.Start(t)
	s.Answer("logs", "line\n")
	h := connect(t, newPool(t, remote.Limits{}), s.Target())
	if out, err := h.Logs(t.Context(), "kubelet", 10); err != nil || string(out) != "line\n" {
		t.Errorf("%q %v", out, err)
	}
	for _, unit := range []string{"", "-x", "a b", "a;b", "$(x)", "../x", "a\nLINES=9"} {
		if _, err := h.Logs(t.Context(), unit, 10); fault.KindOf(err) != fault.Invalid {
			t.Errorf("unit %q: %v", unit, err)
		}
	}
}

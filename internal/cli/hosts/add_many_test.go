package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// A host that cannot be added does not prevent the others, and the command can be repeated: it leaves hosts that exist unchanged.
func TestAddAgain(t *testing.T) {
	w := newWorld(t, "")
	a := adding{yes: true}
	for _, name := range []string{"h1", "h2", "h3"} {
		e := w.entry(t)
		e.Name, e.Port = name, w.server.Target().Port
		a.entries = append(a.entries, e)
	}
	a.entries[1].KeyFile = filepath.Join(t.TempDir(), "missing")
	run := func() (string, error) {
		w.out.Reset()
		w.errs.Reset()
		err := addHosts(t.Context(), w.env, w.connection, a)
		return w.out.String(), err
	}
	out, err := run()
	if f := fault.As(err); f == nil || f.Reason != reasonNotAdded || !strings.Contains(f.Message, "1 of 3 hosts were not added: h2") || !strings.Contains(w.errs.String(), "h2: the file ") {
		t.Errorf("%v: %s", err, w.errs)
	}
	if out != "SSHHost inventory/h1 created\nSSHHost inventory/h3 created\n" {
		t.Errorf("%s", out)
	}
	// The first command was interrupted before h1 was the owner of its Secret.
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "inventory", Name: "h1-ssh"}
	if err := w.connection.Client.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	secret.OwnerReferences = nil
	if err := w.connection.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	a.entries[1].KeyFile = w.keyFile
	out, err = run()
	if err != nil || out != "SSHHost inventory/h1 unchanged\nSSHHost inventory/h2 created\nSSHHost inventory/h3 unchanged\n" {
		t.Errorf("again: %v: %s", err, out)
	}
	if err := w.connection.Client.Get(t.Context(), key, secret); err != nil || len(secret.OwnerReferences) != 1 {
		t.Errorf("the Secret has no owner: %+v, %v", secret, err)
	}
	// A host that differs is not changed.
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("another key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*entry){
		"domain": func(e *entry) { e.FailureDomain = "rack-b" }, "labels": func(e *entry) { e.Labels = map[string]string{"rack": "b"} },
		"key": func(e *entry) { e.KeyFile = other }, "host key": func(e *entry) { e.HostKeys = []string{"ssh-ed25519 AAAA"} },
	} {
		changed := a
		changed.entries = []entry{a.entries[0]}
		change(&changed.entries[0])
		if err := addHosts(t.Context(), w.env, w.connection, changed); fault.As(err) == nil || fault.As(err).Reason != "HostExists" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Flags are defaults for the hosts in a file, and flags for one host are refused.
func TestFlagsWithAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	if err := os.WriteFile(file, []byte("hosts:\n- address: 192.0.2.1\n- address: 192.0.2.2\n  failureDomain: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sudo := true
	f := addFlags{file: file, entry: entry{KeyFile: "k", User: "ops", Port: 22, CertificateFile: "c", Jump: "gate.example", JumpKeyFile: "j", Sudo: &sudo, FailureDomain: "a"}}
	got, err := f.entries(nil)
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, domain := range []string{"a", "b"} {
		if e := got[i]; e.FailureDomain != domain || e.Jump != "gate.example" || e.JumpKeyFile != "j" || e.CertificateFile != "c" || !*e.Sudo || e.User != "ops" {
			t.Errorf("%+v", e)
		}
	}
	for name, change := range map[string]func(*addFlags){
		"name": func(f *addFlags) { f.Name = "x" }, "node address": func(f *addFlags) { f.NodeAddress = "192.0.2.3" }, "host key": func(f *addFlags) { f.HostKeys = []string{"k"} },
	} {
		other := f
		change(&other)
		if _, err := other.entries(nil); fault.As(err) == nil || fault.As(err).Reason != reasonUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

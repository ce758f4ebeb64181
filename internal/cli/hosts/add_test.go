package hosts

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// world is a management cluster and a machine.
type world struct {
	server     *sshtest.Server
	connection *management.Connection
	env        term.Env
	out, errs  *bytes.Buffer
	keyFile    string
}

func newWorld(t *testing.T, input string) world {
	t.Helper()
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	w := world{server: sshtest.Start(t), out: &bytes.Buffer{}, errs: &bytes.Buffer{}, keyFile: filepath.Join(t.TempDir(), "key")}
	w.server.Answer("facts", "OS=Debian GNU/Linux 12 (bookworm)\nARCHITECTURE=x86_64\nCPUS=2\nMEMORY_KIB=2097152\n")
	w.connection = &management.Connection{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), Namespace: "inventory"}
	w.env = term.Env{In: strings.NewReader(input), Out: w.out, Err: w.errs, Getenv: func(string) string { return "" }, Now: time.Now}
	if err := os.WriteFile(w.keyFile, w.server.Target().PrivateKey, 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// entry returns the machine as a host to add.
func (w world) entry(t *testing.T) entry {
	t.Helper()
	e, err := entry{Address: "127.0.0.1", Name: "h1", Port: w.server.Target().Port, KeyFile: w.keyFile, Labels: map[string]string{"rack": "a"}}.complete()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAdd(t *testing.T) {
	cases := map[string]struct {
		reason, input string
		yes           bool
		change        func(*entry, *sshtest.Server)
		want          string // the reason of the fault
	}{
		"confirmed": {"the user compared the keys", "y\n", false, func(*entry, *sshtest.Server) {}, ""},
		"refused":   {"the keys are others", "n\n", false, func(*entry, *sshtest.Server) {}, "Usage"},
		"yes":       {"without a prompt", "", true, func(*entry, *sshtest.Server) {}, ""},
		"pinned":    {"nothing is scanned or asked", "", false, func(e *entry, s *sshtest.Server) { e.HostKeys = []string{s.HostKey()} }, ""},
		"other key": {"a pinned key is not replaced", "y\n", true, func(e *entry, s *sshtest.Server) { e.HostKeys = []string{s.HostKey()}; s.ReplaceHostKey() }, remote.ReasonHostKeyMismatch},
		"login":     {"a host that rejects the key is not added", "", true, func(_ *entry, s *sshtest.Server) { s.RefuseUsers(true) }, "AuthenticationFailed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.input)
			e := w.entry(t)
			tc.change(&e, w.server)
			err := addHosts(t.Context(), w.env, w.connection, adding{entries: []entry{e}, yes: tc.yes})
			host := &infrav1.SSHHost{}
			found := w.connection.Client.Get(t.Context(), client.ObjectKey{Namespace: "inventory", Name: "h1"}, host)
			if tc.want != "" {
				if f := fault.As(err); f == nil || f.Reason != tc.want || found == nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil || found != nil {
				t.Fatalf("%s: %v %v", tc.reason, err, found)
			}
			secret := &corev1.Secret{}
			if err := w.connection.Client.Get(t.Context(), client.ObjectKey{Namespace: "inventory", Name: host.Spec.CredentialsRef.Name}, secret); err != nil {
				t.Fatal(err)
			}
			if len(host.Spec.HostKeys) != 1 || host.Spec.HostKeys[0] != w.server.HostKey() || !bytes.Equal(secret.Data["ssh-privatekey"], w.server.Target().PrivateKey) || host.Labels["rack"] != "a" {
				t.Errorf("%+v", host)
			}
			print, err := remote.Fingerprint(w.server.HostKey())
			if scanned := len(e.HostKeys) == 0; err != nil || scanned != strings.Contains(w.errs.String(), print) {
				t.Errorf("%s: the fingerprint is shown if a key was scanned: %s", tc.reason, w.errs)
			}
			if text, _ := io.ReadAll(w.out); string(text) != "SSHHost inventory/h1 created\n" {
				t.Errorf("%q", text)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	w := newWorld(t, "")
	ctx := t.Context()
	if err := addHosts(ctx, w.env, w.connection, adding{entries: []entry{w.entry(t)}, yes: true}); err != nil {
		t.Fatal(err)
	}
	read := func() *infrav1.SSHHost {
		host, err := getHost(ctx, w.connection, "h1")
		if err != nil {
			t.Fatal(err)
		}
		return host
	}
	w.server.ReplaceHostKey()
	w.server.Cut()
	if err := (updateFlags{port: w.server.Target().Port}).run(ctx, w.env, w.connection, read()); fault.As(err) == nil || fault.As(err).Reason != remote.ReasonHostKeyMismatch {
		t.Errorf("a replaced key is not accepted silently: %v", err)
	}
	if err := (updateFlags{rescan: true, yes: true}).run(ctx, w.env, w.connection, read()); err != nil {
		t.Fatal(err)
	}
	if host := read(); host.Spec.HostKeys[0] != w.server.HostKey() {
		t.Errorf("%+v", host.Spec)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, sshtest.Start(t).Target().PrivateKey, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (updateFlags{keyFile: other}).run(ctx, w.env, w.connection, read()); fault.As(err) == nil || fault.As(err).Reason != "AuthenticationFailed" {
		t.Errorf("a key that the host rejects is not stored: %v", err)
	}
	secret := &corev1.Secret{}
	if err := w.connection.Client.Get(ctx, client.ObjectKey{Namespace: "inventory", Name: "h1-ssh"}, secret); err != nil || !bytes.Equal(secret.Data["ssh-privatekey"], w.server.Target().PrivateKey) {
		t.Errorf("the key was replaced: %v", err)
	}
	host := read()
	host.Status.Claim, host.Status.ConfirmedClaimID = &infrav1.SSHHostClaim{Namespace: "n", Name: "m", ClaimID: strings.Repeat("a", 26)}, strings.Repeat("a", 26)
	if err := (updateFlags{user: "root"}).run(ctx, w.env, w.connection, host); fault.As(err) == nil || fault.As(err).Reason != "OtherMachine" {
		t.Errorf("a machine without the record is another one: %v", err)
	}
}

func TestRemove(t *testing.T) {
	w := newWorld(t, "")
	ctx := t.Context()
	if err := addHosts(ctx, w.env, w.connection, adding{entries: []entry{w.entry(t)}, yes: true}); err != nil {
		t.Fatal(err)
	}
	host, err := getHost(ctx, w.connection, "h1")
	if err != nil {
		t.Fatal(err)
	}
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	w.server.Handle("bundle-remove", func(sshtest.Call) sshtest.Result { return sshtest.Result{Code: 3} })
	if err := removeHost(ctx, w.env, w.connection, removal{pool: pool, host: host}); fault.As(err) == nil || fault.As(err).Reason != reasonInUse {
		t.Errorf("a host with a record is not removed: %v", err)
	}
	w.server.Answer("bundle-remove", "")
	if err := removeHost(ctx, w.env, w.connection, removal{pool: pool, host: host}); err != nil {
		t.Fatal(err)
	}
	if _, err := getHost(ctx, w.connection, "h1"); fault.As(err) == nil || fault.As(err).Reason != reasonNoHost {
		t.Errorf("the SSHHost remains: %v", err)
	}
}

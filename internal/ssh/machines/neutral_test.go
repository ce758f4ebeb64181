package machines

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// brokenHost fails at one of the calls, as a host does whose connection was lost and cannot be opened again.
type brokenHost struct {
	*fakeHost
	at  string
	err error
}

func (h *brokenHost) fails(at string) error {
	if h.at == at {
		return h.err
	}
	return nil
}

func (h *brokenHost) Connect(context.Context, remote.Target) (Host, error) {
	return h, h.fails("connect")
}
func (h *brokenHost) Preflight(ctx context.Context, o remote.PreflightOptions) ([]remote.Finding, error) {
	return nil, h.fails("preflight")
}
func (h *brokenHost) InstallBundle(context.Context, bundle.Bundle, func(int64, int64)) error {
	return h.fails("install")
}
func (h *brokenHost) PrepareNode(context.Context, bundle.Bundle, remote.NodeSettings) error {
	return h.fails("prepare")
}
func (h *brokenHost) StartBootstrap(context.Context, remote.Bootstrap) error {
	return h.fails("bootstrap")
}
func (h *brokenHost) BootstrapProgress(context.Context, string) (remote.Progress, error) {
	return remote.Progress{State: remote.BootstrapNone}, h.fails("progress")
}

// The conditions of an SSHMachine are for its tenant, who may not know the address, the user, the keys and the Secret of the
// operator, whatever fails and whenever the connection is lost.
func TestConditionsDiscloseNothing(t *testing.T) {
	secrets := []string{"192.0.2.77", "gate.internal", "opsuser", "SHA256:", "fleet-secret", "/srv/slipway"}
	faults := map[string]error{
		"another key":     fault.New(fault.Invalid, remote.ReasonHostKeyMismatch, "host 192.0.2.77 presented the ssh-ed25519 key SHA256:abc, but pinned are SHA256:def"),
		"login":           fault.New(fault.Invalid, "AuthenticationFailed", "host 192.0.2.77 does not accept the key SHA256:abc for user opsuser"),
		"no response":     fault.New(fault.Unreachable, remote.ReasonUnreachable, "host 192.0.2.77 does not respond at 192.0.2.77:22 through jump host gate.internal"),
		"no rights":       fault.New(fault.Invalid, "NotRoot", "user opsuser of host 192.0.2.77 cannot become root"),
		"no SFTP":         fault.New(fault.Invalid, "NoFileTransfer", "host 192.0.2.77 has no SFTP server"),
		"timeout":         context.DeadlineExceeded,
		"file":            fault.New(fault.Invalid, "FileExists", "host 192.0.2.77 has files that Slipway did not install"),
		"bundle":          &fs.PathError{Op: "open", Path: "/srv/slipway/bundles/x", Err: fs.ErrPermission},
		"another's claim": fault.New(fault.Conflict, remote.ReasonClaimedByAnother, "host 192.0.2.77 has the record of another claim"),
	}
	for name, err := range faults {
		for _, at := range []string{"connect", "preflight", "install", "prepare", "bootstrap", "progress"} {
			if name == "bundle" && at != "install" {
				continue // only this step reads it
			}
			w := disclosureWorld(t)
			w.Connector = &brokenHost{w.host, at, err}
			isReported := false
			for range 6 {
				_ = w.attempt() // what it reports is of interest
				isReported = w.checkConditions(name+", "+at, secrets) || isReported
			}
			if !isReported {
				t.Errorf("%s, %s: the reason of the host is missing", name, at)
			}
		}
	}
	// The bundle on the disk of the manager cannot be read.
	for name, err := range map[string]error{
		"damaged":      fault.New(fault.Invalid, bundle.ReasonInvalid, "the bundle in /srv/slipway/bundles/x is incomplete"),
		"not readable": &fs.PathError{Op: "open", Path: "/srv/slipway/bundles/x", Err: fs.ErrPermission},
	} {
		w := disclosureWorld(t)
		w.Bundles = brokenBundles{err}
		_ = w.attempt()
		if !w.checkConditions(name, secrets) {
			t.Errorf("%s: the reason of the host is missing", name)
		}
		if c := condition.Set(w.get().Status.Conditions).Get(infrav1.HostPreparedCondition); !strings.Contains(c.Message, "The bundle for Kubernetes v1.36.3 on amd64") {
			t.Errorf("%s: %+v", name, c)
		}
	}
	// The Secret cannot be read, and an error of the API server has its name.
	w := disclosureWorld(t)
	w.secrets = failingReader{errors.New(`secrets "fleet-secret" is forbidden`)}
	_ = w.attempt()
	if !w.checkConditions("Secret", secrets) {
		t.Error("the reason of the host is missing")
	}
}

func disclosureWorld(t *testing.T) *world {
	t.Helper()
	h := sshHost("h", func(h *infrav1.SSHHost) {
		confirmed(h)
		h.Spec.Address, h.Spec.NodeAddress, h.Spec.User, h.Spec.CredentialsRef.Name = "192.0.2.77", "10.0.0.1", "opsuser", "fleet-secret"
		h.Status.Conditions = []metav1.Condition{{Type: infrav1.ReachableCondition, Status: "False", Reason: "HostKeyMismatch", Message: "Host 192.0.2.77 presented SHA256:abc"}}
	})
	w := newWorld(t, build(t, sshMachine(identified), h).Build())
	secret := credentials.DeepCopy()
	secret.Name = "fleet-secret"
	if err := kube.NewWriter(w.client, "test").Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return w
}

// checkConditions checks the messages, and reports whether the machine has the reason of its host.
func (w *world) checkConditions(name string, secrets []string) bool {
	w.t.Helper()
	got := w.get().Status.Conditions
	for _, c := range got {
		for _, secret := range secrets {
			if strings.Contains(c.Message, secret) {
				w.t.Errorf("%s: condition %s discloses %q: %s", name, c.Type, secret, c.Message)
			}
		}
	}
	c := condition.Set(got).Get(infrav1.HostReachableCondition)
	return c != nil && c.Reason == "HostKeyMismatch"
}

// brokenBundles fails to find bundles.
type brokenBundles struct{ err error }

func (b brokenBundles) Find(string, string) (bundle.Bundle, error) { return bundle.Bundle{}, b.err }

// failingReader fails to read objects.
type failingReader struct{ err error }

func (r failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.err
}
func (r failingReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return r.err
}

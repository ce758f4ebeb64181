package machine

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testhost"
)

// Why a bootstrap failed, or what it does now, is said with the command, the setting and what to do.
func TestBootstrapIsExplained(t *testing.T) {
	kubeadm, proxy := backend.Command{Section: "runcmd", Index: 1, Program: "kubeadm", Code: 1}, backend.Command{Section: "runcmd", Index: 0, Program: "install-proxy", Code: 7}
	const correct = `Correct the bootstrap data, then delete the Machine to have it replaced ("slipway logs node`
	for reason, tc := range map[string]struct {
		reason   string
		progress backend.Progress
		want     []string
	}{
		"waits for systemd":    {"the host is slow", backend.Progress{Phase: backend.InProgress, WaitingFor: backend.StageBoot}, []string{"Waiting for systemd in machine " + name + " to finish booting"}},
		"waits for containerd": {"the host is slow", backend.Progress{Phase: backend.InProgress, WaitingFor: backend.StageContainerd}, []string{"Waiting for containerd in machine " + name + " to respond"}},
		"runs":                 {"which command", backend.Progress{Phase: backend.InProgress, Running: &kubeadm}, []string{", now runcmd[1] (kubeadm)"}},
		"containerd": {"it never responded", backend.Progress{Phase: backend.Failed, TimedOut: true, WaitingFor: backend.StageContainerd},
			[]string{"containerd did not respond within 300 seconds", "increase spec.backend.container.bootstrapTimeoutSeconds", correct}},
		"systemd": {"it never booted", backend.Progress{Phase: backend.Failed, TimedOut: true, WaitingFor: backend.StageBoot}, []string{"systemd did not finish booting within 300 seconds"}},
		"too long": {"the setting is named", backend.Progress{Phase: backend.Failed, TimedOut: true, Running: &kubeadm},
			[]string{"did not end within 300 seconds", "while it ran runcmd[1] (kubeadm)", "bootstrapTimeoutSeconds", correct}},
		"command": {"which failed", backend.Progress{Phase: backend.Failed, Failed: []backend.Command{proxy, kubeadm}, Log: "proxy configuration missing"},
			[]string{"ended without " + sentinel, "; runcmd[0] (install-proxy) ended with code 7, runcmd[1] (kubeadm) ended with code 1", correct, "; its last lines:\n  proxy configuration missing"}},
		"no command": {"the file was never created", backend.Progress{Phase: backend.Failed, Completed: true}, []string{"no command failed; let the last one create that file"}},
		"left out":   {"it may be why", backend.Progress{Phase: backend.Failed, Skipped: []string{"snap"}}, []string{"does not apply snap of the bootstrap data"}},
	} {
		s := snapshot{Now: now, Name: name, Machine: coreMachine(nil), Cluster: coreCluster(nil), Network: localCluster(), Object: localMachine(withID), HostMachine: host(backend.Running), Progress: &tc.progress}
		s.Capabilities.Scripted, s.Capabilities.Timeout = true, 300*time.Second
		r := report(s, decide(s), reconciler.Outcome{})
		got := condition.Set(r.Status.(infrav1.LocalMachineStatus).Conditions).Get(infrav1.BootstrapExecSucceededCondition)
		for _, want := range tc.want {
			if !strings.Contains(got.Message, want) {
				t.Errorf("%s: %s: got %q, want %q", reason, tc.reason, got.Message, want)
			}
		}
	}
}

// What bootstrap data asks for and a node in a container does not carry out is in the condition, for as long as the machine is there, and in an
// event; a long list is cut.
func TestLeftOutIsSaid(t *testing.T) {
	data := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "boot"}, Data: map[string][]byte{"value": []byte("#cloud-config\nsnap: {}\nruncmd: [id]\n")}}
	w := newWorld(t, localMachine(nil), coreMachine(nil), coreCluster(nil), localCluster(), data)
	for range 2 {
		_ = w.reconcile()
	}
	w.host.Change(name, func(m *testhost.Machine) { m.Progress = backend.Progress{Phase: backend.Succeeded} })
	for range 4 {
		if err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	c := condition.Set(w.get(t).Status.Conditions).Get(infrav1.BootstrapExecSucceededCondition)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "does not apply snap of the bootstrap data") {
		t.Errorf("got %+v", c)
	}
	many := conditionInput{snapshot: snapshot{Progress: &backend.Progress{Skipped: strings.Fields(strings.Repeat(strings.Repeat("x", 500)+" ", 30))}}}
	if got := many.leftOut(); len(got) > 1000 || !strings.Contains(got, "20 more") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}

// Bootstrap data that cannot be read is said with the Secret and the line.
func TestUnreadableDataNamesItsSecret(t *testing.T) {
	data := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "boot"}, Data: map[string][]byte{"value": []byte("#cloud-config\nruncmd:\n- a: [\n")}}
	w := newWorld(t, localMachine(nil), coreMachine(nil), coreCluster(nil), localCluster(), data)
	var err error
	for range 6 {
		err = w.reconcile()
	}
	c := condition.Set(w.get(t).Status.Conditions).Get("Reconciled")
	if c == nil || !strings.Contains(c.Message, "Secret boot: the cloud-config is not valid YAML: line ") || !strings.Contains(c.Message, "correct the bootstrap data") {
		t.Errorf("got %+v, %+v, %v", c, w.get(t), err)
	}
}

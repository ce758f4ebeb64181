package machine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/test/testhost"
)

// What a failed bootstrap printed is shown to people who may not read the Secret with the bootstrap data: nothing that is secret in it is there,
// whatever the script made of it.
func TestLogWithoutSecretsOfBootstrapData(t *testing.T) {
	data := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "boot"}, Data: map[string][]byte{"value": []byte(
		"#cloud-config\nwrite_files:\n- {path: /etc/app/token, content: hunter-2, permissions: '0600'}\nruncmd:\n- app join $(cat /etc/app/token)\n")}}
	ended := backend.Progress{Phase: backend.Failed, Log: "joining with hunter-2\nrefused", Kubelet: "hunter-2 is not known"}
	waits := backend.Progress{Phase: backend.InProgress, Kubelet: "hunter-2 is not known"}
	for n, tc := range map[string]struct {
		reason   string
		secret   *corev1.Secret
		progress backend.Progress
		want     string
	}{
		"failed": {"the values of the Secret are masked", data, ended,
			`the kubelet exits with "*** is not known". `},
		"kubelet": {"in what the kubelet says, too", data, waits, `The kubelet exits with "*** is not known"`},
		"no Secret": {"it is not known what is secret", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}, ended,
			"; its last lines:\n  (not shown, because the secrets in it are unknown: Secret boot with the bootstrap data does not exist)"},
		"another Secret": {"as before", &corev1.Secret{ObjectMeta: data.ObjectMeta, Data: map[string][]byte{"value": []byte("hello")}}, ended,
			"its last lines:\n  (not shown, because the secrets in it are unknown: "},
	} {
		w := newWorld(t, localMachine(nil), coreMachine(nil), coreCluster(nil), localCluster(), tc.secret)
		for range 2 {
			_ = w.reconcile()
		}
		w.host.Change(name, func(m *testhost.Machine) { m.Progress = tc.progress })
		for range 3 {
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
		}
		c := condition.Set(w.get(t).Status.Conditions).Get(infrav1.BootstrapExecSucceededCondition)
		if c == nil || !strings.Contains(c.Message, tc.want) || strings.Contains(c.Message, "hunter") ||
			n == "failed" && !strings.HasSuffix(c.Message, "; its last lines:\n  joining with ***\n  refused") {
			t.Errorf("%s: %s; got %+v", n, tc.reason, c)
		}
	}
}

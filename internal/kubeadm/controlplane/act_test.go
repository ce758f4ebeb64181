package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/test/testkit"
)

// Every write fails once, and each run ends with the same: one that creates, scales, rolls out, and deletes.
func TestEveryWriteFailsOnce(t *testing.T) { // KC-01, KC-02, KC-03, KC-04, KC-05, KC-06, KC-11, KC-17, KC-31, KC-32, CP-05, CP-06, CP-07, KC-21, KC-22
	plane := barePlane(1)
	plane.Spec.MachineTemplate.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Foo"}}
	plane.Spec.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{Key: "k", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways}}
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return managementCluster(plane.DeepCopy()) }, func(t *testing.T, c client.WithWatch) {
		p := play(t, c)
		p.settle("one Machine", p.whole(1))
		m := p.machines()[0]
		if len(m.Spec.ReadinessGates) != 7 || len(m.Spec.Taints) != 1 || !hasHook(&m) || m.Labels[clusterv1.MachineControlPlaneNameLabel] != "kcp" {
			t.Errorf("Machine %+v", m)
		}
		p.change(func(plane *controlplanev1.KubeadmControlPlane) { plane.Spec.Version = "v1.36.3" })
		p.settle("upgraded", func() string {
			if got := p.machines()[0].Spec.Version; got != "v1.36.3" {
				return got
			}
			if problem := p.addons("v1.36.3"); problem != "" {
				return problem
			}
			return p.whole(1)()
		})
		p.twice(func() error { return p.c.Delete(t.Context(), p.plane()) })
		p.settle("deleted", func() string {
			err := p.c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "kcp"}, &controlplanev1.KubeadmControlPlane{})
			if apierrors.IsNotFound(err) && len(p.machines()) == 0 {
				return ""
			}
			return fmt.Sprintf("%v, %d Machines", err, len(p.machines()))
		})
	})
}

// A control plane of three: what follows in place does so without a rollout; a restart of the controller at each step changes nothing.
func TestInPlaceAndRestart(t *testing.T) { // KC-10, CP-17, CP-18
	p := play(t, managementCluster(barePlane(3)).WithReturnManagedFields().Build())
	p.settle("three Machines", func() string {
		p.restart()
		return p.whole(3)()
	})
	before := p.machines()
	p.change(func(plane *controlplanev1.KubeadmControlPlane) {
		plane.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"a": "b"}
		plane.Spec.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(7))
	})
	p.settle("in place", func() string {
		for i, m := range p.machines() {
			if m.Name != before[i].Name || m.Labels["a"] != "b" || m.Spec.Deletion.NodeDrainTimeoutSeconds == nil || !hasHook(&m) {
				return fmt.Sprintf("Machine %+v", m.ObjectMeta)
			}
			config := &bootstrapv1.KubeadmConfig{}
			p.must(p.c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: m.Name}, config))
			delete(config.Annotations, clusterv1.MachineCertificatesExpiryDateAnnotation)
			if config.Labels["a"] != "b" || len(config.Annotations) > 0 {
				return fmt.Sprintf("KubeadmConfig %+v", config.ObjectMeta)
			}
		}
		return p.whole(3)()
	})
}

// KubeadmConfigs say until when the certificates of their Machines are valid, which are read once; those that expire soon are replaced.
func TestCertificateExpiry(t *testing.T) { // KC-24
	p := play(t, managementCluster(barePlane(3)).WithReturnManagedFields().Build())
	says := func() (out []string) {
		configs := &bootstrapv1.KubeadmConfigList{}
		p.must(p.c.List(t.Context(), configs))
		for _, c := range configs.Items {
			out = append(out, c.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation])
		}
		return out
	}
	allSay := func(at time.Time) func() string {
		return func() string {
			want := at.UTC().Format(time.RFC3339)
			if got := says(); !slices.Equal(got, []string{want, want, want}) {
				return fmt.Sprintf("got %v, want %s", got, want)
			}
			return p.whole(3)()
		}
	}
	soon := began.AddDate(0, 0, 20)
	p.expiry = soon
	p.settle("three Machines", allSay(soon))
	for range 20 {
		p.must(p.round())
	}
	for node, times := range p.read {
		if times != 2 { // the one that fails, and the other
			t.Errorf("Node %s was asked %d times", node, times)
		}
	}
	later := began.AddDate(1, 0, 0)
	p.expiry = later
	p.change(func(plane *controlplanev1.KubeadmControlPlane) { plane.Spec.Rollout.Before.CertificatesExpiryDays = 30 })
	p.settle("replaced", allSay(later))
}

// Before the first Machine of another version or configuration joins, kubeadm's configuration follows; kube-proxy does once all Machines are up to
// date. What is skipped, missing or broken is said.
func TestUpgradeOfTheWorkloadCluster(t *testing.T) { // KC-21, KC-22, KC-23
	p := play(t, managementCluster(barePlane(3)).WithReturnManagedFields().Build())
	p.settle("three Machines", p.whole(3))
	config := func() string {
		got := &corev1.ConfigMap{}
		p.must(p.workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kubeadm-config"}, got))
		return got.Data["ClusterConfiguration"]
	}
	p.change(func(plane *controlplanev1.KubeadmControlPlane) {
		plane.Spec.Version = "v1.36.3"
		plane.Spec.KubeadmConfigSpec.ClusterConfiguration.APIServer.CertSANs = []string{"a.b"}
	})
	p.settle("upgraded", func() string {
		proxy := &appsv1.DaemonSet{}
		p.must(p.workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kube-proxy"}, proxy))
		isNew := false
		for _, m := range p.machines() {
			isNew = isNew || m.Spec.Version == "v1.36.3"
			if m.Spec.Version != "v1.36.3" && proxy.Spec.Template.Spec.Containers[0].Image != "example.org/kube-proxy:v1.35.4" {
				t.Fatal("kube-proxy is newer than an API server")
			}
		}
		if isNew && !(strings.Contains(config(), "v1.36.3") && strings.Contains(config(), "a.b")) {
			t.Fatalf("a Machine joins with\n%s", config())
		}
		if problem := p.addons("v1.36.3"); problem != "" {
			return fmt.Sprint(problem, len(p.machines()), p.plane().Status.Conditions)
		}
		return p.whole(3)()
	})
	says := condition.Set(p.plane().Status.Conditions).Get("AddonsUpToDate").Message
	if says != `kube-proxy has image "example.org/kube-proxy:v1.36.3"; CoreDNS has image "example.org/coredns:v1.12.1"` {
		t.Errorf("says %q", says)
	}
	p.change(func(plane *controlplanev1.KubeadmControlPlane) {
		plane.Annotations = map[string]string{controlplanev1.SkipKubeProxyAnnotation: ""}
		plane.Spec.KubeadmConfigSpec.ClusterConfiguration.DNS.ImageTag = "v1.11.0"
	})
	p.settle("blocked", func() string {
		c := condition.Set(p.plane().Status.Conditions).Get("AddonsUpToDate")
		if c.Reason != "UpgradeBlocked" || c.Message != "CoreDNS is not upgraded: version v1.11.0 is older than v1.12.1, the running version: its Corefile cannot be migrated back" {
			return fmt.Sprint(c)
		}
		return ""
	})
	broken := &corev1.ConfigMap{}
	p.must(p.workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kubeadm-config"}, broken))
	broken.Data["ClusterConfiguration"] = "apiVersion: x"
	p.must(p.workload.Update(t.Context(), broken))
	p.change(func(plane *controlplanev1.KubeadmControlPlane) {
		plane.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"true"}
	})
	p.settle("no Machine can join", func() string {
		c := condition.Set(p.plane().Status.Conditions).Get("RollingOut")
		if len(p.machines()) != 3 || c == nil || !strings.Contains(c.Message, `ConfigMap kubeadm-config of the workload cluster cannot be changed: The ClusterConfiguration has API version "x"`) {
			return fmt.Sprint(c)
		}
		return ""
	})
}

package bootstrap_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/bootstrap"
)

// KB-05
func TestLock(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u"}}
	lock, err := bootstrap.NewInitLock(cluster, "m")
	if err != nil {
		t.Fatal(err)
	}
	owner := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "u"}
	if lock.Namespace != "ns" || lock.Name != "c-lock" || len(lock.OwnerReferences) != 1 || lock.OwnerReferences[0] != owner ||
		len(lock.Data) != 1 || lock.Data["lock-information"] != `{"machineName":"m"}` || lock.Labels[clusterv1.ClusterNameLabel] != "c" {
		t.Errorf("%+v", lock)
	}
	if s := bootstrap.ParseInitLock(lock); !s.Found() || s.Holder != "m" {
		t.Errorf("%+v", s)
	}
	if bootstrap.ParseInitLock(nil).Found() {
		t.Error("no ConfigMap, no lock")
	}
	for _, text := range []string{"", "m", "{}", `{"machineName":1}`} {
		s := bootstrap.ParseInitLock(&corev1.ConfigMap{Data: map[string]string{"lock-information": text}})
		if !s.Found() || s.Holder != "" {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

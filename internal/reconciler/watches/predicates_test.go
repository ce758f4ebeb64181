package watches_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

func TestClusterChanged(t *testing.T) {
	yes := true
	now := metav1.Now()
	cases := map[string]struct {
		change func(*clusterv1.Cluster)
		want   bool
	}{
		"spec":                 {func(c *clusterv1.Cluster) { c.Generation++ }, true},
		"deletion":             {func(c *clusterv1.Cluster) { c.DeletionTimestamp = &now }, true},
		"infrastructure ready": {func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = &yes }, true},
		"control plane ready":  {func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = &yes }, true},
		"other status":         {func(c *clusterv1.Cluster) { c.Status.Phase = "Provisioned" }, false},
	}
	for name, tc := range cases {
		before := &clusterv1.Cluster{}
		after := before.DeepCopy()
		tc.change(after)
		if got := watches.ClusterChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// The owner of an authority follows what others make of it, and does not enqueue itself with what it writes.
func TestOrphanedOrChangedSecrets(t *testing.T) {
	yes := true
	secret := func(changes ...func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: "demo-ca", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"},
				OwnerReferences: []metav1.OwnerReference{{Kind: "HostedControlPlane", Name: "demo", Controller: &yes}},
			},
			Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"tls.crt": []byte("one"), "tls.key": []byte("key")},
		}
		for _, change := range changes {
			change(s)
		}
		return s
	}
	content := func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("two") }
	named := func(name string) func(*corev1.Secret) { return func(s *corev1.Secret) { s.Name = name } }
	orphan := func(s *corev1.Secret) { s.OwnerReferences = nil }
	users := func(s *corev1.Secret) { s.OwnerReferences, s.Type = nil, corev1.SecretTypeTLS }
	passes := watches.OrphanedOrChangedSecrets("ca", "sa")
	cases := map[string]struct {
		event any
		want  bool
	}{
		"content":              {event.UpdateEvent{ObjectOld: secret(), ObjectNew: secret(content)}, true},
		"content is removed":   {event.UpdateEvent{ObjectOld: secret(), ObjectNew: secret(func(s *corev1.Secret) { s.Data = nil })}, true},
		"content of a user's":  {event.UpdateEvent{ObjectOld: secret(users), ObjectNew: secret(users, content)}, true},
		"another authority":    {event.UpdateEvent{ObjectOld: secret(named("demo-sa")), ObjectNew: secret(named("demo-sa"), content)}, true},
		"another purpose":      {event.UpdateEvent{ObjectOld: secret(named("demo-kubeconfig")), ObjectNew: secret(named("demo-kubeconfig"), content)}, false},
		"of another cluster":   {event.UpdateEvent{ObjectOld: secret(named("other-ca")), ObjectNew: secret(named("other-ca"), content)}, false},
		"metadata":             {event.UpdateEvent{ObjectOld: secret(), ObjectNew: secret(func(s *corev1.Secret) { s.Labels["a"] = "b" })}, false},
		"resync":               {event.UpdateEvent{ObjectOld: secret(), ObjectNew: secret()}, false},
		"the owner is lost":    {event.UpdateEvent{ObjectOld: secret(), ObjectNew: secret(orphan)}, true},
		"creation":             {event.CreateEvent{Object: secret()}, false},
		"creation of a user's": {event.CreateEvent{Object: secret(users)}, false},
		"restored":             {event.CreateEvent{Object: secret(orphan)}, true},
		"deletion":             {event.DeleteEvent{Object: secret()}, false},
	}
	for name, tc := range cases {
		var got bool
		switch e := tc.event.(type) {
		case event.CreateEvent:
			got = passes.Create(e)
		case event.UpdateEvent:
			got = passes.Update(e)
		case event.DeleteEvent:
			got = passes.Delete(e)
		}
		if got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

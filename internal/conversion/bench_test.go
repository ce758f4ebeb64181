package conversion_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/conversion"
)

// BenchmarkConvert converts what an API server asks for most: objects as they are stored, for a client of the old version,
// and back.
func BenchmarkConvert(b *testing.B) {
	c, err := conversion.New(versionOf)
	if err != nil {
		b.Fatal(err)
	}
	replicas := int32(3)
	meta := metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{clusterv1.ClusterNameLabel: "a"}}
	pool := &clusterv1.MachinePool{ObjectMeta: meta, Spec: clusterv1.MachinePoolSpec{ClusterName: "a", Replicas: &replicas}}
	pool.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: "a", Version: "v1.36.3",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: "Config", Name: "a"}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: "Pool", Name: "a"},
	}
	cluster := &clusterv1.Cluster{ObjectMeta: meta, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: "Infra", Name: "a"},
		ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: "Plane", Name: "a"},
	}}
	old, hub := clusterv1beta1.GroupVersion.Version, clusterv1.GroupVersion.Version
	for name, stored := range map[string]runtime.Object{"Cluster": cluster, "MachinePool": pool} {
		spoke, err := c.Convert(stored, old)
		if err != nil {
			b.Fatal(err)
		}
		for _, way := range []struct {
			name, to string
			from     runtime.Object
		}{{"down", old, stored}, {"up", hub, spoke}} {
			b.Run(name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Convert(way.from, way.to); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

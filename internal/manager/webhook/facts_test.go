package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/kube"
)

// TestUpgrading: workers are upgraded as long as their spec or what runs is of another version.
func TestUpgrading(t *testing.T) { // CL-34
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	meta := func(name, cluster string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster, clusterv1.ClusterTopologyOwnedLabel: ""}}
	}
	deployment := func(name, spec string, runs ...string) *clusterv1.MachineDeployment {
		d := &clusterv1.MachineDeployment{ObjectMeta: meta(name, "c")}
		d.Spec.Template.Spec.Version = spec
		for _, version := range runs {
			d.Status.Versions = append(d.Status.Versions, clusterv1.StatusVersion{Version: version})
		}
		return d
	}
	pool := &clusterv1.MachinePool{ObjectMeta: meta("pool", "c")}
	pool.Spec.Template.Spec.Version = "v1.36.3"
	pool.Status.Versions = []clusterv1.StatusVersion{{Version: "v1.35.4"}, {Version: "v1.36.3"}}
	elsewhere := deployment("elsewhere", "v1.30.0")
	elsewhere.ObjectMeta = meta("elsewhere", "other")
	unmanaged := deployment("unmanaged", "v1.30.0")
	delete(unmanaged.Labels, clusterv1.ClusterTopologyOwnedLabel)
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		deployment("done", "v1.36.3", "v1.36.3"), deployment("distribution", "v1.36.3", "v1.36.3-eks-1"), deployment("waits", "v1.35.4", "v1.35.4"),
		deployment("rolls", "v1.36.3", "v1.35.4", "v1.36.3"), pool, elsewhere, unmanaged,
	).Build()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	cluster.Spec.Topology.Version = "v1.36.3"
	f := &facts{live: live, refs: kube.NewReferences(live, nil)}
	got, err := f.upgrading(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"MachineDeployment rolls", "MachineDeployment waits", "MachinePool pool"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

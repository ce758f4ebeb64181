package upgrade_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
)

// demo is a cluster of the version with a deployment of three nodes and a pool of one.
func demo(version string, changes ...func(*describe.Snapshot)) describe.Snapshot {
	n := int32(3)
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "p.example.com", Kind: "Plane", Name: "demo"}
	s := describe.Snapshot{
		Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo"}},
		Objects: map[describe.Ref]*unstructured.Unstructured{{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}: {Object: map[string]any{
			"spec": map[string]any{"version": version}}}},
	}
	s.Cluster.Spec.ControlPlaneRef = ref
	s.Cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "c"}, Version: version, Workers: clusterv1.WorkersTopology{
		MachineDeployments: []clusterv1.MachineDeploymentTopology{{Name: "md"}},
		MachinePools:       []clusterv1.MachinePoolTopology{{Name: "mp"}},
	}}
	d := clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "demo-md", Labels: map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md"}}}
	d.Spec.Template.Spec.Version, d.Spec.Replicas = version, &n
	p := clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: "demo-mp", Labels: map[string]string{clusterv1.ClusterTopologyMachinePoolNameLabel: "mp"}}}
	p.Spec.Template.Spec.Version = version
	s.Deployments, s.Pools = []clusterv1.MachineDeployment{d}, []clusterv1.MachinePool{p}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func annotated(name string) func(*describe.Snapshot) {
	return func(s *describe.Snapshot) {
		s.Cluster.Spec.Topology.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{name: ""}
	}
}

// controlPlaneMachines are three Machines of the control plane, another that is being deleted, and one of workers.
func controlPlaneMachines(s *describe.Snapshot) {
	for range 4 {
		s.Machines = append(s.Machines, clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}})
	}
	s.Machines[3].DeletionTimestamp = &metav1.Time{}
	s.Machines = append(s.Machines, clusterv1.Machine{})
}

func TestPlan(t *testing.T) { // TP-25, TP-26
	listed := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: clusterv1.ClusterClassSpec{
		KubernetesVersions: []string{"v1.32.0", "v1.33.0", "v1.34.0", "v1.34.2", "v1.35.0", "v1.36.0"}}}
	plain := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	extended := &clusterv1.ClusterClass{Spec: clusterv1.ClusterClassSpec{Upgrade: clusterv1.ClusterClassUpgrade{
		External: clusterv1.ClusterClassUpgradeExternal{GenerateUpgradePlanExtension: "plan.ext"}}}}
	behind := func(s *describe.Snapshot) { s.Deployments[0].Spec.Template.Spec.Version = "v1.35.0" }
	cases := map[string]struct {
		reason string
		s      describe.Snapshot
		class  *clusterv1.ClusterClass
		to     string
		want   string
		err    string
	}{
		"one minor": {"the control plane first", demo("v1.35.0"), plain, "v1.36.0", `
Upgrade of cluster demo from v1.35.0 to v1.36.0:
  1. control plane to v1.36.0
  2. workers to v1.36.0
     MachineDeployment md: 3 nodes are replaced, now v1.35.0
     MachinePool mp: 1 node is replaced, now v1.35.0`, ""},
		"nodes": {"those of the control plane are replaced, too", demo("v1.35.0", controlPlaneMachines), plain, "v1.36.0", `
Upgrade of cluster demo from v1.35.0 to v1.36.0:
  1. control plane to v1.36.0: 3 nodes are replaced, one after the other
  2. workers to v1.36.0
     MachineDeployment md: 3 nodes are replaced, now v1.35.0
     MachinePool mp: 1 node is replaced, now v1.35.0`, ""},
		"several": {"workers only as often as they have to", demo("v1.32.0"), listed, "v1.36.0", `
Upgrade of cluster demo from v1.32.0 to v1.36.0:
  1. control plane to v1.33.0
  2. control plane to v1.34.2
  3. control plane to v1.35.0
  4. workers to v1.35.0
     MachineDeployment md: 3 nodes are replaced, now v1.32.0
     MachinePool mp: 1 node is replaced, now v1.32.0
  5. control plane to v1.36.0
  6. workers to v1.36.0
     MachineDeployment md: 3 nodes are replaced, now v1.35.0
     MachinePool mp: 1 node is replaced, now v1.35.0`, ""},
		"workers behind": {"what has the version stays", demo("v1.36.0", behind), plain, "v1.36.0", `
The upgrade of cluster demo to v1.36.0 is in progress; remaining steps:
  1. workers to v1.36.0
     MachineDeployment md: 3 nodes are replaced, now v1.35.0`, ""},
		"deferred": {"", demo("v1.35.0", annotated(clusterv1.ClusterTopologyDeferUpgradeAnnotation)), plain, "v1.36.0", `
Upgrade of cluster demo from v1.35.0 to v1.36.0:
  1. control plane to v1.36.0
  2. workers to v1.36.0
     MachineDeployment md stays at v1.35.0: deferred by annotation topology.cluster.x-k8s.io/defer-upgrade
     MachinePool mp: 1 node is replaced, now v1.35.0`, ""},
		"held": {"", demo("v1.35.0", annotated(clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation)), plain, "v1.36.0", `
Upgrade of cluster demo from v1.35.0 to v1.36.0:
  1. control plane to v1.36.0
  2. workers to v1.36.0
     MachineDeployment md stays at v1.35.0: held by annotation topology.cluster.x-k8s.io/hold-upgrade-sequence of MachineDeployment md
     MachinePool mp: 1 node is replaced, now v1.35.0`, ""},
		"nothing":   {"", demo("v1.36.0"), plain, "v1.36.0", "\nCluster demo has Kubernetes v1.36.0; nothing is to be upgraded.", ""},
		"extension": {"", demo("v1.35.0"), extended, "v1.36.0", "\nUpgrade of cluster demo from v1.35.0 to v1.36.0; handler plan.ext decides the steps on the way.", ""},
		"too far":   {"", demo("v1.33.0"), plain, "v1.36.0", "", "passes v1.34; upgrade one minor version at a time"},
		"back":      {"", demo("v1.36.0"), plain, "v1.35.0", "", "is older than v1.36.0"},
		"nonsense":  {"", demo("v1.36.0"), extended, "vx", "", "version \"vx\""},
		"no class":  {"", demo("v1.36.0", func(s *describe.Snapshot) { s.Cluster.Spec.Topology = clusterv1.Topology{} }), plain, "v1.37.0", "", "has no ClusterClass"},
		"underway": {"", demo("v1.35.0", func(s *describe.Snapshot) {
			s.Cluster.Annotations = map[string]string{runtimev1.PendingHooksAnnotation: "AfterClusterUpgrade"}
		}), plain, "v1.36.0", "", "is in progress: see `slipway describe cluster demo`"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := upgrade.NewPlan(tc.s, tc.class, tc.to)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, "\n"+strings.Join(p.Lines(), "\n")); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestApply(t *testing.T) {
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(demo("v1.35.0").Cluster).Build()
	read := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: "team", Name: "demo"}
	if err := c.Get(t.Context(), key, read); err != nil {
		t.Fatal(err)
	}
	meanwhile := read.DeepCopy() // a controller's write
	meanwhile.Annotations = map[string]string{"example.org/seen": "true"}
	if err := c.Update(t.Context(), meanwhile); err != nil {
		t.Fatal(err)
	}
	if err := upgrade.Apply(t.Context(), c, read, "v1.36.0"); err != nil {
		t.Fatal(err)
	}
	got := &clusterv1.Cluster{}
	if err := c.Get(t.Context(), key, got); err != nil || got.Spec.Topology.Version != "v1.36.0" || got.Spec.Topology.ClassRef.Name != "c" {
		t.Errorf("the version changes, and nothing else: %v %+v", err, got.Spec.Topology)
	}
	if err := upgrade.Apply(t.Context(), c, read, "v1.37.0"); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a change that the plan has not seen is not overwritten: %v", err)
	}
}

package topology

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/topology/patch"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/testkit"
)

func classTemplate(kind, name string, spec map[string]any) contract.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: kind})
	u.SetNamespace("classes")
	u.SetName(name)
	u.SetLabels(map[string]string{"of": name})
	return contract.Object{Unstructured: u, Contract: contract.V1Beta2}
}

func templateRef(kind, name string) clusterv1.ClusterClassTemplateReference {
	return clusterv1.ClusterClassTemplateReference{APIVersion: "x/v1", Kind: kind, Name: name}
}

// whole is a Cluster of a class in another namespace, of which nothing exists.
func whole() Snapshot {
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "classes", Name: "class"}}
	class.Spec.Infrastructure.TemplateRef = templateRef("NetTemplate", "net")
	class.Spec.ControlPlane = clusterv1.ControlPlaneClass{
		TemplateRef: templateRef("PlaneTemplate", "plane"), Metadata: clusterv1.ObjectMeta{Labels: map[string]string{"from": "class"}},
		MachineInfrastructure: clusterv1.ControlPlaneClassMachineInfrastructureTemplate{TemplateRef: templateRef("HostTemplate", "host")},
		HealthCheck:           clusterv1.ControlPlaneClassHealthCheck{Checks: clusterv1.ControlPlaneClassHealthCheckChecks{NodeStartupTimeoutSeconds: new(int32(300))}},
		Deletion:              clusterv1.ControlPlaneClassMachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(10))},
	}
	class.Spec.Workers.MachineDeployments = []clusterv1.MachineDeploymentClass{{
		Class: "worker", Metadata: clusterv1.ObjectMeta{Labels: map[string]string{"from": "class"}, Annotations: map[string]string{"note": "class"}},
		Bootstrap:      clusterv1.MachineDeploymentClassBootstrapTemplate{TemplateRef: templateRef("ConfigTemplate", "config")},
		Infrastructure: clusterv1.MachineDeploymentClassInfrastructureTemplate{TemplateRef: templateRef("HostTemplate", "host")},
		HealthCheck: clusterv1.MachineDeploymentClassHealthCheck{
			Checks:      clusterv1.MachineDeploymentClassHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{{Type: "Ready", Status: "False", TimeoutSeconds: new(int32(60))}}},
			Remediation: clusterv1.MachineDeploymentClassHealthCheckRemediation{MaxInFlight: new(intstr.FromInt32(1)), TriggerIf: clusterv1.MachineDeploymentClassHealthCheckRemediationTriggerIf{UnhealthyInRange: "[1-2]"}},
		},
		FailureDomain: "a", MinReadySeconds: new(int32(5)), Deletion: clusterv1.MachineDeploymentClassMachineDeletionSpec{Order: clusterv1.OldestMachineSetDeletionOrder},
		Rollout: clusterv1.MachineDeploymentClassRolloutSpec{Strategy: clusterv1.MachineDeploymentClassRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}},
	}}
	class.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{
		Class: "pool", FailureDomains: []string{"a", "b"},
		Bootstrap:      clusterv1.MachinePoolClassBootstrapTemplate{TemplateRef: templateRef("ConfigTemplate", "config")},
		Infrastructure: clusterv1.MachinePoolClassInfrastructureTemplate{TemplateRef: templateRef("HostPoolTemplate", "hosts")},
	}}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid", Labels: map[string]string{clusterv1.WatchLabel: "filter"}}}
	cluster.Spec.Topology = clusterv1.Topology{
		ClassRef: clusterv1.ClusterClassRef{Name: "class", Namespace: "classes"}, Version: "v1.36.3", ControlPlane: clusterv1.ControlPlaneTopology{Replicas: new(int32(3))},
		Workers: clusterv1.WorkersTopology{
			MachineDeployments: []clusterv1.MachineDeploymentTopology{{Class: "worker", Name: "a", Replicas: new(int32(2))}, {Class: "worker", Name: "b"}},
			MachinePools:       []clusterv1.MachinePoolTopology{{Class: "pool", Name: "p", Replicas: new(int32(1))}},
		},
	}
	s := Snapshot{Cluster: cluster, Class: class, Templates: map[clusterv1.ClusterClassTemplateReference]contract.Object{}}
	for _, o := range []contract.Object{
		classTemplate("NetTemplate", "net", map[string]any{"subnet": "10.0.0.0/16", "controlPlaneEndpoint": map[string]any{"host": "", "port": int64(0)}}),
		classTemplate("PlaneTemplate", "plane", map[string]any{"flags": map[string]any{"audit": "on"}}),
		classTemplate("HostTemplate", "host", map[string]any{"size": "small"}),
		classTemplate("ConfigTemplate", "config", map[string]any{"files": []any{"/etc/a"}}),
		classTemplate("HostPoolTemplate", "hosts", map[string]any{"size": "small"}),
	} {
		s.Templates[templateRef(o.GetKind(), o.GetName())] = o
	}
	return s
}

func target(s Snapshot) Versions { return Versions{ControlPlane: s.Cluster.Spec.Topology.Version} }

func desire(s Snapshot, v Versions, patched Patched) (Desired, error) {
	draft, err := NewDraft(s, v)
	if err != nil {
		return Desired{}, err
	}
	if _, err := draft.Rotate(patched); err != nil {
		return Desired{}, err
	}
	return draft.DesiredState(patched)
}

// lines are the fields of a desired state, one each, by the part that they are of.
func lines(d Desired) []string {
	var out []string
	for _, part := range d.Parts {
		head := part.String() + " "
		if part.Live == nil {
			out = append(out, head+"is created")
		}
		if part.Frozen {
			out = append(out, head+"is frozen")
		}
		out = append(out, flat(head, part.Want.Object)...)
	}
	for _, o := range d.Obsolete {
		out = append(out, fmt.Sprintf("%T %s is deleted", o, o.GetName()))
	}
	return out
}

func flat(path string, value any) []string {
	m, ok := value.(map[string]any)
	if !ok || len(m) == 0 {
		return []string{fmt.Sprintf("%s = %v", path, value)}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, flat(strings.TrimPrefix(path+"."+key, "."), m[key])...)
	}
	return out
}

// difference are the lines of one of the two only.
func difference(before, after []string) string {
	var b strings.Builder
	for _, line := range before {
		if !slices.Contains(after, line) {
			b.WriteString("- " + line + "\n")
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			b.WriteString("+ " + line + "\n")
		}
	}
	return cmp.Or(b.String(), "nothing\n")
}

// exist makes everything exist that is desired.
func exist(s *Snapshot, d Desired) {
	s.Cluster = s.Cluster.DeepCopy()
	s.Live = Live{Deployments: map[string]LiveWorker{}, Pools: map[string]LiveWorker{}, HealthChecks: map[string]*clusterv1.MachineHealthCheck{}, Names: map[string]bool{}}
	object := func(key Key) contract.Object {
		return contract.Object{Unstructured: d.Part(key).Want, Contract: contract.V1Beta2}
	}
	s.Live.InfraCluster, s.Live.ControlPlane, s.Live.ControlPlaneMachines = object(Key{Role: InfraCluster}), object(Key{Role: ControlPlane}), object(Key{Role: controlPlaneMachines})
	for _, part := range d.Parts {
		meta := metav1.ObjectMeta{Namespace: "ns", Name: part.Want.GetName()}
		template := clusterv1.MachineTemplateSpec{}
		if part.Role == Deployment || part.Role == Pool {
			bootstrap, infrastructure := Key{deploymentBootstrap, part.Worker}, Key{deploymentInfrastructure, part.Worker}
			if part.Role == Pool {
				bootstrap, infrastructure = Key{poolBootstrap, part.Worker}, Key{poolInfrastructure, part.Worker}
			}
			template.Spec.Bootstrap.ConfigRef, template.Spec.InfrastructureRef = Reference(d.Part(bootstrap).Want), Reference(d.Part(infrastructure).Want)
		}
		switch part.Role {
		case Deployment:
			s.Live.Deployments[part.Worker] = LiveWorker{&clusterv1.MachineDeployment{ObjectMeta: meta, Spec: clusterv1.MachineDeploymentSpec{Template: template}}, object(Key{deploymentBootstrap, part.Worker}), object(Key{deploymentInfrastructure, part.Worker})}
		case Pool:
			s.Live.Pools[part.Worker] = LiveWorker{&clusterv1.MachinePool{ObjectMeta: meta, Spec: clusterv1.MachinePoolSpec{Template: template}}, object(Key{poolBootstrap, part.Worker}), object(Key{poolInfrastructure, part.Worker})}
		case ControlPlaneHealthCheck, deploymentHealthCheck:
			s.Live.HealthChecks[meta.Name] = &clusterv1.MachineHealthCheck{ObjectMeta: meta}
		}
		s.Live.Names[meta.Name] = true
	}
}

// existing is what exists after whole was created.
func existing(t *testing.T) Snapshot {
	t.Helper()
	s := whole()
	d, err := desire(s, target(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	exist(&s, d)
	return s
}

func TestDesired(t *testing.T) { // TP-01, TP-02, TP-07, TP-09, TP-10, TP-11, TP-12, TP-19, TP-23, TP-24
	created := whole()
	d, err := desire(created, target(created), nil)
	if err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, filepath.Join("testdata", "created.golden"), strings.Join(lines(d), "\n")+"\n")
	for name, change := range map[string]struct {
		reason string
		apply  func(s *Snapshot, v *Versions)
	}{
		"nothing": {"computing twice gives the same", func(*Snapshot, *Versions) {}},
		"replicas": {"they are not set where the topology does not say them", func(s *Snapshot, _ *Versions) {
			s.Cluster.Spec.Topology.ControlPlane.Replicas, s.Cluster.Spec.Topology.Workers.MachineDeployments[0].Replicas = nil, nil
		}},
		"control-plane": {"values of the topology take precedence over those of the class", func(s *Snapshot, _ *Versions) {
			s.Cluster.Spec.Topology.ControlPlane = clusterv1.ControlPlaneTopology{
				Replicas: new(int32(5)), Metadata: clusterv1.ObjectMeta{Labels: map[string]string{"from": "topology"}, Annotations: map[string]string{"a": "b"}},
				Deletion:       clusterv1.ControlPlaneTopologyMachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(20)), NodeDeletionTimeoutSeconds: new(int32(0))},
				ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: "Gate"}},
				Taints:         []clusterv1.MachineTaint{{Key: "k", Value: "v", Effect: "NoSchedule", Propagation: "Always"}},
				Rollout:        clusterv1.ControlPlaneTopologyRolloutSpec{After: metav1.Unix(1_800_000_000, 0)},
			}
		}},
		"deployment": {"values of the topology take precedence; what controls the upgrade stays in the topology", func(s *Snapshot, _ *Versions) {
			md := &s.Cluster.Spec.Topology.Workers.MachineDeployments[0]
			md.Metadata = clusterv1.ObjectMeta{Labels: map[string]string{"from": "topology", clusterv1.ClusterNameLabel: "other"}, Annotations: map[string]string{
				"note": "topology", clusterv1.ClusterTopologyDeferUpgradeAnnotation: "", clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation: "",
			}}
			md.FailureDomain, md.MinReadySeconds, md.Deletion.Order = "b", new(int32(0)), clusterv1.NewestMachineSetDeletionOrder
			md.Deletion.NodeDrainTimeoutSeconds = new(int32(7))
			md.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Gate"}}
			md.Taints = []clusterv1.MachineTaint{{Key: "k", Effect: "NoSchedule", Propagation: "OnInitialization"}}
			md.Rollout.After = metav1.Unix(1_800_000_000, 0)
			md.Rollout.Strategy = clusterv1.MachineDeploymentTopologyRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentTopologyRolloutStrategyRollingUpdate{MaxSurge: new(intstr.FromString("10%"))}}
		}},
		"health-override": {"an override takes the place of all checks and of the remediation", func(s *Snapshot, _ *Versions) {
			check := &s.Cluster.Spec.Topology.Workers.MachineDeployments[0].HealthCheck
			check.Checks.NodeStartupTimeoutSeconds = new(int32(1))
		}},
		"health-off": {"a check that is turned off is deleted", func(s *Snapshot, _ *Versions) {
			s.Cluster.Spec.Topology.ControlPlane.HealthCheck.Enabled = new(false)
			s.Cluster.Spec.Topology.Workers.MachineDeployments[0].HealthCheck.Enabled = new(false)
		}},
		"version": {"each part has the version that it may have", func(_ *Snapshot, v *Versions) {
			v.ControlPlane, v.Deployments, v.Pools = "v1.36.4", map[string]string{"a": "v1.36.4"}, map[string]string{"p": "v1.36.4"}
		}},
		"template": {"a template whose spec changes gets another name, and so does what refers to it", func(s *Snapshot, _ *Versions) {
			s.Templates[templateRef("HostTemplate", "host")] = classTemplate("HostTemplate", "host", map[string]any{"size": "large"})
			s.Changed = map[Key]bool{{Role: controlPlaneMachines}: true, {deploymentInfrastructure, "a"}: true, {deploymentInfrastructure, "b"}: true}
		}},
		"template-frozen": {"nothing is replaced before the version", func(s *Snapshot, v *Versions) {
			s.Templates[templateRef("HostTemplate", "host")] = classTemplate("HostTemplate", "host", map[string]any{"size": "large"})
			s.Changed = map[Key]bool{{Role: controlPlaneMachines}: true, {deploymentInfrastructure, "a"}: true, {deploymentInfrastructure, "b"}: true}
			v.Frozen = map[Key]bool{{Deployment, "a"}: true, {Role: ControlPlane}: true}
		}},
		"worker-new": {"a worker that may not be created yet is left out, with its check", func(s *Snapshot, v *Versions) {
			md := clusterv1.MachineDeploymentTopology{Class: "worker", Name: "d"}
			s.Cluster.Spec.Topology.Workers.MachineDeployments = append(s.Cluster.Spec.Topology.Workers.MachineDeployments, md)
			v.Withheld = map[Key]bool{{Deployment, "d"}: true}
		}},
		"worker-gone": {"the check goes with its worker", func(s *Snapshot, _ *Versions) {
			s.Cluster.Spec.Topology.Workers.MachineDeployments = s.Cluster.Spec.Topology.Workers.MachineDeployments[:1]
			s.Live.Surplus = append(s.Live.Surplus, s.Live.Deployments["b"].Object)
		}},
		"worker-again": {"a name that is taken is not used", func(s *Snapshot, _ *Versions) { delete(s.Live.Deployments, "a") }},
	} {
		t.Run(name, func(t *testing.T) {
			s, v := existing(t), target(whole())
			before, err := desire(s, v, nil)
			if err != nil {
				t.Fatal(err)
			}
			change.apply(&s, &v)
			after, err := desire(s, v, nil)
			if err != nil {
				t.Fatal(err)
			}
			testkit.CompareGolden(t, filepath.Join("testdata", name+".golden"), "# "+change.reason+"\n"+difference(lines(before), lines(after)))
		})
	}
}

func TestNamingTemplates(t *testing.T) { // CC-10, TP-02
	s := whole()
	s.Class.Spec.Infrastructure.Naming.Template = "{{ .cluster.name }}-net"
	s.Class.Spec.ControlPlane.Naming.Template = "{{ .cluster.name }}-cp-{{ .random }}"
	s.Class.Spec.Workers.MachineDeployments[0].Naming.Template = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-w"
	s.Class.Spec.Workers.MachinePools[0].Naming.Template = "{{ .machinePool.topologyName }}-{{ .random }}"
	d, err := desire(s, target(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[Key]string{{Role: InfraCluster}: "c-net", {Role: ControlPlane}: "c-cp-", {Deployment, "a"}: "c-a-w", {Pool, "p"}: "p-"} {
		if got := d.Part(key).Want.GetName(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	s.Live.Names = map[string]bool{"c-a-w": true} // the one before is being deleted
	if _, err := desire(s, target(s), nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a name without a random part is taken: %v", err)
	}
	s.Class.Spec.Workers.MachineDeployments[0].Naming.Template = "{{ .cluster.nam }}"
	if _, err := desire(s, target(s), nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a variable that does not exist: %v", err)
	}
}

// A control plane of the older contract has its fields elsewhere.
func TestOlderContract(t *testing.T) { // TP-09, TP-35
	s := whole()
	old := s.Templates[templateRef("PlaneTemplate", "plane")]
	old.Contract = contract.V1Beta1
	s.Templates[templateRef("PlaneTemplate", "plane")] = old
	before, err := desire(whole(), target(whole()), nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := desire(s, target(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, filepath.Join("testdata", "older-contract.golden"), difference(lines(before), lines(after)))
}

// A hosted control plane has no replicas and no rollouts: a topology that was written for another one has its other fields.
func TestHostedControlPlane(t *testing.T) { // TP-09
	s := whole()
	ref := clusterv1.ClusterClassTemplateReference{APIVersion: "controlplane.slipway.dev/v1alpha1", Kind: "HostedControlPlaneTemplate", Name: "plane"}
	template := classTemplate("HostedControlPlaneTemplate", "plane", map[string]any{"flags": map[string]any{"audit": "on"}})
	template.SetAPIVersion(ref.APIVersion)
	s.Class.Spec.ControlPlane.TemplateRef, s.Templates[ref] = ref, template
	s.Class.Spec.ControlPlane.MachineInfrastructure = clusterv1.ControlPlaneClassMachineInfrastructureTemplate{}
	s.Class.Spec.ControlPlane.HealthCheck = clusterv1.ControlPlaneClassHealthCheck{}
	s.Cluster.Spec.Topology.ControlPlane.Replicas, s.Cluster.Spec.Topology.ControlPlane.Rollout.After = new(int32(3)), metav1.Now()
	got, err := desire(s, target(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(got.Part(Key{Role: ControlPlane}).Want.Object, "spec")
	if want := map[string]any{"version": s.Cluster.Spec.Topology.Version, "flags": map[string]any{"audit": "on"}}; !reflect.DeepEqual(spec, want) {
		t.Errorf("%v, want %v", spec, want)
	}
}

// No patch reaches a field that the topology sets.
func TestProtectedFields(t *testing.T) { // TP-14
	s := whole()
	want, err := desire(s, target(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]map[string]any{
		"version and replicas": {"version": "v0", "replicas": int64(100), "flags": map[string]any{"audit": "on"}},
		"machine template": {"flags": map[string]any{"audit": "on"}, "machineTemplate": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{clusterv1.ClusterNameLabel: "other"}, "annotations": map[string]any{"a": "b"}},
			"spec":     map[string]any{"infrastructureRef": map[string]any{"kind": "Other", "name": "other", "namespace": "kube-system"}},
		}},
		"rollout": {"flags": map[string]any{"audit": "on"}, "rollout": map[string]any{"after": "2026-01-01T00:00:00Z"}},
	} {
		patched := classTemplate("PlaneTemplate", "plane", spec)
		labels := map[string]string{clusterv1.ClusterNameLabel: "other", clusterv1.ClusterTopologyOwnedLabel: "other"}
		if err := unstructured.SetNestedStringMap(patched.Object, labels, "spec", "template", "metadata", "labels"); err != nil {
			t.Fatal(err)
		}
		got, err := desire(s, target(s), Patched{{Role: ControlPlane}: patched})
		if err != nil {
			t.Fatal(err)
		}
		have, plain := got.Part(Key{Role: ControlPlane}).Want, want.Part(Key{Role: ControlPlane}).Want
		if !reflect.DeepEqual(have.Object, plain.Object) {
			t.Errorf("%s:\n%s", name, difference(flat("", plain.Object), flat("", have.Object)))
		}
	}
	s.Cluster.Spec.Topology.ControlPlane.Replicas = nil
	got, err := desire(s, target(s), Patched{{Role: ControlPlane}: classTemplate("PlaneTemplate", "plane", map[string]any{"replicas": int64(100)})})
	if err != nil {
		t.Fatal(err)
	}
	if replicas, found, _ := unstructured.NestedInt64(got.Part(Key{Role: ControlPlane}).Want.Object, "spec", "replicas"); found {
		t.Errorf("a patch sets the replicas that the topology leaves to others: %d", replicas)
	}
	net := classTemplate("NetTemplate", "net", map[string]any{"subnet": "10.0.0.0/16"})
	net.SetName("other")
	net.SetNamespace("other")
	got, err = desire(s, target(s), Patched{{Role: InfraCluster}: net})
	if err != nil {
		t.Fatal(err)
	}
	if have := got.Part(Key{Role: InfraCluster}).Want; !reflect.DeepEqual(have.Object, want.Part(Key{Role: InfraCluster}).Want.Object) {
		t.Errorf("identity: %v", have.Object)
	}
}

func TestWhatIsMissing(t *testing.T) {
	for reason, tc := range map[string]struct {
		change func(*Snapshot)
		want   string
	}{
		"a template": {func(s *Snapshot) { delete(s.Templates, templateRef("ConfigTemplate", "config")) },
			"ConfigTemplate config, the bootstrap template of the MachineDeployment a of ClusterClass class, does not exist: create it"},
		"what is no template": {func(s *Snapshot) { delete(s.Templates[templateRef("NetTemplate", "net")].Object, "spec") },
			"NetTemplate net, the infrastructure cluster of ClusterClass class, is not a template: its kind must end with Template, and it must have spec.template"},
		"a class of a pool": {func(s *Snapshot) { s.Class.Spec.Workers.MachinePools = nil },
			"MachinePool p is of class pool, which ClusterClass class does not have: correct spec.topology.workers of the Cluster, or add the class"},
	} {
		s := whole()
		tc.change(&s)
		if _, err := desire(s, target(s), nil); fault.UserMessage(err) != tc.want {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// What a class makes of other kinds: references of the Cluster stay, those of workers are switched over.
func TestOtherKinds(t *testing.T) { // TP-18
	s := existing(t)
	other := classTemplate("OtherTemplate", "config", map[string]any{"files": []any{"/etc/a"}})
	s.Templates[templateRef("OtherTemplate", "config")] = other
	s.Class = s.Class.DeepCopy()
	s.Class.Spec.Workers.MachineDeployments[0].Bootstrap.TemplateRef.Kind = "OtherTemplate"
	s.Class.Spec.Workers.MachinePools[0].Bootstrap.TemplateRef.Kind = "OtherTemplate"
	d, err := desire(s, target(s), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []Key{{deploymentBootstrap, "a"}, {poolBootstrap, "p"}} {
		part := d.Part(key)
		if part.Live != nil || part.Want.GetName() == s.Live.Deployments["a"].Bootstrap.GetName() || part.Want.GetName() == s.Live.Pools["p"].Bootstrap.GetName() {
			t.Errorf("%s is not created: %v", key, part.Want.Object["metadata"])
		}
	}
	s.Templates[templateRef("OtherTemplate", "plane")] = classTemplate("OtherTemplate", "plane", map[string]any{})
	s.Class.Spec.ControlPlane.TemplateRef = templateRef("OtherTemplate", "plane")
	want := "the control plane of the Cluster is Plane " + s.Live.ControlPlane.GetName() +
		", and ClusterClass class uses kind Other: use a class with templates of the same kind"
	if _, err := desire(s, target(s), nil); fault.UserMessage(err) != want {
		t.Errorf("%v", err)
	}
}

// BenchmarkDesired: 30 variables, 50 patches, 20 MachineDeployments.
func BenchmarkDesired(b *testing.B) {
	s := whole()
	topology := &s.Cluster.Spec.Topology
	topology.Workers.MachineDeployments = nil
	for n := range 20 {
		topology.Workers.MachineDeployments = append(topology.Workers.MachineDeployments,
			clusterv1.MachineDeploymentTopology{Class: "worker", Name: fmt.Sprintf("md-%d", n), Replicas: new(int32(3))})
	}
	for n := range 30 {
		topology.Variables = append(topology.Variables, clusterv1.ClusterVariable{Name: fmt.Sprintf("v%d", n), Value: apiextensionsv1.JSON{Raw: []byte(`{"a":["x","y"]}`)}})
	}
	for n := range 50 {
		s.Class.Spec.Patches = append(s.Class.Spec.Patches, clusterv1.ClusterClassPatch{Name: fmt.Sprintf("p%d", n), Definitions: []clusterv1.PatchDefinition{{
			Selector: clusterv1.PatchSelector{APIVersion: "x/v1", Kind: "HostTemplate", MatchResources: clusterv1.PatchSelectorMatch{
				MachineDeploymentClass: &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"worker"}},
			}},
			JSONPatches: []clusterv1.JSONPatch{{Op: "add", Path: fmt.Sprintf("/spec/template/spec/f%d", n),
				ValueFrom: &clusterv1.JSONPatchValue{Template: fmt.Sprintf("{{ index .v%d.a 0 }}-{{ .builtin.machineDeployment.topologyName }}", n%30)}}},
		}}})
	}
	program, err := patch.Compile(s.Class)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		draft, err := NewDraft(s, target(s))
		if err != nil {
			b.Fatal(err)
		}
		patched, _, err := draft.Patch(program, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := draft.DesiredState(patched); err != nil {
			b.Fatal(err)
		}
	}
}

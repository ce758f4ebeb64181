package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology/patch"
)

// change changes something of a Cluster, its class, the templates or the versions, at random.
func change(r *rand.Rand, s *Snapshot, v *Versions) {
	workers := &s.Cluster.Spec.Topology.Workers
	switch r.IntN(10) {
	case 0:
		workers.MachineDeployments = append(workers.MachineDeployments, clusterv1.MachineDeploymentTopology{Class: "worker", Name: fmt.Sprintf("w%d", r.IntN(1000))})
	case 1:
		if n := len(workers.MachineDeployments); n > 0 {
			workers.MachineDeployments = slices.Delete(workers.MachineDeployments, n-1, n)
		}
	case 2:
		workers.MachinePools = append(workers.MachinePools, clusterv1.MachinePoolTopology{Class: "pool", Name: fmt.Sprintf("p%d", r.IntN(1000))})
	case 3:
		s.Cluster.Spec.Topology.ControlPlane.Replicas = new(int32(r.IntN(9)))
	case 4:
		s.Cluster.Spec.Topology.ControlPlane.Metadata.Labels = map[string]string{fmt.Sprint("l", r.IntN(9)): "x", clusterv1.ClusterNameLabel: "other"}
	case 5:
		ref := templateRef("HostTemplate", "host")
		s.Templates[ref] = classTemplate("HostTemplate", "host", map[string]any{"size": fmt.Sprint(r.IntN(9))})
	case 6:
		v.ControlPlane = fmt.Sprintf("v1.36.%d", r.IntN(9))
	case 7:
		for i := range workers.MachineDeployments {
			workers.MachineDeployments[i].HealthCheck.Enabled = new(r.IntN(2) == 0)
		}
	case 8:
		s.Class.Spec.Patches = append(s.Class.Spec.Patches, randomPatch(r, len(s.Class.Spec.Patches)))
	case 9:
		s.Cluster.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "v", Value: apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", fmt.Sprint(r.IntN(9)))}}}
	}
}

// randomPatch sets something anywhere that a patch can reach, also what the topology sets.
func randomPatch(r *rand.Rand, n int) clusterv1.ClusterClassPatch {
	yes := new(true)
	paths := []string{"version", "replicas", "machineTemplate", "rollout", "flags/x", "clusterName"}
	selectors := []clusterv1.PatchSelector{
		{APIVersion: "x/v1", Kind: "PlaneTemplate", MatchResources: clusterv1.PatchSelectorMatch{ControlPlane: yes}},
		{APIVersion: "x/v1", Kind: "NetTemplate", MatchResources: clusterv1.PatchSelectorMatch{InfrastructureCluster: yes}},
		{APIVersion: "x/v1", Kind: "HostTemplate", MatchResources: clusterv1.PatchSelectorMatch{ControlPlane: yes,
			MachineDeploymentClass: &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"*"}}}},
	}
	values := []string{`{"spec":{"infrastructureRef":{"name":"other"}},"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"other"}}}`, `"v0"`, `7`}
	path := paths[r.IntN(len(paths))]
	value := values[r.IntN(len(values))]
	if path == "machineTemplate" {
		value = values[0]
	}
	base := "/spec/template/spec/"
	if r.IntN(4) == 0 {
		base, path, value = "/spec/template/metadata/labels/", "topology.cluster.x-k8s.io~1owned", `"other"`
	}
	return clusterv1.ClusterClassPatch{Name: fmt.Sprint("p", n), Definitions: []clusterv1.PatchDefinition{{
		Selector:    selectors[r.IntN(len(selectors))],
		JSONPatches: []clusterv1.JSONPatch{{Op: "add", Path: base + path, Value: &apiextensionsv1.JSON{Raw: []byte(value)}}},
	}}}
}

func compute(t *testing.T, s Snapshot, v Versions) Desired {
	t.Helper()
	draft, err := NewDraft(s, v)
	if err != nil {
		t.Fatal(err)
	}
	program, err := patch.Compile(s.Class)
	if err != nil {
		t.Fatal(err)
	}
	patched, _, err := draft.Patch(program, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draft.Rotate(patched); err != nil {
		t.Fatal(err)
	}
	if patched, _, err = draft.Patch(program, nil); err != nil {
		t.Fatal(err)
	}
	d, err := draft.DesiredState(patched)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Whatever changes: the same is computed twice, what exists as desired is not created again, names differ, no patch reaches what the
// topology sets, and nothing that was given is changed.
func TestProperties(t *testing.T) { // TP-02, TP-14
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := whole()
		v := target(s)
		for range 1 + r.IntN(12) {
			change(r, &s, &v)
		}
		class, cluster := s.Class.DeepCopy(), s.Cluster.DeepCopy()
		first := compute(t, s, v)
		if second := compute(t, s, v); difference(lines(first), lines(second)) != "nothing\n" {
			t.Fatalf("seed %d: computed twice:\n%s", seed, difference(lines(first), lines(second)))
		}
		names := map[string]bool{}
		for _, part := range first.Parts {
			name := part.Want.GetKind() + " " + part.Want.GetName()
			if names[name] {
				t.Fatalf("seed %d: two objects %s", seed, name)
			}
			names[name] = true
			protected(t, seed, part, v)
		}
		again := s
		exist(&again, first)
		for _, line := range lines(compute(t, again, v)) {
			if strings.HasSuffix(line, "is created") || strings.HasSuffix(line, "is deleted") {
				t.Fatalf("seed %d: %s, although it exists as desired", seed, line)
			}
		}
		if !sameJSON(t, class, s.Class) || !sameJSON(t, cluster, s.Cluster) {
			t.Fatalf("seed %d: the snapshot was changed", seed)
		}
	}
}

// ownNames are patches that write the names of templates into specs: their own, and those of others.
func ownNames() []clusterv1.ClusterClassPatch {
	change := func(kind, from string, match clusterv1.PatchSelectorMatch) clusterv1.PatchDefinition {
		return clusterv1.PatchDefinition{
			Selector: clusterv1.PatchSelector{APIVersion: "x/v1", Kind: kind, MatchResources: match},
			JSONPatches: []clusterv1.JSONPatch{{
				Op: "add", Path: "/spec/template/spec/host", ValueFrom: &clusterv1.JSONPatchValue{Variable: "builtin." + from},
			}},
		}
	}
	workers := clusterv1.PatchSelectorMatch{MachineDeploymentClass: &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"*"}}}
	return []clusterv1.ClusterClassPatch{{Name: "names", Definitions: []clusterv1.PatchDefinition{
		change("HostTemplate", "machineDeployment.infrastructureRef.name", workers),
		change("ConfigTemplate", "machineDeployment.infrastructureRef.name", workers),
		change("PlaneTemplate", "controlPlane.machineTemplate.infrastructureRef.name", clusterv1.PatchSelectorMatch{ControlPlane: new(true)}),
	}}}
}

// What patches make of names are the names that things have: after a change too, so that nothing is replaced a second time for it.
func TestNamesInSpecs(t *testing.T) { // TP-08, TP-16
	s := whole()
	s.Class.Spec.Patches = ownNames()
	v := target(s)
	size := "small"
	for round := range 4 {
		d := compute(t, s, v)
		host := d.Part(Key{deploymentInfrastructure, "a"}).Want
		for _, key := range []Key{{deploymentInfrastructure, "a"}, {deploymentBootstrap, "a"}} {
			if got, _, _ := unstructured.NestedString(d.Part(key).Want.Object, "spec", "template", "spec", "host"); got != host.GetName() {
				t.Errorf("round %d: the %s has name %q of %s", round, key, got, host.GetName())
			}
		}
		machines := d.Part(Key{Role: controlPlaneMachines}).Want.GetName()
		if got, _, _ := unstructured.NestedString(d.Part(Key{Role: ControlPlane}).Want.Object, "spec", "host"); got != machines {
			t.Errorf("round %d: the control plane has name %q of %s", round, got, machines)
		}
		exist(&s, d)
		s.Changed = nil
		if again := compute(t, s, v); difference(lines(d), lines(again)) != strings.Join(created(d), "") {
			t.Errorf("round %d: it is not at rest:\n%s", round, difference(lines(d), lines(again)))
		}
		names := map[string]bool{host.GetName(): true}
		size += "er" // each time another spec; then that of the beginning
		if round == 2 {
			size = "small"
		}
		s.Templates[templateRef("HostTemplate", "host")] = classTemplate("HostTemplate", "host", map[string]any{"size": size})
		s.Changed = map[Key]bool{{Role: controlPlaneMachines}: true, {deploymentInfrastructure, "a"}: true, {deploymentInfrastructure, "b"}: true}
		if next := compute(t, s, v).Part(Key{deploymentInfrastructure, "a"}); names[next.Want.GetName()] || next.Replaces == nil {
			t.Errorf("round %d: %s is not replaced", round, host.GetName())
		}
	}
}

// created are the lines of what is created, as a difference to a state in which it exists.
func created(d Desired) []string {
	var out []string
	for _, line := range lines(d) {
		if strings.HasSuffix(line, "is created") {
			out = append(out, "- "+line+"\n")
		}
	}
	return out
}

// protected checks what no patch and no metadata of a user may change.
func protected(t *testing.T, seed uint64, part Part, v Versions) {
	t.Helper()
	labels := part.Want.GetLabels()
	if owned, ok := labels[clusterv1.ClusterTopologyOwnedLabel]; !ok || owned != "" || labels[clusterv1.ClusterNameLabel] != "c" {
		t.Fatalf("seed %d: labels of %s: %v", seed, part.Key, labels)
	}
	if part.Role != ControlPlane {
		return
	}
	spec := part.Want.Object["spec"].(map[string]any)
	ref := spec["machineTemplate"].(map[string]any)["spec"].(map[string]any)["infrastructureRef"].(map[string]any)
	metadata := spec["machineTemplate"].(map[string]any)["metadata"].(map[string]any)["labels"].(map[string]any)
	if spec["version"] != v.ControlPlane || ref["kind"] != "HostTemplate" || ref["name"] == "other" || metadata[clusterv1.ClusterNameLabel] != "c" {
		t.Fatalf("seed %d: control plane %v", seed, spec)
	}
	if n, ok := spec["replicas"].(int64); !ok || n > 9 {
		t.Fatalf("seed %d: replicas %v", seed, spec["replicas"])
	}
}

func sameJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(flat("", x), "\n") == strings.Join(flat("", y), "\n")
}

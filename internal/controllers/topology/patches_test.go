package topology

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A variable changes what a patch makes of a template: the template is replaced.
func TestVariables(t *testing.T) { // TP-13, TP-16, TP-17
	class, cluster := newClass(), newCluster()
	class.Spec.Variables = []clusterv1.ClusterClassVariable{{Name: "size", Required: new(true), Schema: sizes()}}
	class.Status.Variables = []clusterv1.ClusterClassStatusVariable{{
		Name: "size", Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{From: clusterv1.VariableDefinitionFromInline, Required: new(true), Schema: sizes()}},
	}}
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{Name: "size", Definitions: []clusterv1.PatchDefinition{{
		Selector: clusterv1.PatchSelector{APIVersion: "x/v1", Kind: "HostTemplate", MatchResources: clusterv1.PatchSelectorMatch{
			MachineDeploymentClass: &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"*"}},
		}},
		JSONPatches: []clusterv1.JSONPatch{
			{Op: "replace", Path: "/spec/template/spec/size", ValueFrom: &clusterv1.JSONPatchValue{Variable: "size"}},
			{Op: "add", Path: "/spec/template/spec/owner", ValueFrom: &clusterv1.JSONPatchValue{
				Template: "{{ .builtin.cluster.name }}/{{ .builtin.machineDeployment.name }}",
			}},
		},
	}}}}
	w := newWorld(t, management(cluster, class).WithReturnManagedFields().Build())
	w.settle()
	first := w.one("HostTemplate", "c-a-")
	md := w.one("MachineDeployment", "")
	want := map[string]any{"size": "medium", "owner": "c/" + md.GetName()}
	if diff := cmp.Diff(want, valueAt(t, first, "spec", "template", "spec")); diff != "" {
		t.Errorf("TP-17: the default of the class (-want +got):\n%s", diff)
	}
	set := func(value string) {
		w.change(func(c *clusterv1.Cluster) {
			c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "size", Value: apiextensionsv1.JSON{Raw: []byte(value)}}}
		})
		w.settle()
	}
	set(`"large"`)
	second := w.one("HostTemplate", "c-a-")
	if second.GetName() == first.GetName() || valueAt(t, second, "spec", "template", "spec", "size") != "large" {
		t.Errorf("the template was not replaced: %v", second.Object)
	}
	set(`7`)
	if got := w.condition(); !strings.HasPrefix(got, "False ReconcileFailed The variables of the Cluster do not match ClusterClass ns/class: ") {
		t.Error(got)
	}
	if w.one("HostTemplate", "c-a-").GetName() != second.GetName() {
		t.Error("something was changed")
	}
}

// A patch that cannot be applied changes nothing, and the condition says which, to what, and why.
func TestBrokenPatch(t *testing.T) { // TP-13, TP-20
	class := newClass()
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{Name: "net", Definitions: []clusterv1.PatchDefinition{{
		Selector: clusterv1.PatchSelector{APIVersion: "x/v1", Kind: "NetTemplate", MatchResources: clusterv1.PatchSelectorMatch{InfrastructureCluster: new(true)}},
		JSONPatches: []clusterv1.JSONPatch{
			{Op: "replace", Path: "/spec/template/spec/subnet", ValueFrom: &clusterv1.JSONPatchValue{Variable: "missing"}},
		},
	}}}}
	w := newWorld(t, management(newCluster(), class).WithReturnManagedFields().Build())
	w.settle()
	want := "False ReconcileFailed Patch net of ClusterClass class cannot be applied to NetTemplate net (infrastructure cluster): the value for " +
		"/spec/template/spec/subnet: variable missing has no value; set it, or disable the patch without it by enabledIf"
	if diff := cmp.Diff(want, w.condition()); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
	if names := w.names(); len(names) != 0 {
		t.Errorf("created %v", names)
	}
}

func sizes() clusterv1.VariableSchema {
	return clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"medium"`)}}}
}

// Patches that write names of templates into specs, that of the template itself too: one change replaces each template once, and what
// refers to them changes once.
func TestNamesInSpecs(t *testing.T) { // TP-08, TP-16
	var writes []string
	class := newClass()
	add := func(kind, from string, match clusterv1.PatchSelectorMatch) {
		class.Spec.Patches = append(class.Spec.Patches, clusterv1.ClusterClassPatch{Name: kind, Definitions: []clusterv1.PatchDefinition{{
			Selector: clusterv1.PatchSelector{APIVersion: "x/v1", Kind: kind, MatchResources: match},
			JSONPatches: []clusterv1.JSONPatch{{
				Op: "add", Path: "/spec/template/spec/host", ValueFrom: &clusterv1.JSONPatchValue{Variable: "builtin." + from},
			}},
		}}})
	}
	workers := clusterv1.PatchSelectorMatch{MachineDeploymentClass: &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"worker"}}}
	add("HostTemplate", "machineDeployment.infrastructureRef.name", workers)
	add("ConfigTemplate", "machineDeployment.infrastructureRef.name", workers)
	add("PlaneTemplate", "controlPlane.machineTemplate.infrastructureRef.name", clusterv1.PatchSelectorMatch{ControlPlane: new(true)})
	w := newWorld(t, management(newCluster(), class).WithReturnManagedFields().WithInterceptorFuncs(recorder(&writes)).Build())
	w.settle()
	for _, size := range []string{"large", "huge", "large"} {
		before := w.one("HostTemplate", "c-a-").GetName()
		writes = nil
		w.update(template("HostTemplate", "host", nil), func(o client.Object) {
			_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, size, "spec", "template", "spec", "size")
		})
		w.settle()
		host := w.one("HostTemplate", "c-a-")
		if host.GetName() == before {
			t.Fatalf("%s: the template was not replaced", size)
		}
		want := map[string]any{"size": size, "host": host.GetName()}
		if diff := cmp.Diff(want, valueAt(t, host, "spec", "template", "spec")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", size, diff)
		}
		if got := valueAt(t, w.one("ConfigTemplate", "c-a-"), "spec", "template", "spec", "host"); got != host.GetName() {
			t.Errorf("%s: the bootstrap template has the name %v of %s", size, got, host.GetName())
		}
		plane := w.one("Plane", "")
		if got, ref := valueAt(t, plane, "spec", "host"), valueAt(t, plane, "spec", "machineTemplate", "spec", "infrastructureRef", "name"); got != ref {
			t.Errorf("%s: the control plane has the name %v of %v", size, got, ref)
		}
		for _, once := range []string{"Plane " + plane.GetName() + " []", "MachineDeployment " + w.one("MachineDeployment", "").GetName() + " []"} {
			if n := len(slices.DeleteFunc(slices.Clone(writes), func(write string) bool { return write != once })); n != 1 {
				t.Errorf("%s: %d writes of %s: %q", size, n, once, writes)
			}
		}
	}
}

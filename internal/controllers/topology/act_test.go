package topology

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/testkit"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// recorder records the writes of a client.
func recorder(writes *[]string) interceptor.Funcs {
	var mu sync.Mutex
	note := func(write string) {
		mu.Lock()
		defer mu.Unlock()
		*writes = append(*writes, write)
	}
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			options := (&client.PatchOptions{}).ApplyOptions(opts)
			note(fmt.Sprintf("%s %s %v", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), options.DryRun))
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			note("delete " + o.GetName())
			return c.Delete(ctx, o, opts...)
		},
	}
}

func valueAt(t *testing.T, o *unstructured.Unstructured, path ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestCreation(t *testing.T) { // TP-01, TP-02, TP-03, TP-04, TP-07, TP-20
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	cluster := w.cluster()
	if cluster.Spec.InfrastructureRef.Kind != "Net" || cluster.Spec.ControlPlaneRef.Kind != "Plane" || cluster.Spec.ControlPlaneRef.APIGroup != "x" {
		t.Errorf("references %+v %+v", cluster.Spec.InfrastructureRef, cluster.Spec.ControlPlaneRef)
	}
	if got := w.condition(); got != "True ReconcileSucceeded" {
		t.Error(got)
	}
	names := w.names()
	if len(names) != 11 {
		t.Errorf("want 11 objects, got %v", names)
	}
	net := w.one("Net", "c-")
	if valueAt(t, net, "spec", "controlPlaneEndpoint") != nil || valueAt(t, net, "spec", "subnet") != "10.0.0.0/16" {
		t.Errorf("TP-07: an empty endpoint is left to the provider: %v", net.Object["spec"])
	}
	if owner := net.GetOwnerReferences(); len(owner) != 1 || owner[0].UID != "c-uid" || !*owner[0].Controller {
		t.Errorf("TP-03: it is the Cluster's from its creation: %v", owner)
	}
	plane := w.one("Plane", "c-")
	want := map[string]any{
		"version": "v1.36.3", "replicas": int64(3), "flags": map[string]any{"audit": "on"},
		"machineTemplate": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{clusterv1.ClusterNameLabel: "c", clusterv1.ClusterTopologyOwnedLabel: ""}},
			"spec": map[string]any{"infrastructureRef": map[string]any{
				"apiGroup": "x", "kind": "HostTemplate", "name": valueAt(t, plane, "spec", "machineTemplate", "spec", "infrastructureRef", "name"),
			}},
		},
	}
	if diff := cmp.Diff(want, plane.Object["spec"]); diff != "" {
		t.Errorf("control plane (-want +got):\n%s", diff)
	}
	md := w.one("MachineDeployment", "c-a-")
	if got := md.GetLabels(); got[clusterv1.ClusterTopologyMachineDeploymentNameLabel] != "a" || got["team"] != "class" {
		t.Errorf("labels %v", got)
	}
	w.one("MachineHealthCheck", md.GetName())
	w.one("MachineHealthCheck", plane.GetName())
}

func TestSteadyState(t *testing.T) { // TP-06: no write and no dry run
	var writes []string
	w := newWorld(t, counting(&writes).Build())
	w.settle()
	if len(writes) > 20 {
		t.Errorf("%d writes to create it: %v", len(writes), writes)
	}
	writes = nil
	w.change(func(c *clusterv1.Cluster) { c.Annotations["unrelated"] = "x" })
	w.settle()
	if len(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
}

// The manager dies at each write of a creation, a rotation, and an upgrade with workers that go: the end is the same.
func TestEveryWriteFailsOnce(t *testing.T) { // TP-03, TP-08, TP-30
	var want []string
	testkit.EveryWrite(t, func() *fake.ClientBuilder { return management(newCluster(), newClass()) }, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.settle()
		w.update(template("HostTemplate", "host", nil), func(o client.Object) {
			_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "large", "spec", "template", "spec", "size")
		})
		w.settle()
		w.change(func(c *clusterv1.Cluster) {
			c.Spec.Topology.Version = "v1.36.4"
			c.Spec.Topology.Workers.MachinePools = nil
		})
		w.settle()
		if got := w.names(); want == nil {
			want = got
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the end is another (-want +got):\n%s", diff)
		}
	})
}

func TestRotation(t *testing.T) { // TP-08
	var writes []string
	w := newWorld(t, counting(&writes).Build())
	w.settle()
	plane, md := w.one("Plane", ""), w.one("MachineDeployment", "")
	before := valueAt(t, plane, "spec", "machineTemplate", "spec", "infrastructureRef", "name")
	writes = nil
	w.update(template("HostTemplate", "host", nil), func(o client.Object) {
		_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "large", "spec", "template", "spec", "size")
	})
	w.settle()
	after := valueAt(t, w.one("Plane", ""), "spec", "machineTemplate", "spec", "infrastructureRef", "name")
	if before == after {
		t.Error("the control plane refers to the old template")
	}
	for _, name := range w.names() {
		if name == "HostTemplate "+before.(string) {
			t.Error("the old template of the control plane is still there")
		}
	}
	if w.one("MachineDeployment", "").GetName() != md.GetName() {
		t.Error("the MachineDeployment was replaced")
	}
	dry := 0
	for _, write := range writes {
		if len(write) > 5 && write[len(write)-5:] == "[All]" {
			dry++
		}
	}
	if dry != 2 {
		t.Errorf("TP-06: one dry run for each template that differs, got %d: %v", dry, writes)
	}
	t.Run("metadata changes in place", func(t *testing.T) {
		before := w.names()
		w.update(template("HostTemplate", "host", nil), func(o client.Object) { o.SetLabels(map[string]string{"new": "label"}) })
		w.settle()
		if diff := cmp.Diff(before, w.names()); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		if got := w.one("HostTemplate", after.(string)).GetLabels()["new"]; got != "label" {
			t.Error("the label is not on the template")
		}
	})
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

// A template that another client changes is replaced by one as the topology says, also a second time.
func TestDriftOfTemplate(t *testing.T) { // TP-05, TP-08
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	for n := range 3 {
		host := w.one("HostTemplate", "c-a-")
		w.update(host.DeepCopy(), func(o client.Object) {
			_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "other", "spec", "template", "spec", "size")
		})
		w.settle()
		next := w.one("HostTemplate", "c-a-")
		if next.GetName() == host.GetName() || valueAt(t, next, "spec", "template", "spec", "size") != "small" || w.condition() != "True ReconcileSucceeded" {
			t.Errorf("drift %d of %s: %v, %s", n, host.GetName(), next.Object, w.condition())
		}
	}
}

// A provider whose webhook refuses every change of a template, dry runs too, is no obstacle.
func TestRefusedDryRun(t *testing.T) { // TP-08
	refuse := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0 {
			return apierrors.NewForbidden(schema.GroupResource{Group: "x", Resource: "hosttemplates"}, o.GetName(), errors.New("spec is immutable"))
		}
		return c.Patch(ctx, o, p, opts...)
	}}
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().WithInterceptorFuncs(refuse).Build())
	w.settle()
	before := w.one("HostTemplate", "c-a-").GetName()
	w.update(template("HostTemplate", "host", nil), func(o client.Object) {
		_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "large", "spec", "template", "spec", "size")
	})
	w.settle()
	if after := w.one("HostTemplate", "c-a-"); after.GetName() == before || w.condition() != "True ReconcileSucceeded" {
		t.Errorf("%s is still used: %s", before, w.condition())
	}
}

func TestDrift(t *testing.T) { // TP-05
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	md := &clusterv1.MachineDeployment{}
	md.Namespace, md.Name = "ns", w.one("MachineDeployment", "").GetName()
	for range 2 { // the same drift twice
		w.update(md, func(o client.Object) {
			d := o.(*clusterv1.MachineDeployment)
			d.Spec.Replicas, d.Spec.MachineNaming.Template = new(int32(7)), "{{ .random }}"
			d.Labels["team"], d.Labels["mine"] = "other", "yes"
		})
		w.settle()
		w.must(w.Get(context.Background(), client.ObjectKeyFromObject(md), md))
		if *md.Spec.Replicas != 2 || md.Labels["team"] != "class" {
			t.Errorf("what the topology sets is set again: %+v %v", *md.Spec.Replicas, md.Labels)
		}
		if md.Spec.MachineNaming.Template == "" || md.Labels["mine"] != "yes" {
			t.Error("what it does not set stays")
		}
	}
}

func TestWaits(t *testing.T) { // CC-05, TP-20
	notReconciled := newClass()
	notReconciled.Generation = 2
	broken := newClass()
	broken.Spec.Infrastructure.TemplateRef.Name = "missing"
	unknown := newClass()
	unknown.Spec.Workers.MachineDeployments = nil
	uninstalled := newClass()
	uninstalled.Spec.Infrastructure.TemplateRef.Kind = "OtherTemplate"
	for reason, tc := range map[string]struct {
		class *clusterv1.ClusterClass
		want  string
	}{
		"no class":              {nil, "False ClusterClassNotReconciled Waiting for ClusterClass ns/class to be created"},
		"a class that changed":  {notReconciled, "False ClusterClassNotReconciled Waiting for ClusterClass ns/class to be reconciled"},
		"a missing template":    {broken, "False ReconcileFailed NetTemplate missing, the infrastructure cluster of ClusterClass class, does not exist: create it"},
		"a worker class":        {unknown, "False ReconcileFailed MachineDeployment a is of class worker, which ClusterClass class does not have: correct spec.topology.workers of the Cluster, or add the class"},
		"a kind that is absent": {uninstalled, "False ReconcileFailed Kind OtherTemplate of group x is not installed; install the provider it belongs to (CRD othertemplates.x)"},
	} {
		t.Run(reason, func(t *testing.T) {
			objects := []client.Object{newCluster()}
			if tc.class != nil {
				objects = append(objects, tc.class)
			}
			w := newWorld(t, management(objects...).WithReturnManagedFields().Build())
			w.settle()
			if diff := cmp.Diff(tc.want, w.condition()); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if names := w.names(); len(names) != 0 {
				t.Errorf("created %v", names)
			}
		})
	}
}

// A paused Cluster is not touched, and its condition says why.
func TestPaused(t *testing.T) { // PA-01, TP-20
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	w.change(func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	w.settle()
	if diff := cmp.Diff("False Paused Cluster spec.paused is set to true", w.condition()); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
	w.change(func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
	w.settle()
	if got := w.condition(); strings.Contains(got, "Paused") {
		t.Errorf("condition after the pause: %s", got)
	}
}

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
	if got := w.condition(); !strings.HasPrefix(got, "False ReconcileFailed The variables of the Cluster are not what ClusterClass ns/class asks for: ") {
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
		"/spec/template/spec/subnet: variable missing has no value; set it, or have the patch depend on it with enabledIf"
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

// A worker that cannot be brought up to date holds up no other.
func TestOneWorkerFails(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.Topology.Workers.MachineDeployments = append(cluster.Spec.Topology.Workers.MachineDeployments,
		clusterv1.MachineDeploymentTopology{Class: "worker", Name: "b"})
	refuse := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if o.GetObjectKind().GroupVersionKind().Kind == "MachineDeployment" && strings.HasPrefix(o.GetName(), "c-a-") {
			return fault.New(fault.Invalid, "Refused", "a webhook refuses it")
		}
		return c.Patch(ctx, o, p, opts...)
	}}
	w := newWorld(t, management(cluster, newClass()).WithReturnManagedFields().WithInterceptorFuncs(refuse).Build())
	for range 2 {
		_, err := w.reconcile()
		if fault.KindOf(err) == fault.Bug {
			t.Fatal(err)
		}
		w.identify()
	}
	w.one("MachineDeployment", "c-b-")
	w.one("MachinePool", "c-p-")
	if got := w.condition(); got != "False ReconcileFailed A webhook refuses it" {
		t.Error(got)
	}
}

// A Cluster that is being deleted is left to the Cluster controller.
func TestDeletion(t *testing.T) { // TP-34
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	before := w.names()
	w.must(w.Delete(t.Context(), w.cluster()))
	w.settle()
	if diff := cmp.Diff(before, w.names()); diff != "" {
		t.Errorf("objects (-before +after):\n%s", diff)
	}
	if got := w.condition(); !strings.HasPrefix(got, "False Deleting Cluster is deleting") || len(w.cluster().Finalizers) != 1 {
		t.Errorf("%s, finalizers %v", got, w.cluster().Finalizers)
	}
}

// A worker that the topology has no more is deleted with its check; its templates stay while a MachineSet uses them.
func TestRemovedWorker(t *testing.T) { // TP-32
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	md := w.one("MachineDeployment", "")
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	set.Spec.ClusterName = "c"
	set.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "x", Kind: "HostTemplate", Name: valueAt(t, md, "spec", "template", "spec", "infrastructureRef", "name").(string),
	}
	w.must(w.Create(t.Context(), set))
	w.change(func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachineDeployments = nil })
	w.settle()
	for _, name := range w.names() {
		if strings.HasPrefix(name, "MachineDeployment ") || name == "MachineHealthCheck "+md.GetName() || strings.HasPrefix(name, "ConfigTemplate ") {
			t.Errorf("%s is left", name)
		}
	}
	w.one("HostTemplate", "c-a-")
	w.must(w.Delete(t.Context(), set))
	w.settle()
	if slices.ContainsFunc(w.names(), func(name string) bool { return strings.HasPrefix(name, "HostTemplate c-a-") }) {
		t.Error("the template is left although nothing uses it")
	}
}

// What is not of the topology is not taken over, and not deleted.
func TestForeignObjects(t *testing.T) { // TP-02
	class := newClass()
	class.Spec.Infrastructure.Naming.Template = "{{ .cluster.name }}-net"
	foreign := template("Net", "c-net", nil)
	foreign.SetGroupVersionKind(foreign.GroupVersionKind().GroupVersion().WithKind("Net"))
	labelled := template("HostTemplate", "theirs", nil)
	labelled.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.ClusterTopologyOwnedLabel: ""})
	w := newWorld(t, management(newCluster(), class, foreign, labelled).WithReturnManagedFields().Build())
	for range 2 {
		if _, err := w.reconcile(); fault.KindOf(err) == fault.Bug {
			t.Fatal(err)
		}
	}
	if got := w.condition(); got != "False ReconcileFailed Net c-net exists and is not of the topology of Cluster c: rename or delete it" {
		t.Error(got)
	}
	w.must(w.Delete(t.Context(), foreign))
	w.settle()
	w.one("HostTemplate", "theirs")
}

// A Cluster that comes back from a backup before its workers does not create others in their place.
func TestRestoreInAnyOrder(t *testing.T) { // OR-01
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	before, specs := w.names(), w.specs()
	restored := append([]client.Object{w.cluster(), newClass()}, newTemplates()...)
	for _, o := range w.objects() {
		restored = append(restored, o.DeepCopyObject().(client.Object))
	}
	for _, o := range restored { // what a backup keeps
		o.SetUID(types.UID("new-" + string(o.GetUID())))
		o.SetOwnerReferences(nil)
		o.SetFinalizers(nil)
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		if c, ok := o.(*clusterv1.Cluster); ok {
			c.Status = clusterv1.ClusterStatus{}
		}
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(restored), func(i, j int) { restored[i], restored[j] = restored[j], restored[i] })
		empty := management().WithReturnManagedFields().Build()
		w := newWorld(t, empty)
		for _, o := range newTemplates() {
			w.must(w.Delete(t.Context(), o))
		}
		for _, o := range restored {
			w.must(client.IgnoreAlreadyExists(w.Create(t.Context(), o.DeepCopyObject().(client.Object)))) // as restores do
			for range 2 {
				if _, err := w.reconcile(); err != nil && fault.KindOf(err) != fault.Conflict {
					t.Fatal(err)
				}
			}
		}
		w.settle()
		if diff := cmp.Diff(before, w.names()); diff != "" {
			t.Fatalf("seed %d (-before +after):\n%s", seed, diff)
		}
		if diff := cmp.Diff(specs, w.specs()); diff != "" {
			t.Errorf("seed %d: what would replace Machines (-before +after):\n%s", seed, diff)
		}
		if got := w.condition(); got != "True ReconcileSucceeded" {
			t.Errorf("seed %d: %s", seed, got)
		}
	}
}

// A worker that a person deletes is created again; one that is gone without a trace is waited for.
func TestDeletedWorker(t *testing.T) {
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	if got := w.cluster().Annotations[lifecycle.WorkersAnnotation]; got != "MachineDeployment/a,MachinePool/p" {
		t.Errorf("workers %q", got)
	}
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: w.one("MachineDeployment", "").GetName()}}
	w.update(md, func(o client.Object) { o.SetFinalizers([]string{"test/hold"}) })
	w.must(w.Delete(t.Context(), md))
	w.settle()
	w.update(md, func(o client.Object) { o.SetFinalizers(nil) })
	w.settle()
	next := w.one("MachineDeployment", "")
	if next.GetName() == md.Name {
		t.Error("the name of one that was still being deleted was used")
	}
	w.must(w.Delete(t.Context(), &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: next.GetName()}}))
	w.settle()
	want := "False ReconcileFailed MachineDeployment a existed and does not any more: restore it, or remove it from the annotation " +
		lifecycle.WorkersAnnotation + " of the Cluster to have it created again"
	if got := w.condition(); got != want {
		t.Error(got)
	}
	w.change(func(c *clusterv1.Cluster) { delete(c.Annotations, lifecycle.WorkersAnnotation) })
	w.settle()
	w.one("MachineDeployment", "c-a-")
}

// Workers that others take the place of stay until those could be created.
func TestReplacedWorkersGoLast(t *testing.T) {
	refuse := false
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if refuse && o.GetObjectKind().GroupVersionKind().Kind == "MachineDeployment" {
				return apierrors.NewInvalid(o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetName(), nil)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build())
	w.settle()
	first := w.one("MachineDeployment", "c-a-").GetName()
	w.change(func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachineDeployments[0].Name = "b" })
	refuse = true
	for range 5 {
		if _, err := w.reconcile(); err != nil && !strings.Contains(err.Error(), "is invalid") {
			t.Fatal(err)
		}
	}
	w.one("MachineDeployment", first)
	refuse = false
	w.settle()
	if got := w.one("MachineDeployment", "").GetName(); !strings.HasPrefix(got, "c-b-") {
		t.Errorf("%s is left", got)
	}
}

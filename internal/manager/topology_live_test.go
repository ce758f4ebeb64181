package manager_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// topologyNames are the objects of a topology as "Kind name" with their generations.
func topologyNames(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range sweep(t, c, "default") {
		_, owned := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
		if owned && !slices.Contains([]string{"Cluster", "Machine", "MachineSet", "LocalMachine", "KubeadmConfig"}, o.GetKind()) {
			out[o.GetKind()+" "+o.GetName()] = fmt.Sprint(o.GetGeneration())
		}
	}
	return out
}

// kindsOf counts objects by kind.
func kindsOf(names map[string]string) map[string]int {
	out := map[string]int{}
	for name := range names {
		kind, _, _ := strings.Cut(name, " ")
		out[kind]++
	}
	return out
}

func untilReconciled(t *testing.T, c client.Client, name string) *clusterv1.Cluster {
	t.Helper()
	cluster := &clusterv1.Cluster{}
	eventually(t, "the topology of Cluster "+name+" is reconciled", func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, cluster); err != nil {
			return err
		}
		have := condition.Set(cluster.Status.Conditions).Get(clusterv1.ClusterTopologyReconciledCondition)
		if have == nil || have.Status != "True" || have.ObservedGeneration != cluster.Generation {
			return fmt.Errorf("generation %d: %+v", cluster.Generation, have)
		}
		return nil
	})
	return cluster
}

// deployment returns the only MachineDeployment once it has as many available Machines as it wants, all of its template.
func deployment(t *testing.T, c client.Client, what string, is func(*clusterv1.MachineDeployment) bool) *clusterv1.MachineDeployment {
	t.Helper()
	list := &clusterv1.MachineDeploymentList{}
	eventually(t, what, func() error {
		if err := c.List(t.Context(), list, client.InNamespace("default")); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d MachineDeployments", len(list.Items))
		}
		md := &list.Items[0]
		if n := *md.Spec.Replicas; md.Status.ObservedGeneration != md.Generation || !is(md) || md.Status.Replicas == nil || *md.Status.Replicas != n ||
			md.Status.AvailableReplicas == nil || *md.Status.AvailableReplicas != n || md.Status.UpToDateReplicas == nil || *md.Status.UpToDateReplicas != n {
			return fmt.Errorf("%+v %+v", md.Spec.Template.Spec, md.Status)
		}
		return nil
	})
	return &list.Items[0]
}

// The whole life of a Cluster of a class, with simulated machines.
func TestTopologyOverAPIServer(t *testing.T) { // TP-01, TP-02, TP-05, TP-06, TP-08, TP-12, TP-33
	server := apiserver.Start(t, apiserver.Options{})
	seen := newRecorder(t, server)
	startProcessOver(t, server, seen.kubeconfig, rbac.Rights{}, "--feature-gates=ClusterTopology=true")
	c := newClient(t, server)
	createFile(t, c, "default", filepath.Join("testdata", "class.yaml"))
	untilReconciled(t, c, "managed")
	untilAvailable(t, c, "default", "managed")
	first := deployment(t, c, "the workers are available", func(*clusterv1.MachineDeployment) bool { return true })

	writes := len(slices.DeleteFunc(seen.mentions(""), func(request string) bool { return strings.HasPrefix(request, "GET ") }))
	if writes > 150 {
		t.Errorf("%d writes until a Cluster of three machines is available", writes)
	}
	before := topologyNames(t, c)
	want := map[string]int{
		"LocalCluster": 1, "HostedControlPlane": 1, "MachineDeployment": 1, "MachineHealthCheck": 1, "KubeadmConfigTemplate": 1, "LocalMachineTemplate": 1,
		"MachinePool": 1, "LocalMachinePool": 1,
	}
	if diff := cmp.Diff(want, kindsOf(before)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	t.Run("a variable", func(t *testing.T) {
		cluster := untilReconciled(t, c, "managed")
		if got := string(cluster.Spec.Topology.Variables[0].Value.Raw); got != `{"delay":"100ms"}` {
			t.Errorf("the default of the variable: %s", got)
		}
		base := cluster.DeepCopy()
		cluster.Spec.Topology.Variables[0].Value.Raw = []byte(`{"delay":"120ms"}`)
		must(t, c.Patch(t.Context(), cluster, client.MergeFrom(base)))
		next := deployment(t, c, "the workers are replaced", func(md *clusterv1.MachineDeployment) bool {
			return md.Spec.Template.Spec.InfrastructureRef.Name != first.Spec.Template.Spec.InfrastructureRef.Name
		})
		made := &infrav1.LocalMachineTemplate{}
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: next.Spec.Template.Spec.InfrastructureRef.Name}, made))
		if made.Spec.Template.Spec.Backend.Simulated.StartupDelay != "120ms" {
			t.Errorf("template %+v", made.Spec.Template.Spec.Backend.Simulated)
		}
		first = next
	})
	t.Run("a label of the class", func(t *testing.T) {
		changeClass(t, c, func(class *clusterv1.ClusterClass) {
			class.Spec.Workers.MachineDeployments[0].Metadata.Labels["new"] = "label"
		})
		next := deployment(t, c, "the label is there", func(md *clusterv1.MachineDeployment) bool { return md.Spec.Template.Labels["new"] == "label" })
		if next.Spec.Template.Spec.InfrastructureRef != first.Spec.Template.Spec.InfrastructureRef {
			t.Error("metadata alone replaced a template")
		}
	})
	t.Run("drift", func(t *testing.T) {
		base := deployment(t, c, "it is settled", func(*clusterv1.MachineDeployment) bool { return true })
		md := base.DeepCopy()
		md.Spec.Replicas, md.Annotations = new(int32(1)), map[string]string{"mine": "yes"}
		must(t, c.Patch(t.Context(), md, client.MergeFrom(base)))
		next := deployment(t, c, "the replicas are set again", func(md *clusterv1.MachineDeployment) bool {
			return *md.Spec.Replicas == 2 && md.Annotations["mine"] == "yes"
		})
		if next.Name != first.Name {
			t.Error("another MachineDeployment")
		}
	})
	t.Run("a template in its older API version", func(t *testing.T) { olderTemplate(t, c) })
	t.Run("a template with another spec", func(t *testing.T) {
		larger := &infrav1.LocalMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "larger"}}
		larger.Spec.Template.Spec.Backend.Simulated = &infrav1.SimulatedMachine{StartupDelay: "50ms", Jitter: "5ms"}
		must(t, c.Create(t.Context(), larger))
		changeClass(t, c, func(class *clusterv1.ClusterClass) {
			class.Spec.Workers.MachineDeployments[0].Infrastructure.TemplateRef.Name = "larger"
		})
		next := deployment(t, c, "the workers are replaced", func(md *clusterv1.MachineDeployment) bool {
			return md.Spec.Template.Spec.InfrastructureRef.Name != first.Spec.Template.Spec.InfrastructureRef.Name
		})
		if next.Name != first.Name || next.Spec.Template.Spec.Bootstrap.ConfigRef != first.Spec.Template.Spec.Bootstrap.ConfigRef {
			t.Errorf("more than the template of the infrastructure changed: %+v", next.Spec.Template.Spec)
		}
		eventually(t, "the old template is deleted", func() error {
			o := &infrav1.LocalMachineTemplate{}
			err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: first.Spec.Template.Spec.InfrastructureRef.Name}, o)
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it exists: %w", err)
			}
			return nil
		})
	})
	t.Run("a value of the wrong type", func(t *testing.T) { wrongType(t, c) })
	t.Run("a steady state", func(t *testing.T) { steady(t, c) })
	t.Run("deletion", func(t *testing.T) {
		cluster := untilReconciled(t, c, "managed")
		must(t, c.Delete(t.Context(), cluster))
		eventually(t, "the Cluster is gone", func() error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%v: %+v", err, cluster.Status.Conditions)
			}
			return nil
		})
	})
}

// wrongType gives a template a value that server-side apply answers with HTTP 500. The Cluster shows it with the patch that it comes from, and
// is scaled all the same.
func wrongType(t *testing.T, c client.Client) { // TP-13, TP-20, TP-31
	patches := 0
	changeClass(t, c, func(class *clusterv1.ClusterClass) {
		d := &class.Spec.Patches[0].Definitions[1]
		patches = len(d.JSONPatches)
		d.JSONPatches = append(d.JSONPatches, clusterv1.JSONPatch{Op: "add", Path: "/spec/template/spec/postKubeadmCommands", Value: &apiextensionsv1.JSON{Raw: []byte("[true]")}})
	})
	cluster := &clusterv1.Cluster{}
	eventually(t, "the condition shows the refused template", func() error {
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "managed"}, cluster))
		have := condition.Set(cluster.Status.Conditions).Get(clusterv1.ClusterTopologyReconciledCondition)
		if have.Status != "False" || have.Reason != clusterv1.ClusterTopologyReconciledFailedReason || !strings.Contains(have.Message, "KubeadmConfigTemplate managed-") ||
			!strings.Contains(have.Message, "it is changed by the patches of ClusterClass simulated: ") {
			return fmt.Errorf("%+v", have)
		}
		return nil
	})
	scale := func(n int32) {
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "managed"}, cluster))
		base := cluster.DeepCopy()
		cluster.Spec.Topology.Workers.MachineDeployments[0].Replicas = &n
		must(t, c.Patch(t.Context(), cluster, client.MergeFrom(base)))
		deployment(t, c, "the workers are scaled", func(md *clusterv1.MachineDeployment) bool { return *md.Spec.Replicas == n })
	}
	scale(3)
	changeClass(t, c, func(class *clusterv1.ClusterClass) {
		d := &class.Spec.Patches[0].Definitions[1]
		d.JSONPatches = d.JSONPatches[:patches]
	})
	untilReconciled(t, c, "managed")
	scale(2)
	untilReconciled(t, c, "managed")
}

// olderTemplate names a template of the class in the API version before, with the patch that this needs, and then in the newest again.
// What is made of it stays the same: nothing is replaced.
func olderTemplate(t *testing.T, c client.Client) { // TP-35, CC-02
	names := func() []string {
		out := slices.Sorted(maps.Keys(topologyNames(t, c)))
		machines := &clusterv1.MachineList{}
		must(t, c.List(t.Context(), machines, client.InNamespace("default")))
		for _, m := range machines.Items {
			out = append(out, "Machine "+m.Name)
		}
		slices.Sort(out)
		return out
	}
	before := names()
	const group, args = "bootstrap.cluster.x-k8s.io/", "/spec/template/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs/"
	for _, v := range []struct{ version, path, value, upToDate string }{
		{"v1beta1", args + "v", `"{{ if semverCompare ">= 1.30" .builtin.machineDeployment.version }}4{{ end }}"`, "False"}, // a map
		{"v1beta2", args + "-", `{name: v, value: "{{ if semverCompare ">= 1.30" .builtin.machineDeployment.version }}4{{ end }}"}`, "True"},
	} {
		changeClass(t, c, func(class *clusterv1.ClusterClass) {
			worker, patch := &class.Spec.Workers.MachineDeployments[0], &class.Spec.Patches[0].Definitions[1]
			worker.Metadata.Labels["api"] = v.version
			worker.Bootstrap.TemplateRef.APIVersion, patch.Selector.APIVersion = group+v.version, group+v.version
			patch.JSONPatches[0].Path, patch.JSONPatches[0].ValueFrom.Template = v.path, v.value
		})
		deployment(t, c, "the class with "+v.version+" is used", func(md *clusterv1.MachineDeployment) bool { return md.Spec.Template.Labels["api"] == v.version })
		untilReconciled(t, c, "managed")
		eventually(t, "the class says whether its references are of the newest version", func() error {
			class := &clusterv1.ClusterClass{}
			must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "simulated"}, class))
			if have := condition.Set(class.Status.Conditions).Get(clusterv1.ClusterClassRefVersionsUpToDateCondition); have == nil || string(have.Status) != v.upToDate {
				return fmt.Errorf("%+v", have)
			}
			return nil
		})
		if diff := cmp.Diff(before, names()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", v.version, diff)
		}
	}
}

// steady checks that a reconciliation without a reason changes no object of the topology.
func steady(t *testing.T, c client.Client) {
	cluster := untilReconciled(t, c, "managed")
	before := topologyNames(t, c)
	base := cluster.DeepCopy() // a change that is of one object
	cluster.Spec.Topology.ControlPlane.Metadata.Annotations = map[string]string{"marker": "1"}
	must(t, c.Patch(t.Context(), cluster, client.MergeFrom(base)))
	untilReconciled(t, c, "managed")
	after := topologyNames(t, c)
	for name := range after {
		if strings.HasPrefix(name, "HostedControlPlane") { // the one that has the annotation
			delete(before, name)
			delete(after, name)
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("generations (-before +after):\n%s", diff)
	}
}

func changeClass(t *testing.T, c client.Client, change func(*clusterv1.ClusterClass)) {
	t.Helper()
	eventually(t, "change the class", func() error {
		class := &clusterv1.ClusterClass{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "simulated"}, class); err != nil {
			return err
		}
		change(class)
		return c.Update(t.Context(), class)
	})
}

// reconcileClass waits until the class is reconciled.
func reconcileClass(t *testing.T, c client.Client) {
	t.Helper()
	eventually(t, "the class is reconciled", func() error {
		class := &clusterv1.ClusterClass{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "simulated"}, class); err != nil {
			return err
		}
		if class.Status.ObservedGeneration != class.Generation {
			return fmt.Errorf("observed %d of %d", class.Status.ObservedGeneration, class.Generation)
		}
		return nil
	})
}

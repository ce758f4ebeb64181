package topology

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// typeError is what server-side apply answers to a value of the wrong type: HTTP 500.
func typeError() error {
	return apierrors.NewInternalError(errors.New("failed to create typed patch object: .spec.template.spec.need: expected string"))
}

// withNeed is a class with a patch that gives the bootstrap templates of class worker a value of a variable.
func withNeed() *clusterv1.ClusterClass {
	class := newClass()
	class.Spec.Variables = []clusterv1.ClusterClassVariable{{Name: "need", Required: new(false), Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "string"}}}}
	class.Status.Variables = []clusterv1.ClusterClassStatusVariable{{Name: "need", Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{
		From: clusterv1.VariableDefinitionFromInline, Required: new(false), Schema: class.Spec.Variables[0].Schema,
	}}}}
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{
		Name: "np", EnabledIf: "{{ if .need }}true{{ end }}",
		Definitions: []clusterv1.PatchDefinition{{
			Selector: clusterv1.PatchSelector{APIVersion: "x/v1", Kind: "ConfigTemplate", MatchResources: clusterv1.PatchSelectorMatch{
				MachineDeploymentClass: &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"worker"}},
			}},
			JSONPatches: []clusterv1.JSONPatch{{Op: "add", Path: "/spec/template/spec/need", ValueFrom: &clusterv1.JSONPatchValue{Template: "{{ .need }}"}}},
		}},
	}}
	return class
}

// refusing is a management cluster whose API server refuses bootstrap templates with the value true, dry runs too, by an error.
func refusing(cluster *clusterv1.Cluster, err func() error) client.WithWatch {
	return management(cluster, withNeed()).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if o.GetObjectKind().GroupVersionKind().Kind == "ConfigTemplate" {
				data, problem := p.Data(o)
				if problem != nil {
					return problem
				}
				if strings.Contains(string(data), `"need":true`) {
					return err()
				}
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
}

func setNeed(value string) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) {
		w := c.Spec.Topology.Workers.MachineDeployments
		w[0].Variables.Overrides = []clusterv1.ClusterVariable{{Name: "need", Value: apiextensionsv1.JSON{Raw: []byte(value)}}}
	}
}

// A template that the API refuses is shown by TopologyReconciled with the patch and the variable that it comes from, is retried, and holds
// up nothing that does not depend on it: not the replicas of the same MachineDeployment, and nothing of others.
func TestChangedTemplateIsRefused(t *testing.T) { // TP-13, TP-20, TP-31
	invalid := func() error {
		return apierrors.NewInvalid(schema.GroupKind{Group: "x", Kind: "ConfigTemplate"}, "c",
			field.ErrorList{field.Invalid(field.NewPath("spec", "template", "spec", "need"), true, "must be a string")})
	}
	for reason, tc := range map[string]struct {
		err  func() error
		want string
	}{
		"in a dry run, by the type of a value": {typeError, "cannot be changed: Internal error occurred: failed to create typed patch object: " +
			".spec.template.spec.need: expected string; it is changed by the patches of ClusterClass class: np (variables need); retrying"},
		"as invalid": {invalid, `cannot be created: ConfigTemplate.x "c" is invalid: spec.template.spec.need: Invalid value: true: must be a string; ` +
			"it is changed by the patches of ClusterClass class: np (variables need)"},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, refusing(newCluster(), tc.err))
			w.settle()
			w.change(setNeed(`"true"`))
			w.change(func(c *clusterv1.Cluster) {
				c.Spec.Topology.ControlPlane.Replicas = new(int32(5))
				workers := &c.Spec.Topology.Workers
				workers.MachineDeployments[0].Replicas = new(int32(7))
				workers.MachineDeployments = append(workers.MachineDeployments, clusterv1.MachineDeploymentTopology{Class: "worker", Name: "new", Replicas: new(int32(1))})
				workers.MachinePools[0].Replicas = new(int32(4))
			})
			for range 4 {
				if _, err := w.reconcile(); fault.KindOf(err) == fault.Bug {
					t.Fatal(err)
				}
				w.identify()
			}
			if got := w.condition(); !strings.HasPrefix(got, "False ReconcileFailed ConfigTemplate c-a-") || !strings.HasSuffix(got, tc.want) {
				t.Errorf("condition %q, want it to end with %q", got, tc.want)
			}
			got := map[string]any{}
			for kind, prefix := range map[string]string{"MachineDeployment": "c-a-", "MachinePool": "c-p-", "Plane": "c-"} {
				got[kind] = valueAt(t, w.one(kind, prefix), "spec", "replicas")
			}
			want := map[string]any{"MachineDeployment": int64(7), "MachinePool": int64(4), "Plane": int64(5)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
			w.one("MachineDeployment", "c-new-")
			w.change(setNeed(`"fine"`))
			w.settle()
			if got := w.condition(); got != "True ReconcileSucceeded" {
				t.Error(got)
			}
			if got := valueAt(t, w.one("ConfigTemplate", "c-a-"), "spec", "template", "spec", "need"); got != "fine" {
				t.Errorf("the template has %v", got)
			}
		})
	}
}

// A topology of which something cannot be read is not known to be reconciled. An error that passes at once changes nothing.
func TestTopologyCannotBeRead(t *testing.T) { // TP-20
	clock, broken, said := now(), false, ""
	c := management(newCluster(), newClass()).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*clusterv1.MachineDeploymentList); ok && broken {
				return apierrors.NewTimeoutError("request did not complete", 0)
			}
			return c.List(ctx, list, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			// The fake client forgets a condition when that of another manager is applied: what was written counts.
			if data, err := p.Data(o); err == nil && strings.Contains(string(data), "TopologyReconciled") {
				said = string(data)
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	w := newWorld(t, c)
	w.r.Now = func() time.Time { return clock }
	w.settle()
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, ""},
		{100 * time.Millisecond, ""},
		{2 * time.Second, `"message":"Observing: listing MachineDeployments: Timeout: request did not complete; retrying","observedGeneration":0,"reason":"ReconcileFailed","status":"False"`},
	} {
		clock, broken, said = clock.Add(step.after), true, ""
		if _, err := w.reconcile(); err == nil {
			t.Fatal("what cannot be read is retried")
		}
		if !strings.Contains(strings.ReplaceAll(said, `"observedGeneration":1`, `"observedGeneration":0`), step.want) || (step.want == "") != (said == "") {
			t.Errorf("after %s: %q, want %q", step.after, said, step.want)
		}
	}
	broken = false
	w.settle()
	if got := w.condition(); got != "True ReconcileSucceeded" {
		t.Error(got)
	}
}

// The last condition stays for the time between two reconciliations, and then with the generation that it is about; a failure does not,
// because it may have ended.
func TestWhatStaysOfTheLastCondition(t *testing.T) { // TP-20, LH-14
	later := snapshot{RuntimeSDK: true, HookResults: map[lifecycle.Hook]lifecycle.HookResult{lifecycle.AfterControlPlaneInitialized: {RetryAfter: time.Second}}}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "c", errors.New("changed"))
	last := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: clusterv1.ClusterTopologyReconciledCondition, Status: status, Reason: reason, Message: message, ObservedGeneration: 1}
	}
	succeeded := last(metav1.ConditionTrue, clusterv1.ClusterTopologyReconcileSucceededReason, "")
	timeout := last(metav1.ConditionFalse, clusterv1.ClusterTopologyReconciledFailedReason, "Patching Cluster ns/c: Timeout; retrying")
	for reason, tc := range map[string]struct {
		s    snapshot
		last *metav1.Condition
		out  reconciler.Outcome
		want metav1.Condition
	}{
		"a conflict": {snapshot{}, succeeded, reconciler.Outcome{Err: conflict, Failed: record{}}, *succeeded},
		"a conflict of a new Cluster": {snapshot{}, nil, reconciler.Outcome{Err: conflict, Failed: record{}}, metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: clusterv1.ClusterTopologyReconciledClusterCreatingReason, Message: "Cluster is being created", ObservedGeneration: 2,
		}},
		"extensions that cannot be called yet": {later, succeeded, reconciler.Outcome{}, *succeeded},
		"a failure that has passed": {later, timeout, reconciler.Outcome{}, metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: clusterv1.ClusterTopologyReconciledHookBlockingReason,
			Message: "Waiting until the Runtime Extensions of the lifecycle hooks can be called", ObservedGeneration: 2,
		}},
	} {
		t.Run(reason, func(t *testing.T) {
			s := tc.s
			s.Now, s.Snapshot = now(), topology.Snapshot{Cluster: newCluster(), Class: newClass()}
			s.Cluster.Generation = 2
			s.Cluster.Annotations = map[string]string{"runtime.cluster.x-k8s.io/pending-hooks": "AfterControlPlaneInitialized"}
			s.Cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue}}
			if tc.last != nil {
				s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions, *tc.last)
			}
			list := report(s.withLifecycle(), reconciler.Plan{}, tc.out).Status.(map[string]any)["conditions"].([]metav1.Condition)
			got, want := list[slices.IndexFunc(list, func(c metav1.Condition) bool { return c.Type == clusterv1.ClusterTopologyReconciledCondition })], tc.want
			got.Type, want.Type, got.LastTransitionTime = "", "", metav1.Time{}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A control plane whose template cannot be written holds up no worker of a Cluster that exists.
func TestControlPlaneTemplateIsRefused(t *testing.T) { // TP-31
	broken := false
	c := management(newCluster(), newClass()).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if broken && o.GetObjectKind().GroupVersionKind().Kind == "Plane" {
				return typeError()
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	w := newWorld(t, c)
	w.settle()
	broken = true
	w.update(template("PlaneTemplate", "plane", nil), func(o client.Object) {
		_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, true, "spec", "template", "spec", "flags", "audit")
	})
	w.change(func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachineDeployments[0].Replicas = new(int32(7)) })
	for range 2 {
		_, _ = w.reconcile()
	}
	if got := valueAt(t, w.one("MachineDeployment", "c-a-"), "spec", "replicas"); got != int64(7) {
		t.Errorf("%v replicas", got)
	}
	if got := w.condition(); !strings.HasPrefix(got, "False ReconcileFailed Plane c-") || !strings.Contains(got, "cannot be changed: Internal error occurred") {
		t.Error(got)
	}
}

// A topology gives no annotation that steers controllers to its objects, takes one back that an earlier version gave, and when the Cluster
// is deleted the control plane is released from it.
func TestTopologySteersNoController(t *testing.T) { // TP-04, TP-34
	cluster := newCluster()
	cluster.Spec.Topology.ControlPlane.Metadata.Annotations = map[string]string{clusterv1.PausedAnnotation: "", "team": "a"}
	cluster.Spec.Topology.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	w := newWorld(t, management(cluster, newClass()).WithReturnManagedFields().Build())
	w.settle()
	for kind, prefix := range map[string]string{"Plane": "c-", "MachineDeployment": "c-a-"} {
		if _, paused := w.one(kind, prefix).GetAnnotations()[clusterv1.PausedAnnotation]; paused {
			t.Errorf("%s is paused", kind)
		}
	}
	if got := w.one("Plane", "c-").GetAnnotations()["team"]; got != "a" {
		t.Errorf("annotation team is %q", got)
	}
	plane := w.one("Plane", "c-")
	w.update(plane, func(o client.Object) {
		annotations := o.GetAnnotations()
		annotations[clusterv1.PausedAnnotation] = ""
		o.SetAnnotations(annotations)
	})
	w.must(w.Delete(t.Context(), w.cluster()))
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(plane), plane))
	if _, paused := plane.GetAnnotations()[clusterv1.PausedAnnotation]; paused || plane.GetAnnotations()["team"] != "a" {
		t.Errorf("its annotations are %v", plane.GetAnnotations())
	}
}

// When extensions change, the Clusters that are not reconciled go on.
func TestWaitingClusters(t *testing.T) { // LH-14
	waiting, done, plain := newCluster(), newCluster(), newCluster()
	done.Name, plain.Name, plain.Spec.Topology = "done", "plain", clusterv1.Topology{}
	done.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterTopologyReconciledCondition, Status: metav1.ConditionTrue}}
	c := &controller{client: management(waiting, done, plain).Build()}
	got := c.waitingClusters(t.Context(), nil)
	if len(got) != 1 || got[0].NamespacedName != key {
		t.Errorf("got %v", got)
	}
}

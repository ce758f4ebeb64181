package topology

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// revisions are the objects of the topology with what tells that they were written.
func (w world) revisions() []string {
	var out []string
	for _, o := range w.objects() {
		gvk, err := w.GroupVersionKindFor(o)
		w.must(err)
		out = append(out, gvk.Kind+" "+o.GetName()+" "+o.GetResourceVersion())
	}
	slices.Sort(out)
	return out
}

// specs are the specs of the objects of the topology: a Machine is replaced only where one of them changes.
func (w world) specs() map[string]any {
	out := map[string]any{}
	for _, o := range w.objects() {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		w.must(err)
		out[o.GetName()+" "+fmt.Sprintf("%T", o)] = content["spec"]
	}
	return out
}

// What a Cluster is made from disappears after it was created, and comes back from a backup: nothing of the Cluster changes.
func TestClassOrTemplateDisappears(t *testing.T) { // CC-05, TP-20
	for reason, tc := range map[string]struct {
		deleted, restored client.Object
		want              string
	}{
		"a template": {
			template("HostTemplate", "host", nil), template("HostTemplate", "host", map[string]any{"size": "small"}),
			"False ReconcileFailed HostTemplate host, the template of control plane machines of ClusterClass class, does not exist: create it",
		},
		"the class": {newClass(), newClass(), "False ClusterClassNotReconciled Waiting for ClusterClass ns/class to be created"},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
			w.settle()
			before := w.revisions()
			w.must(w.Delete(t.Context(), tc.deleted))
			w.settle()
			if diff := cmp.Diff(tc.want, w.condition()); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			w.must(w.Create(t.Context(), tc.restored))
			w.settle()
			if got := w.condition(); got != "True ReconcileSucceeded" {
				t.Error(got)
			}
			if diff := cmp.Diff(before, w.revisions()); diff != "" {
				t.Errorf("objects (-before +after):\n%s", diff)
			}
		})
	}
}

// Another manager takes a field of the topology by force, each time it is set again: each of its writes is answered by one, and the
// topology's value is the last.
func TestAnotherManagerFights(t *testing.T) { // TP-05
	var writes []string
	w := newWorld(t, counting(&writes).Build())
	w.settle()
	name := w.one("MachineDeployment", "").GetName()
	for round := range 5 {
		other := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(7 + round)}}}
		other.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineDeployment"))
		other.SetNamespace("ns")
		other.SetName(name)
		w.must(w.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(other), client.FieldOwner("other"), client.ForceOwnership))
		if got := valueAt(t, w.one("MachineDeployment", ""), "spec", "replicas"); got != int64(7+round) {
			t.Fatalf("the other manager has set %v", got)
		}
		writes = nil
		w.settle()
		if got := valueAt(t, w.one("MachineDeployment", ""), "spec", "replicas"); got != int64(2) {
			t.Errorf("round %d: %v replicas", round, got)
		}
		if len(writes) != 1 || w.condition() != "True ReconcileSucceeded" {
			t.Errorf("round %d: writes %v, %s", round, writes, w.condition())
		}
	}
}

// A webhook that sets another value with each write is not written against without end.
func TestWebhookFights(t *testing.T) { // TP-05, TP-06
	var writes []string
	fight := recorder(&writes)
	patch := fight.Patch
	fight.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "MachineDeployment" {
			if err := unstructured.SetNestedField(u.Object, int64(9), "spec", "replicas"); err != nil {
				return err
			}
		}
		return patch(ctx, c, o, p, opts...)
	}
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().WithInterceptorFuncs(fight).Build())
	w.settle()
	writes = nil
	for range 5 {
		w.change(func(c *clusterv1.Cluster) { c.Annotations["unrelated"] += "x" })
		w.settle()
	}
	if len(writes) > 1 {
		t.Errorf("writes %v", writes)
	}
}

// What the API refuses is said with the same words each time it is tried: the name of the object is the same each time.
func TestRefusedCreation(t *testing.T) { // TP-31
	refuse := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if o.GetObjectKind().GroupVersionKind().Kind == "Plane" {
			return errors.New("the quota is used up")
		}
		return c.Patch(ctx, o, p, opts...)
	}}
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().WithInterceptorFuncs(refuse).Build())
	said := map[string]bool{}
	for range 4 {
		_, err := w.reconcile()
		w.identify()
		if c := w.condition(); c != "" { // the first reconciliation adds the finalizer
			said[c] = err != nil
		}
	}
	want := map[string]bool{"False ReconcileFailed Plane c-8wh4x cannot be created: creating Plane ns/c-8wh4x: the quota is used up; retrying": true}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("conditions, and whether they are retried (-want +got):\n%s", diff)
	}
}

// An extension that fails in the middle of an upgrade holds back what follows, for as long as it fails, with one message and few calls.
// When it answers again the upgrade ends, and each hook has let go once.
func TestHookFailsDuringAnUpgrade(t *testing.T) { // LH-04 to LH-08, LH-14, LH-17
	for _, name := range lifecycleHooks[3:8] {
		t.Run(name, func(t *testing.T) {
			u := newUpgrading(t, lifeWorld().WithReturnManagedFields().Build(), startExtension(t, 0))
			u.run(u.reconciled)
			path := hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: name}, Version: "v1alpha1"}.Path(strings.ToLower(name))
			u.x.Serve(path, hooktest.Status(http.StatusInternalServerError))
			u.change(func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.34.0" })
			said := u.fail(2 * time.Hour)
			want := "Hook " + name + " failed: handler " + strings.ToLower(name) + ".ext: "
			if len(said) != 1 || !strings.Contains(said[0], want) || !strings.Contains(said[0], "HTTP 500 Internal Server Error: correct the extension, or spec.clientConfig of ExtensionConfig ext if it refers to another server; retrying") {
				t.Errorf("conditions %q, want one with %q", said, want)
			}
			if calls := len(u.x.Bodies(path)); calls < 5 || calls > 30 {
				t.Errorf("%d calls, want one each ten minutes and a few more until the circuit opened", calls)
			}
			before := oneStep[:slices.IndexFunc(oneStep, func(call string) bool { return strings.HasPrefix(call, name) })]
			if diff := cmp.Diff(before, u.x.released()); diff != "" {
				t.Errorf("what let go before it failed (-want +got):\n%s", diff)
			}
			u.x.Serve(path, u.x.answer(name))
			u.now = u.now.Add(time.Hour)
			u.run(func() bool { return u.reconciled() && len(u.x.released()) >= len(oneStep)-1 })
			if diff := cmp.Diff(oneStep[:len(oneStep)-1], u.x.released()); diff != "" {
				t.Errorf("hooks (-want +got):\n%s", diff)
			}
		})
	}
}

// fail reconciles for some time, in which providers do what they do, and returns the conditions of its second half.
func (u *upgrading) fail(during time.Duration) []string {
	u.t.Helper()
	begin := u.now
	var said []string
	for u.now.Before(begin.Add(during)) {
		_, _ = u.reconcile()
		u.identify()
		if u.play() {
			continue
		}
		u.checkSkew()
		u.now = u.now.Add(10 * time.Minute)
		// The fake client forgets a condition when that of another manager is applied: what fails for long has one more.
		if c := u.condition(); c != "" && u.now.After(begin.Add(during/2)) && !slices.Contains(said, c) {
			said = append(said, c)
		}
	}
	return said
}

// An extension that answers with an item of another Cluster changes nothing, and is named. It is asked again until it is corrected.
func TestItemOfAnotherCluster(t *testing.T) { // TM-01, TP-15, TP-20
	cluster, class := newCluster(), newClass()
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{Name: "p", External: &clusterv1.ExternalPatchDefinition{GeneratePatchesExtension: "gen.ext"}}}
	answer := hooktest.Raw(`{"status":"Success","items":[{"uid":"6d1b9a60-0000-5000-8000-000000000000","patchType":"JSONMergePatch","patch":"eyJzcGVjIjp7fX0="}]}`)
	x := startExtension(t, 0)
	x.Handle(hooktest.Handler("gen", "GeneratePatches"), answer)
	u := newUpgrading(t, management(cluster, class).WithReturnManagedFields().Build(), x)
	result := ctrl.Result{}
	for range 3 {
		var err error
		result, err = u.reconcile()
		u.must(err)
	}
	want := `False ReconcileFailed Extension gen.ext of patch p: item 0 of its response has uid "6d1b9a60-0000-5000-8000-000000000000", which no ` +
		"template in the request has; correct the extension"
	if diff := cmp.Diff(want, u.condition()); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
	if names := u.names(); len(names) > 0 || result.RequeueAfter == 0 {
		t.Errorf("created %v, asked again after %s", names, result.RequeueAfter)
	}
	x.Serve(generatePath(), hooktest.Raw(`{"status":"Success"}`))
	u.now = u.now.Add(result.RequeueAfter)
	u.run(u.reconciled)
}

func generatePath() string {
	return hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: "GeneratePatches"}, Version: "v1alpha1"}.Path("gen")
}

// An extension of a patch that fails in the middle of an upgrade stops it where it is, with one message. When it answers again the upgrade
// ends, and each hook has let go once.
func TestPatchFailsDuringAnUpgrade(t *testing.T) { // TM-01, TP-15, TP-20
	class := newClass()
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{Name: "p", External: &clusterv1.ExternalPatchDefinition{GeneratePatchesExtension: "gen.ext"}}}
	class.Spec.KubernetesVersions = []string{"v1.33.0", "v1.34.0"}
	cluster := newCluster()
	cluster.Spec.Topology.Version = "v1.33.0"
	x := startExtension(t, 0)
	x.Handle(hooktest.Handler("gen", "GeneratePatches"), hooktest.Raw(`{"status":"Success"}`))
	u := newUpgrading(t, management(cluster, class).WithReturnManagedFields().Build(), x)
	u.run(u.reconciled)
	u.change(func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.34.0" })
	u.run(func() bool { return valueAt(t, u.one("Plane", "c-"), "spec", "version") == "v1.34.0" })
	x.Serve(generatePath(), hooktest.Status(http.StatusInternalServerError))
	before := valueAt(t, u.one("MachineDeployment", "c-a-"), "spec", "template")
	said := u.fail(2 * time.Hour)
	if len(said) != 1 || !strings.HasPrefix(said[0], "False ReconcileFailed * Extension gen.ext of patch p: Handler gen.ext: ") ||
		!strings.Contains(said[0], "HTTP 500 Internal Server Error: correct the extension, or spec.clientConfig of ExtensionConfig ext if it refers to another server; retrying\n* MachineDeployment c-a-") {
		t.Errorf("conditions %q", said)
	}
	if diff := cmp.Diff(before, valueAt(t, u.one("MachineDeployment", "c-a-"), "spec", "template")); diff != "" {
		t.Errorf("the workers changed (-before +after):\n%s", diff)
	}
	x.Serve(generatePath(), hooktest.Raw(`{"status":"Success"}`))
	u.now = u.now.Add(time.Hour)
	u.run(func() bool { return u.reconciled() && len(x.released()) >= len(oneStep)-1 })
	if diff := cmp.Diff(oneStep[:len(oneStep)-1], x.released()); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

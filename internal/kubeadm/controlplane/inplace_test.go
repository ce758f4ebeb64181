package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	sdkinplace "github.com/slipwayhq/slipway/sdk/extension/inplace"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit"
)

// canUpdate serves CanUpdateMachine as an extension does that was written with the SDK.
func canUpdate(rules ...sdkinplace.Rule) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, out := &hooksv1.CanUpdateMachineRequest{}, &hooksv1.CanUpdateMachineResponse{}
		err := json.NewDecoder(r.Body).Decode(in)
		if err == nil {
			err = sdkinplace.Updater{Rules: rules}.CanUpdateMachine(r.Context(), in, out)
		}
		if out.Status = hooksv1.ResponseStatusSuccess; err != nil {
			out.Status, out.Message = hooksv1.ResponseStatusFailure, err.Error()
		}
		hooktest.Respond(out)(w, r)
	}
}

// versions takes over another version of Kubernetes.
func versions() sdkinplace.Rule {
	return sdkinplace.Fields(clusterv1.GroupVersion.String(), "Machine", "version")
}

// extend registers an extension with the hook CanUpdateMachine.
func extend(t *testing.T, serve http.HandlerFunc) hook.Client {
	t.Helper()
	e, err := hook.New(hook.Config{NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	x := hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("can", "CanUpdateMachine"), func(w http.ResponseWriter, r *http.Request) { serve(w, r) })
	if state, err := e.Discover(t.Context(), x.ExtensionConfig("ext")); err != nil || state.Problem != nil {
		t.Fatal(err, state.Problem)
	}
	e.Prime()
	return e
}

func (p *played) fooMachine(name string) *unstructured.Unstructured {
	p.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "i", Version: "v1", Kind: "FooMachine"})
	p.must(p.c.Get(p.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, u))
	return u
}

// updateMachines plays the Machine controller, whose extension is done at once. It counts the updates by name, and checks that what the
// Machine shall be was written before the hook was added.
func (p *played) updateMachines(version string, updates map[string]int) {
	ctx := p.t.Context()
	patch := func(o client.Object, change func(client.Object)) {
		before := o.DeepCopyObject().(client.Object)
		change(o)
		p.twice(func() error { return p.c.Patch(ctx, o.DeepCopyObject().(client.Object), client.MergeFrom(before)) })
	}
	unmark := func(o client.Object) { kube.Annotate(o, clusterv1.UpdateInProgressAnnotation, nil) }
	for _, m := range p.machines() {
		if m.Spec.Bootstrap.DataSecretName == nil && m.Status.NodeRef.IsDefined() {
			patch(&m, func(client.Object) { m.Spec.Bootstrap.DataSecretName = new("data") })
		}
		if inplace.StateOf(&m) != inplace.Updating || !m.DeletionTimestamp.IsZero() {
			continue
		}
		infra, config := p.fooMachine(m.Name), &bootstrapv1.KubeadmConfig{}
		p.must(p.c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: m.Name}, config))
		if m.Spec.Version != version || !inplace.IsMarked(infra) || !inplace.IsMarked(config) || infra.GetLabels()[clusterv1.ClusterNameLabel] != "c" {
			p.t.Errorf("the hook is pending, and Machine %s has version %s; %v, %v", m.Name, m.Spec.Version, infra.Object["metadata"], config.ObjectMeta)
		}
		updates[m.Name]++
		patch(infra, unmark)
		patch(config, unmark)
		patch(&m, func(o client.Object) {
			unmark(o)
			kube.Annotate(o, runtimev1.PendingHooksAnnotation, nil)
		})
	}
}

func names(p *played) (out []string) {
	for _, m := range p.machines() {
		out = append(out, m.Name)
	}
	return out
}

// TestEveryWriteOfAnUpdateFailsOnce: a control plane without a surge updates its Machine in place, whichever write fails.
func TestEveryWriteOfAnUpdateFailsOnce(t *testing.T) { // IP-01, IP-04, CP-11
	plane := barePlane(1)
	plane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0))
	extensions := extend(t, canUpdate(versions()))
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return managementCluster(plane.DeepCopy()).WithReturnManagedFields() }, func(t *testing.T, c client.WithWatch) {
		p, updates, version := play(t, c), map[string]int{}, "v1.36.0"
		p.extensions = extensions
		p.others = func() { p.updateMachines(version, updates) }
		p.restart()
		p.settle("one Machine", p.whole(1))
		before := names(p)
		version = "v1.36.3"
		p.change(func(plane *controlplanev1.KubeadmControlPlane) { plane.Spec.Version = version })
		p.settle("updated", func() string {
			if got := p.machines()[0].Spec.Version; got != version {
				return got
			}
			return p.whole(1)()
		})
		if after := names(p); !slices.Equal(before, after) || updates[after[0]] != 1 {
			t.Errorf("Machines %v before and %v after; updates %v", before, after, updates)
		}
	})
}

// TestUpdateInPlace: of three Machines two are updated in place, once a new one exists; what the extension does not cover is replaced, and
// as long as it does not respond neither is done.
func TestUpdateInPlace(t *testing.T) { // IP-01, IP-07, CP-11
	serve := canUpdate(versions())
	p, updates, version := play(t, managementCluster(barePlane(3)).WithReturnManagedFields().Build()), map[string]int{}, ""
	p.extensions = extend(t, func(w http.ResponseWriter, r *http.Request) { serve(w, r) })
	p.others = func() { p.updateMachines(version, updates) }
	p.restart()
	p.settle("three Machines", p.whole(3))
	before := names(p)
	version = "v1.36.3"
	p.change(func(plane *controlplanev1.KubeadmControlPlane) { plane.Spec.Version = version })
	p.settle("updated", func() string {
		if len(updates) < 2 {
			return fmt.Sprintf("not updated: %v", p.plane().Status.Conditions)
		}
		return p.whole(3)()
	})
	kept := slices.DeleteFunc(names(p), func(name string) bool { return !slices.Contains(before, name) })
	if len(kept) != 2 || len(updates) != 2 || updates[kept[0]] != 1 || updates[kept[1]] != 1 {
		t.Errorf("kept %v of %v; updates %v", kept, before, updates)
	}

	serve = hooktest.Raw(`{"status":"Failure","message":"not today"}`)
	all := names(p)
	p.change(func(plane *controlplanev1.KubeadmControlPlane) {
		plane.Spec.KubeadmConfigSpec.Files = []bootstrapv1.File{{Path: "/a", Content: "b"}}
	})
	p.settle("no answer", func() string {
		c := condition.Set(p.plane().Status.Conditions).Get(controlplanev1.KubeadmControlPlaneRollingOutCondition)
		if c == nil || !strings.Contains(c.Message, "is neither updated nor replaced until it is known whether it can be updated in place: handler can.ext: responded with status Failure: not today; retrying") {
			return c.Message
		}
		return ""
	})
	for range 5 {
		_ = p.round()
	}
	if now := names(p); len(now) != 4 || len(slices.DeleteFunc(now, func(name string) bool { return !slices.Contains(all, name) })) != 3 {
		t.Errorf("Machines %v, of them before %v", names(p), all)
	}

	for _, m := range p.machines() { // a new one may have the name of one that was deleted
		if slices.Contains(all, m.Name) {
			p.twice(func() error {
				return p.c.Patch(t.Context(), m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"old":""}}}`)))
			})
		}
	}
	serve = canUpdate(versions())
	p.settle("replaced", p.whole(3))
	for _, m := range p.machines() {
		if _, old := m.Annotations["old"]; old {
			t.Errorf("Machine %s was not replaced", m.Name)
		}
	}
	if len(updates) != 2 {
		t.Errorf("updates %v", updates)
	}
}

package machineset

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/testkit"
)

// inTopology makes an object one of a managed topology.
func inTopology(o metav1.Object) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterTopologyOwnedLabel] = ""
	o.SetLabels(labels)
}

func TestTopology(t *testing.T) { // MS-01
	owned := func(s *snapshot) {
		s.Settings.Topology = true
		inTopology(s.Set)
		for _, o := range []*clone.Template{&s.Bootstrap, &s.Infra} {
			inTopology(o.Object)
		}
	}
	guarded := func(s *snapshot) {
		owned(s)
		s.Set.Finalizers = append(s.Set.Finalizers, clusterv1.MachineSetTopologyFinalizer)
	}
	deleted := func(s *snapshot) { s.Set.DeletionTimestamp = new(ago(0)) }
	uses := func(refs ...clusterv1.ContractVersionedObjectReference) func(*snapshot) {
		return func(s *snapshot) {
			s.Used = clone.UsedTemplates{}
			for _, ref := range refs {
				s.Used[ref] = true
			}
		}
	}
	const (
		ask       = "ask: templates that other MachineSets and MachineDeployments use"
		protect   = "do: add the finalizer of managed topologies: templates are deleted with the last owner that uses them"
		unprotect = "do: remove the finalizer of managed topologies: no template is left to delete"
		config    = "do: delete FooConfigTemplate bt: no other object uses it"
		infra     = "do: delete FooMachineTemplate it: no other object uses it"
	)
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"not of a topology": {"its templates are the user's", settled(func(s *snapshot) { s.Settings.Topology = true }), nil},
		"gate off":          {"there are no topologies", settled(owned, func(s *snapshot) { s.Settings.Topology = false }), nil},
		"new":               {"", settled(owned), []string{protect}},
		"has it":            {"", settled(guarded), nil},
		"Machines left":     {"templates are of use until the last is gone", settled(guarded, deleted, with(going(0))), []string{"wait: Waiting for 1 Machines to be deleted"}},
		"no Machines left":  {"who else uses them?", settled(guarded, deleted, with()), []string{ask}},
		"nobody else":       {"", settled(guarded, deleted, with(), uses()), []string{config, infra, unprotect}},
		"one is used":       {"", settled(guarded, deleted, with(), uses(template(infraTemplate).Ref)), []string{config, unprotect}},
		"gate off meanwhile": {"the finalizer never stays", settled(guarded, deleted, with(), uses(), func(s *snapshot) {
			s.Settings.Topology = false
		}), []string{config, infra, unprotect}},
		"template of a user": {"was put there by hand", settled(guarded, deleted, with(), uses(), func(s *snapshot) { s.Infra = template(infraTemplate) }),
			[]string{config, unprotect}},
		"templates gone": {"", settled(guarded, deleted, with(), uses(), func(s *snapshot) {
			s.Bootstrap.Object, s.Infra.Object = contract.Object{}, contract.Object{}
		}), []string{unprotect}},
		"no finalizer": {"a set from before, or of another program", settled(owned, deleted, with()), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTemplatesOfATopology: two MachineSets of a topology share a template for their Machines; each has a bootstrap
// template of its own. Every write fails once.
func TestTemplatesOfATopology(t *testing.T) { // MS-01, MS-25
	set, other := bareSet(), bareSet()
	inTopology(set)
	set.Spec.Replicas = new(int32(1))
	other.Name, other.UID = "ms2", "ms2"
	other.Spec.Selector.MatchLabels, other.Spec.Template.Labels = map[string]string{"set": "y"}, map[string]string{"set": "y"}
	other.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "bt2"
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return managementCluster(set.DeepCopy(), other.DeepCopy()) }, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.ctl.settings.Topology = true
		config, infra := object(bootstrapTemplate), object(infraTemplate)
		for _, o := range []client.Object{config, infra} {
			w.change(o, func() { inTopology(o) })
		}
		w.settle()
		set := w.set()
		if !slices.Contains(set.Finalizers, clusterv1.MachineSetTopologyFinalizer) {
			t.Errorf("finalizers %v", set.Finalizers)
		}
		w.twice(func() error { return c.Delete(t.Context(), set) })
		w.settle()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
			t.Errorf("the template went before the last Machine: %v", err)
		}
		w.finish()
		w.settle()
		for o, want := range map[client.Object]bool{set: false, config: false, infra: true} {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == want {
				t.Errorf("%T %s: there %v, want %v", o, o.GetName(), err == nil, want)
			}
		}
	})
}

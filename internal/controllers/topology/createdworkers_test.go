package topology

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// lagging is a cache that shows no MachineDeployments, as long as it lags.
type lagging struct {
	client.WithWatch
	lags *bool
}

func (l lagging) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*clusterv1.MachineDeploymentList); ok && *l.lags {
		return nil
	}
	return l.WithWatch.List(ctx, list, opts...)
}

// unlisted is the API past the cache, where a list costs as much as all objects of the namespace.
type unlisted struct {
	client.Reader
	t *testing.T
}

func (u unlisted) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	u.t.Errorf("%T is read past the cache", list)
	return nil
}

func TestCreationListsNothing(t *testing.T) { // or a thousand Clusters would read a thousand times what all have
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.with(func(c *controller) { c.live = unlisted{w, t} })
	w.settle()
	w.one("MachineDeployment", "c-a-")
}

// A cache that lags behind and another name template in the class do not make a second MachineDeployment; one that was deleted before the
// cache showed it is created again.
func TestCacheLags(t *testing.T) {
	w, lags := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build()), true
	ctl := &controller{}
	w.with(func(c *controller) { c.client, ctl = lagging{w, &lags}, c })
	w.settle()
	first := w.one("MachineDeployment", "c-a-").GetName()
	w.update(&clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "class"}}, func(o client.Object) {
		o.(*clusterv1.ClusterClass).Spec.Workers.MachineDeployments[0].Naming.Template = "other-{{ .random }}"
	})
	w.settle()
	if got := w.one("MachineDeployment", "").GetName(); got != first {
		t.Errorf("%s in the place of %s", got, first)
	}

	w.must(w.Delete(t.Context(), &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: first}}))
	w.change(func(c *clusterv1.Cluster) { delete(c.Annotations, lifecycle.WorkersAnnotation) })
	w.settle()
	w.one("MachineDeployment", "other-")

	other := &clusterv1.MachineDeployment{}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: w.one("MachineDeployment", "other-").GetName()}, other))
	w.update(other, func(o client.Object) { o.SetLabels(nil) })
	said := ""
	for range 2 { // the client of the test takes away a status in every other write
		_, err := w.reconcile()
		said += w.condition() + fmt.Sprint(err)
	}
	if !strings.Contains(said, other.Name+" exists and is not of the topology") {
		t.Errorf("one that lost its labels: %s", said)
	}
	w.must(w.Delete(t.Context(), other))
	w.settle()

	lags = false
	w.settle()
	if len(ctl.created.workers) > 0 {
		t.Errorf("what the cache shows is remembered: %v", ctl.created.workers)
	}
}

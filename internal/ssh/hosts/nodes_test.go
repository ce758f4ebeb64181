package hosts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// fakeWorkloads are the workload clusters by namespace and name.
type fakeWorkloads map[string]client.Client

func (f fakeWorkloads) Client(_ context.Context, cluster client.ObjectKey) (client.Client, error) {
	if c := f[cluster.String()]; c != nil {
		return c, nil
	}
	return nil, fault.New(fault.Unreachable, "NotConnected", "the workload cluster is not connected")
}

func (f fakeWorkloads) Nodes(ctx context.Context, cluster client.ObjectKey, providerID string) (out []corev1.Node, err error) {
	c, err := f.Client(ctx, cluster)
	if err != nil {
		return nil, err
	}
	list := &corev1.NodeList{}
	err = c.List(ctx, list)
	for _, n := range list.Items {
		if n.Spec.ProviderID == providerID {
			out = append(out, n)
		}
	}
	return out, err
}

func node(name, providerID string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.NodeSpec{ProviderID: providerID}}
}

func workloadCluster(t *testing.T, objs ...client.Object) *fake.ClientBuilder {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objs...)
}

func names(t *testing.T, c client.Client) string {
	t.Helper()
	list, out := &corev1.NodeList{}, []string{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		out = append(out, n.Name)
	}
	return strings.Join(out, " ")
}

func coreCluster(change func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "c"}}
	if change != nil {
		change(c)
	}
	return c
}

// returned is a host that was released by force while it did not respond, and responds again. Its record names the Cluster of
// another team, as a user with the rights of root could write.
func returned() (*infrav1.SSHHost, *fakeHost) {
	o := sshHost(func(o *infrav1.SSHHost) { released(o); o.Status.Claim.ClusterName = "c" })
	return o, &fakeHost{record: &remote.Record{ClaimID: claimA, Namespace: "team-b", Name: "m", Cluster: "b"}, facts: remote.Facts{KubeletRunning: true}}
}

// TestReturnedNode checks that the Node that a lost host registers again is deleted when the host is clean, and no other one.
func TestReturnedNode(t *testing.T) {
	own, foreign := inventory.ProviderID(claimA), inventory.ProviderID(claimB)
	for name, tc := range map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		left    string // of the Nodes in Cluster team-a/c
	}{
		"returned":     {"nothing else deletes it", coreCluster(nil), "g none"},
		"cluster gone": {"its Nodes are gone with it", nil, "g h none"},
		"cluster deleting": {"its Nodes are deleted with it", coreCluster(func(c *clusterv1.Cluster) {
			c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.NewTime(now)), []string{"f"}
		}), "g h none"},
	} {
		t.Run(name, func(t *testing.T) {
			o, host := returned()
			objs := []client.Object{o}
			if tc.cluster != nil {
				objs = append(objs, tc.cluster)
			}
			w := newWorld(t, build(t, objs...).Build(), host)
			a := workloadCluster(t, node("h", own), node("g", foreign), node("none", "")).Build()
			b := workloadCluster(t, node("h", own)).Build()
			w.Workloads = fakeWorkloads{"team-a/c": a, "team-b/b": b, "team-b/c": b}
			w.reconcile()
			if got := w.get(); got.Status.State != infrav1.SSHHostAvailable || got.Status.Claim != nil || len(host.resets) != 1 {
				t.Errorf("%s: %+v, resets %v", tc.reason, got.Status, host.resets)
			}
			if diff := cmp.Diff(tc.left+" | h", names(t, a)+" | "+names(t, b)); diff != "" {
				t.Errorf("%s: Nodes (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReturnedNodeOfSilentCluster checks that a workload cluster that does not respond, or refuses the deletion, delays a clean
// host no longer than documented.
func TestReturnedNodeOfSilentCluster(t *testing.T) {
	refusing := workloadCluster(t, node("h", inventory.ProviderID(claimA))).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errors.New("forbidden")
		},
	}).Build()
	for name, workloads := range map[string]fakeWorkloads{"silent": {}, "refusing": {"team-a/c": refusing}} {
		t.Run(name, func(t *testing.T) {
			o, host := returned()
			w := newWorld(t, build(t, o, coreCluster(nil)).Build(), host)
			w.Workloads = workloads
			w.reconcile()
			if got := w.get(); got.Status.State != infrav1.SSHHostCleaning || got.Status.Claim == nil || len(host.resets) != 1 {
				t.Fatalf("clean: %+v, resets %v", got.Status, host.resets)
			}
			w.at = w.at.Add(nodeTimeout - time.Second)
			w.reconcile()
			if got := w.get(); got.Status.State != infrav1.SSHHostCleaning {
				t.Errorf("a second before the end: %+v", got.Status)
			}
			w.at = w.at.Add(time.Second)
			w.reconcile()
			if got := w.get(); got.Status.State != infrav1.SSHHostAvailable || got.Status.Claim != nil || len(host.resets) != 1 {
				t.Errorf("at the end: %+v, resets %v", got.Status, host.resets)
			}
		})
	}
}

// TestReturnedNodeConflict checks that another Node with the name of the Node that was read is not deleted.
func TestReturnedNodeConflict(t *testing.T) {
	w := newWorld(t, build(t).Build(), &fakeHost{})
	w.Workloads = fakeWorkloads{"team-a/c": workloadCluster(t, node("h", "")).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if p := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions; p == nil || ptr.Deref(p.UID, "") != "former" {
				t.Errorf("the preconditions are %+v", p)
			}
			return apierrors.NewConflict(corev1.Resource("nodes"), o.GetName(), errors.New("another UID"))
		},
	}).Build()}
	if err := w.deleteNode(t.Context(), deleteNode{Cluster: client.ObjectKey{Namespace: "team-a", Name: "c"}, Node: "h", UID: "former"}); err != nil {
		t.Error(err)
	}
}

package machinepool

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// nodeOf is a Node with a UID.
func nodeOf(name, id string, uid types.UID) corev1.Node {
	n := node(name, id)
	n.UID = uid
	return n
}

func refer(s *snapshot, refs ...corev1.ObjectReference) { s.Pool.Status.NodeRefs = refs }

func TestRetired(t *testing.T) { // MP-05
	n0 := corev1.ObjectReference{Name: "n0", UID: "u0"}
	cases := map[string]struct {
		reason  string
		change  func(*snapshot)
		nodes   []corev1.Node
		retired []string
	}{
		"listed":       {"its instance is there", nil, []corev1.Node{nodeOf("n0", "x://0", "u0")}, nil},
		"not listed":   {"its instance has left the list", nil, []corev1.Node{nodeOf("n0", "x://9", "u0")}, []string{"n0"}},
		"gone":         {"somebody deleted it", nil, nil, nil},
		"no ID yet":    {"it registered anew, and its cloud provider has still to say which instance it is", nil, []corev1.Node{nodeOf("n0", "", "u0")}, nil},
		"another Node": {"of the same name: not ours to delete", nil, []corev1.Node{nodeOf("n0", "x://9", "other")}, nil},
		"two of one ID": {"which of them it is cannot be told, and the instance is there", nil,
			[]corev1.Node{nodeOf("n0", "x://0", "u0"), nodeOf("twin", "x://0", "u1")}, nil},
		"deleting":            {"known by its ID already", deleted, []corev1.Node{nodeOf("n0", "x://0", "u0")}, nil},
		"deleting, no ID":     {"the pool goes with all its Nodes", deleted, []corev1.Node{nodeOf("n0", "", "u0")}, []string{"n0"}},
		"deleting, two of ID": {"", deleted, []corev1.Node{nodeOf("n0", "x://0", "u0"), nodeOf("twin", "x://0", "u1")}, []string{"n0"}},
		"deleting, another":   {"", deleted, []corev1.Node{nodeOf("n0", "x://9", "other")}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := settled(func(s *snapshot) { refer(s, n0) })
			if tc.change != nil {
				tc.change(&s)
			}
			b := fake.NewClientBuilder().WithScheme(newScheme())
			for i := range tc.nodes {
				b = b.WithObjects(&tc.nodes[i])
			}
			c := &controller{workloads: fakeWorkloads{b.Build()}}
			s.Nodes = observedNodes{}
			if err := c.readNodes(t.Context(), &s); err != nil || !s.Nodes.Known {
				t.Fatal(err, s.Nodes)
			}
			var got []string
			for _, n := range s.Nodes.Retired {
				got = append(got, n.Name)
			}
			if diff := cmp.Diff(tc.retired, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A Node is only deleted on the word of a list that can be true.
func TestRetire(t *testing.T) { // MP-04, MP-05
	const gone = "do: delete Node n9: its provider ID left the pool"
	cases := map[string]struct {
		reason string
		infra  contract.InfraMachinePoolView
		want   bool
	}{
		"left the list":       {"", infra(provisioned), true},
		"scaled to zero":      {"it says that there are none", infraOf(contract.V1Beta2, "spec: {}", `{ready: true, replicas: 0}`), true},
		"replicas, no list":   {"the list is still to come", infraOf(contract.V1Beta2, "spec: {}", provisioned), false},
		"nothing counted":     {"it does not say that there are none", infraOf(contract.V1Beta2, "spec: {}", `{ready: true}`), false},
		"not provisioned":     {"its list says nothing yet", infraOf(contract.V1Beta2, "spec: {}", `{replicas: 0}`), false},
		"partly provisioned":  {"", infra(`{replicas: 2}`), false},
		"infrastructure gone": {"", contract.InfraMachinePoolView{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := settled(func(s *snapshot) {
				s.Infra, s.Nodes.Retired = tc.infra, []corev1.Node{nodeOf("n9", "x://9", "u9")}
			})
			p := decide(s)
			got := false
			for _, text := range texts(p) {
				got = got || text == gone
			}
			if got != tc.want {
				t.Errorf("%s: deleted %t, want %t: %v", tc.reason, got, tc.want, texts(p))
			}
			kept := false
			for _, ref := range report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.MachinePoolStatus).NodeRefs {
				kept = kept || ref.UID == "u9"
			}
			if kept == tc.want {
				t.Errorf("the status refers to it until it is deleted; refers %t", kept)
			}
		})
	}
	s := settled(func(s *snapshot) { s.Nodes.Retired = []corev1.Node{nodeOf("n9", "x://9", "u9")} })
	refs := report(s, decide(s), reconciler.Outcome{Err: errors.New("no")}).Status.(clusterv1.MachinePoolStatus).NodeRefs
	if len(refs) != 3 {
		t.Errorf("a Node whose deletion failed is tried again: %v", refs)
	}
}

// A list that the infrastructure does not vouch for changes nothing.
func TestListIsKept(t *testing.T) { // MP-04
	s := settled(func(s *snapshot) { s.Infra = infraOf(contract.V1Beta2, "spec: {}", `{ready: true}`) })
	pool := s.Pool.DeepCopy()
	if copyProviderFields(s, pool); len(pool.Spec.ProviderIDList) != 2 {
		t.Errorf("an infrastructure that does not count its replicas has not said that there are none: %v", pool.Spec.ProviderIDList)
	}
}

// What is deleted is the Node that was decided about, and no other of its name.
func TestDeleteNodeByUID(t *testing.T) { // MP-05
	var asked *types.UID
	w := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme()).Build(), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			o := client.DeleteOptions{}
			o.ApplyOptions(opts)
			if o.Preconditions != nil {
				asked = o.Preconditions.UID
			}
			return nil
		},
	})
	c := &controller{workloads: fakeWorkloads{w}, writer: kube.NewWriter(w, Name)}
	if err := c.deleteNode(t.Context(), settled(), deleteNode{Node: "n9", UID: "u9"}); err != nil || asked == nil || *asked != "u9" {
		t.Errorf("%v, %v", err, asked)
	}
}

func TestNodesAskedAgain(t *testing.T) { // MP-06, RC-06
	for name, tc := range map[string]struct {
		reason  string
		err     error
		problem string
		again   time.Duration
	}{
		"busy":          {"the connection stays: nobody wakes us", fmt.Errorf("reading: %w", fault.New(fault.Unreachable, "Busy", "x").RetryIn(2*time.Second)), "the workload cluster did not answer", 2 * time.Second},
		"not connected": {"the connection wakes us", workload.ErrNotConnected, "the workload cluster is not connected", 0},
		"no answer":     {"", fault.New(fault.Unreachable, "Refused", "no"), "the workload cluster did not answer", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			c := &controller{workloads: fakeWorkloads{interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme()).Build(), interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return tc.err },
			})}}
			for _, change := range []func(*snapshot){func(*snapshot) {}, deleted} {
				s := settled(change)
				if err := c.readNodes(t.Context(), &s); err != nil || s.Nodes.Known || s.Nodes.Problem != tc.problem {
					t.Fatal(err, s.Nodes)
				}
				if got := decide(s).Recheck; got != tc.again {
					t.Errorf("%s: asked again in %s, want %s", tc.reason, got, tc.again)
				}
			}
		})
	}
}

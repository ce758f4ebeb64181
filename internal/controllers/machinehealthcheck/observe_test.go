package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
)

// answering is a workload cluster whose steps end with the errors.
type answering struct {
	client, watch, read error
	health              workload.Health
}

func (a answering) Client(context.Context, client.ObjectKey) (client.Client, error) {
	return fake.NewClientBuilder().WithObjects(node("m", "False", 10*time.Minute)).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if a.read != nil {
				return a.read
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build(), a.client
}

func (a answering) Watch(context.Context, client.ObjectKey, workload.WatchRequest) error {
	return a.watch
}

func (a answering) Health(client.ObjectKey) workload.Health { return a.health }

// TestReadNodes: a pass that did not see the Nodes although nothing is wrong with the connection comes back by itself,
// since no change of the connection will wake it. It often is the only pass that the end of a timeout brings.
func TestReadNodes(t *testing.T) { // HC-10, HC-11
	busy := fault.New(fault.Unreachable, "Busy", "the workload cluster responds slowly").RetryIn(7 * time.Second)
	lost := fault.New(fault.Unreachable, "Lost", "the connection was reset")
	for name, tc := range map[string]struct {
		reason    string
		workloads answering
		waits     []string
		next      time.Duration
		seen      bool
		err       string
	}{
		"answers":       {reason: "the Machine is judged", seen: true},
		"not connected": {reason: "a connection wakes", workloads: answering{client: workload.ErrNotConnected}, waits: []string{"ClusterNotConnected"}},
		"failing":       {reason: "a connection wakes", workloads: answering{health: workload.Health{ConsecutiveFailures: 1}}, waits: []string{"ClusterNotConnected"}},
		"busy":          {reason: "nothing else wakes", workloads: answering{read: fmt.Errorf("get: %w", busy)}, waits: []string{"ClusterBusy"}, next: 7 * time.Second},
		"busy to watch": {reason: "nothing else wakes", workloads: answering{watch: busy}, waits: []string{"ClusterBusy"}, next: 7 * time.Second},
		"no answer":     {reason: "one call tells nothing of the connection", workloads: answering{read: lost}, waits: []string{"ClusterBusy"}, next: interval},
		"an error":      {reason: "it is tried again", workloads: answering{read: errors.New("no luck")}, err: "reading Node m: no luck"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &controller{workloads: tc.workloads}
			target := sick("m")
			target.Node, target.NodeRead = nil, false
			s := newSnapshot(check(), target)
			err := c.readNodes(t.Context(), &s)
			if got := fmt.Sprint(err); tc.err != "" && got != tc.err || tc.err == "" && err != nil {
				t.Fatalf("%s: %v, want %q", tc.reason, err, tc.err)
			}
			if tc.err != "" {
				return
			}
			p := decide(s)
			var waits []string
			for _, w := range p.Waits {
				waits = append(waits, w.Reason)
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" || p.Recheck != tc.next {
				t.Errorf("%s: next look in %s, want %s; waits (-want +got):\n%s", tc.reason, p.Recheck, tc.next, diff)
			}
			if seen := len(p.Actions) == 1; seen != tc.seen {
				t.Errorf("%s: %v", tc.reason, text(p.Actions))
			}
			if _, judged := report(s, p, reconciler.Outcome{}).Status.(clusterv1.MachineHealthCheckStatus); judged != tc.seen {
				t.Errorf("%s: there is a new status: %t", tc.reason, judged)
			}
		})
	}
}

// A condition that the reference implementation left is given up as if this controller had set it.
func TestClaims(t *testing.T) { // HC-06
	owned := func(manager string, conditionTypes ...string) metav1.ManagedFieldsEntry {
		text := ""
		for _, c := range conditionTypes {
			text += fmt.Sprintf(`,"k:{\"type\":\"%s\"}":{".":{}}`, c)
		}
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", Subresource: "status", FieldsV1: metav1.NewFieldsV1(
			`{"f:status":{"f:conditions":{".":{}` + text + `}}}`)}
	}
	const owner = clusterv1.MachineOwnerRemediatedCondition
	for name, tc := range map[string]struct {
		reason, says string
		entry        metav1.ManagedFieldsEntry
		want         []string
	}{
		"recovered": {"nobody else would remove it", clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, owned("manager", health, owner), []string{health, owner}},
		"begun":     {"the owner of the Machine goes on with it", clusterv1.MachineSetMachineRemediationMachineDeletingReason, owned("manager", health, owner), []string{health}},
		"another":   {"it is another program's", clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, owned("other", health, owner), nil},
	} {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{tc.entry}}}
		m.Status.Conditions = []metav1.Condition{{Type: health, Status: "True"}, {Type: owner, Status: "False", Reason: tc.says}}
		if diff := cmp.Diff(tc.want, claims(m)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

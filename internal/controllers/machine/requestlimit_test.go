package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
)

// pause is when a refused call has its turn.
const pause = 700 * time.Millisecond

// crowded refuses each kind of call three times before it lets it through, as a workload cluster does of which much is wanted.
type crowded struct {
	refused map[string]int
	never   map[string]error // calls that always fail
}

func (c *crowded) refuse(call string) error {
	if err := c.never[call]; err != nil {
		c.refused[call]++
		return fmt.Errorf("making a call: %w", err)
	}
	if c.refused[call] == 3 {
		return nil
	}
	c.refused[call]++
	return fmt.Errorf("making a call: %w", fault.As(slipwayworkload.ErrRateLimited).RetryIn(pause))
}

func (c *crowded) over(w client.WithWatch) client.WithWatch {
	return interceptor.NewClient(w, interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, nodes := list.(*corev1.NodeList); !nodes { // they are read from a cache
				if err := c.refuse(fmt.Sprintf("list %T", list)); err != nil {
					return err
				}
			}
			return w.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := c.refuse(fmt.Sprintf("patch %T", o)); err != nil {
				return err
			}
			return w.Patch(ctx, o, patch, opts...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := c.refuse(fmt.Sprintf("delete %T", o)); err != nil {
				return err
			}
			return w.Delete(ctx, o, opts...)
		},
	})
}

// A deletion whose calls are refused for the moment comes back exactly at its turns, does not call that an outage, and deletes the
// Node however late its turn is: the timeout of that counts from a try.
func TestTurns(t *testing.T) { // MD-04, MD-12, MD-15
	gate := &crowded{refused: map[string]int{}}
	w := fakeWorkloads{client: gate.over(workloadOf(node()).Build())}
	c := world(leavingMachine(deletedSince(time.Minute))).WithReturnManagedFields().Build()
	_, r := newController(c, w)
	said := map[string]bool{}
	for range 60 {
		before := fmt.Sprint(gate.refused)
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(gate.refused) != before && result.RequeueAfter != pause {
			t.Errorf("refused %v, comes back in %s", gate.refused, result.RequeueAfter)
		}
		m := &clusterv1.Machine{}
		if err := c.Get(t.Context(), key, m); apierrors.IsNotFound(err) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, condition := range m.Status.Conditions {
			if condition.Type == clusterv1.MachineDeletingCondition {
				said[condition.Reason+": "+condition.Message] = true
			}
		}
	}
	if err := c.Get(t.Context(), key, &clusterv1.Machine{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Machine is still there (%v); said %v", err, said)
	}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node is left behind: %v; refused %v; said %v", err, gate.refused, said)
	}
	for _, call := range []string{"patch *v1.PartialObjectMetadata", "list *v1.PodList", "delete *v1.Node"} {
		if gate.refused[call] != 3 {
			t.Errorf("%s was never made: %v", call, gate.refused)
		}
	}
	for text := range said {
		if strings.Contains(text, "does not answer") {
			t.Errorf("said: %s", text)
		}
	}
}

// A Node whose deletion keeps failing is given up after a try, once and for all, whatever the workload cluster has against it.
func TestNodeThatCannotBeDeleted(t *testing.T) { // MD-15
	for name, err := range map[string]error{"slow": fault.New(fault.Unreachable, "Busy", "x").RetryIn(time.Second), "forbidden": errors.New("forbidden")} {
		gate := &crowded{refused: map[string]int{}, never: map[string]error{"delete *v1.Node": err}}
		c := world(leavingMachine(deletedSince(time.Minute))).WithReturnManagedFields().Build()
		_, r := newController(c, fakeWorkloads{client: gate.over(workloadOf(node()).Build())})
		for range 20 {
			_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		}
		if err := c.Get(t.Context(), key, &clusterv1.Machine{}); !apierrors.IsNotFound(err) || gate.refused["delete *v1.Node"] == 0 {
			t.Errorf("%s: the Machine is still there (%v) after calls that were refused: %v", name, err, gate.refused)
		}
	}
}

package hosts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// readHostState checks the host. The other types in this file are the actions of decide, which act runs. The reads and
// actions for Nodes are in nodes.go.
type readHostState struct{ Address string }

func (a readHostState) String() string { return "the state of host " + a.Address }

// noteUse notes the namespace of a claim in an annotation of the SSHHost, before the record is written, so that a crash in
// between cannot offer the host to another namespace. It also labels the SSHHost, so that clusterctl moves it.
type noteUse struct{ Namespace string }

func (a noteUse) String() string {
	return fmt.Sprintf("note that namespace %s uses the host: others are not offered it afterwards, and it moves with its machine", a.Namespace)
}

// removeUse removes the label of a host in use, so that clusterctl does not move a free one.
type removeUse struct{}

func (removeUse) String() string {
	return "remove the label of a host in use: the host is free, and stays in a move"
}

// removeRequest removes a request of the operator that does not apply.
type removeRequest struct{ Request string }

func (a removeRequest) String() string {
	return fmt.Sprintf("remove the request to clean %s: there is nothing of it on the host", a.Request)
}

// recordClaim writes the record of a claim on the host, a file with the claim ID and the name of the machine.
type recordClaim struct{ Claim, Machine string }

func (a recordClaim) String() string {
	return fmt.Sprintf("record the claim of SSHMachine %s on the host: it is free", a.Machine)
}

// clean starts the job that cleans the host, and deletes its bundles if the SSHMachine requests it.
type clean struct {
	Claim         string
	DeleteBundles bool
}

func (a clean) String() string {
	return fmt.Sprintf("clean the host after claim %s: nothing uses it any more", a.Claim)
}

// finishCleaning drops the claim and the request of a host that was cleaned. Remains describes the Node that may remain in the
// workload cluster, or is empty.
type finishCleaning struct{ Claim, Remains string }

func (a finishCleaning) String() string {
	return fmt.Sprintf("drop claim %s: the host is clean", a.Claim)
}

// dropClaim removes the claim of a host that was not changed for it.
type dropClaim struct{ Claim, Why string }

func (a dropClaim) String() string { return fmt.Sprintf("drop claim %s: %s", a.Claim, a.Why) }

// act runs an action of the plan. The driver (package reconciler) calls it.
func (c *controller) act(ctx context.Context, s snapshot, a reconciler.Action) error {
	key := client.ObjectKeyFromObject(s.Object)
	switch a := a.(type) {
	case noteUse:
		return c.noteUse(ctx, s.Object, a)
	case removeUse:
		return c.writer.Patch(ctx, s.Object, func(o client.Object) { o.SetLabels(withValue(o.GetLabels(), infrastructure.MoveHierarchyLabel, "")) })
	case removeRequest:
		return c.annotate(ctx, s.Object, infrav1.CleanHostAnnotation, "")
	case recordClaim:
		return c.record(ctx, s)
	case clean:
		o := s.Object.DeepCopy()
		c.Jobs.StartFor(inventory.NamespaceOf(o), jobs.Key(kind, key), cleaningOf(a.Claim), func(ctx context.Context) error { return c.clean(ctx, o, a) })
		return nil
	case finishCleaning:
		return c.finishCleaning(ctx, s, a)
	case deleteNode:
		return c.deleteNode(ctx, a)
	case dropClaim:
		c.checks.drop(key)
		return inventory.Drop(ctx, c.writer, s.Object)
	}
	return reconciler.UnknownAction("SSH host", a)
}

// annotate sets an annotation of the host, or removes it if the value is empty. Its event enqueues the host.
func (c *controller) annotate(ctx context.Context, o *infrav1.SSHHost, name, value string) error {
	return c.writer.Patch(ctx, o, func(o client.Object) { o.SetAnnotations(withValue(o.GetAnnotations(), name, value)) })
}

func (c *controller) noteUse(ctx context.Context, o *infrav1.SSHHost, a noteUse) error {
	return c.writer.Patch(ctx, o, func(o client.Object) {
		o.SetAnnotations(withValue(o.GetAnnotations(), infrav1.LastNamespaceAnnotation, a.Namespace))
		if _, isMarked := o.GetLabels()[infrastructure.MoveHierarchyLabel]; !isMarked {
			o.SetLabels(withValue(o.GetLabels(), infrastructure.MoveHierarchyLabel, infrastructure.MoveInUse))
		}
	})
}

// withValue returns a copy of labels or annotations, which are shared with the cache, with another value; empty removes it.
func withValue(of map[string]string, name, value string) map[string]string {
	out := maps.Clone(of)
	if out == nil {
		out = map[string]string{}
	}
	if out[name] = value; value == "" {
		delete(out, name)
	}
	return out
}

// record writes the record of the claim.
func (c *controller) record(ctx context.Context, s snapshot) error {
	claim := s.Object.Status.Claim
	h, err := c.connect(ctx, s.Object)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(s.Object)
	r := remote.Record{ClaimID: claim.ClaimID, Namespace: claim.Namespace, Name: claim.Name, ManagementCluster: c.Instance}
	if s.Machine != nil {
		r.Cluster = s.Machine.Labels[clusterv1.ClusterNameLabel]
	}
	if err := h.WriteRecord(ctx, r); err != nil {
		c.checks.drop(key) // the next check finds the record of another machine
		return err
	}
	k := *s.Check
	k.Record = &r
	c.checks.put(key, k)
	return nil
}

// cleaningTimeout ends the cleaning of a host that makes no progress, before it is repeated.
const cleaningTimeout = 30 * time.Minute

// clean cleans a host and then deletes its record.
func (c *controller) clean(ctx context.Context, o *infrav1.SSHHost, a clean) error {
	ctx, cancel := context.WithTimeout(ctx, cleaningTimeout)
	defer cancel()
	h, err := c.connectFor(ctx, o, a.Claim)
	if err != nil {
		return err
	}
	if err := checkRecord(ctx, h, a.Claim); err != nil {
		return err
	}
	leftovers, err := h.Reset(ctx)
	if err != nil {
		return err
	}
	if len(leftovers) > 0 {
		return notClean(leftovers)
	}
	if a.Claim == infrav1.CleanUnrecorded {
		return nil
	}
	if err := h.DeleteRecord(ctx, a.Claim); err != nil || !a.DeleteBundles {
		return err
	}
	return h.RemoveBundles(ctx)
}

// checkRecord returns a fault if the host has the record of another claim, which may have appeared since the last check.
func checkRecord(ctx context.Context, h Host, claim string) error {
	r, err := h.ReadRecord(ctx)
	if err == nil && r != nil && r.ClaimID != claim {
		return fault.New(fault.Invalid, reasonForeign, "the host has the record of another claim, so it is left unchanged")
	}
	return err
}

// notClean returns the fault for a host with leftovers.
func notClean(leftovers []remote.Leftover) *fault.Fault {
	var texts []string
	for _, l := range leftovers {
		texts = append(texts, l.String())
	}
	slices.Sort(texts)
	return fault.New(fault.Invalid, reasonNotClean, "the host could not be cleaned completely: %s; remove this by hand, or reinstall the host; the cleaning is repeated every few minutes",
		condition.Names(texts))
}

// finishClaim removes the claim that was cleaned, or the request of the operator. A host on which nothing of its first user ran is
// not noted as used by the namespace.
func (c *controller) finishClaim(ctx context.Context, o *infrav1.SSHHost, a finishCleaning) error {
	claim := o.Status.Claim
	if claim == nil || claim.ClaimID != a.Claim {
		return c.annotate(ctx, o, infrav1.CleanHostAnnotation, "")
	}
	if ptr.Deref(claim.Unused, false) {
		if err := c.annotate(ctx, o, infrav1.LastNamespaceAnnotation, ""); err != nil {
			return err
		}
	}
	return inventory.Drop(ctx, c.writer, o)
}

// finishCleaning forgets the job last: if a write fails, the host is cleaned again, which changes nothing.
func (c *controller) finishCleaning(ctx context.Context, s snapshot, a finishCleaning) error {
	key := client.ObjectKeyFromObject(s.Object)
	c.checks.drop(key)
	err := c.finishClaim(ctx, s.Object, a)
	if err == nil {
		c.Jobs.Forget(jobs.Key(kind, key))
	}
	return err
}

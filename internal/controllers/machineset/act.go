package machineset

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
)

// The actions of the controller. Each may be repeated.
type (
	// Join makes the set belong to its Cluster.
	Join struct{ Cluster string }
	// Adopt makes the set the controller of a Machine that has none.
	Adopt struct{ Machine string }
	// OwnTemplate makes the Cluster an owner of a template.
	OwnTemplate struct{ Kind, Name string }
	// SyncMachine makes a Machine what the template says.
	SyncMachine struct{ Machine string }
	// SyncTimeouts gives the timeouts of the deletion to a Machine that is being deleted.
	SyncTimeouts struct{ Machine string }
	// SyncClone gives labels and annotations to a bootstrap config or infrastructure machine.
	SyncClone struct{ Kind, Name, Machine string }
	// DeleteOrphan deletes a clone whose Machine was never made.
	DeleteOrphan struct{ Kind, Name string }
	// Judge sets the conditions UpToDate and OwnerRemediated of a Machine.
	Judge struct {
		Machine              string
		UpToDate, Remediated condition.Verdict
	}
	// Create makes Machines, with all that is made for them. Names are separated by spaces.
	Create struct{ Names, Why string }
	// Delete deletes Machines. Names are separated by spaces.
	Delete struct{ Names, Why string }
)

// Independent implements loop.Independent.
func (Adopt) Independent()        {}
func (SyncMachine) Independent()  {}
func (SyncTimeouts) Independent() {}
func (SyncClone) Independent()    {}
func (DeleteOrphan) Independent() {}
func (Judge) Independent()        {}

// Question is what the controller asks.

// AskClones asks for the bootstrap configs and infrastructure machines of the Machines.
type AskClones struct{}

func (a Join) String() string { return "join Cluster " + a.Cluster }
func (a Adopt) String() string {
	return fmt.Sprintf("adopt Machine %s: it matches the selector", a.Machine)
}
func (a OwnTemplate) String() string {
	return fmt.Sprintf("make the Cluster an owner of %s %s", a.Kind, a.Name)
}
func (a SyncMachine) String() string {
	return fmt.Sprintf("sync Machine %s: it is not what the template says", a.Machine)
}
func (a SyncTimeouts) String() string {
	return fmt.Sprintf("sync Machine %s: the timeouts of its deletion changed", a.Machine)
}
func (a SyncClone) String() string {
	return fmt.Sprintf("sync labels and annotations to %s %s", a.Kind, a.Name)
}
func (a DeleteOrphan) String() string {
	return fmt.Sprintf("delete %s %s: its Machine was never made", a.Kind, a.Name)
}
func (a Judge) String() string {
	said := fmt.Sprintf("UpToDate is %s", orUnchanged(a.UpToDate))
	if a.Remediated != condition.Absent() {
		said += fmt.Sprintf(", OwnerRemediated is %s", orUnchanged(a.Remediated))
	}
	return fmt.Sprintf("judge Machine %s: %s", a.Machine, said)
}
func (a Create) String() string { return fmt.Sprintf("create %s: %s", machineNames(a.Names), a.Why) }
func (a Delete) String() string { return fmt.Sprintf("delete %s: %s", machineNames(a.Names), a.Why) }
func (a AskClones) String() string {
	return "bootstrap configs and infrastructure machines of the Machines"
}

func orUnchanged(v condition.Verdict) string {
	if v == condition.Absent() {
		return "as it was"
	}
	return fmt.Sprintf("%s (%s)", v.Status, v.Reason)
}

// machineNames names Machines for a message.
func machineNames(names string) string {
	list := strings.Fields(names)
	if len(list) == 1 {
		return "Machine " + names
	}
	return "Machines " + condition.Names(list)
}

func (c *Controller) act(ctx context.Context, s Snapshot, action loop.Action) error {
	switch a := action.(type) {
	case Join:
		return c.writer.Patch(ctx, s.Set, func(o client.Object) { join(s.Set, s.Cluster, o) })
	case Adopt:
		return c.adopt(ctx, s, a)
	case OwnTemplate:
		return c.ownTemplate(ctx, s, a)
	case SyncMachine:
		m := s.machine(a.Machine).Machine
		return c.keeper().Sync(ctx, m, kept(s, m))
	case SyncTimeouts:
		return c.writer.Named(manager).Patch(ctx, s.machine(a.Machine).Machine, func(o client.Object) {
			o.(*clusterv1.Machine).Spec.Deletion = s.Set.Spec.Template.Spec.Deletion
		})
	case SyncClone:
		key := cloneKey{a.Kind, a.Name}
		return c.clones().Sync(ctx, s.Clones.Items[key].Unstructured, metadata(s, s.machine(a.Machine).Machine))
	case DeleteOrphan:
		return c.deleteOrphan(ctx, s, a)
	case Judge:
		return c.judge(ctx, s, a)
	case Protect:
		return c.protect(ctx, s.Set)
	case DeleteTemplate:
		return c.deleteTemplate(ctx, s, a)
	case Unprotect:
		return c.unprotect(ctx, s.Set)
	case Create:
		return c.create(ctx, s, a)
	case Delete:
		return c.delete(ctx, s, a)
	}
	return fault.New(fault.Bug, "UnknownAction", "the machineset controller does not know how to %s", action)
}

// machine returns the Machine of the set with the name.
func (s Snapshot) machine(name string) Member {
	for _, m := range s.Machines {
		if m.Name == name {
			return m
		}
	}
	return Member{}
}

// join labels the set with its Cluster, which becomes the owner of a standalone one (MS-02).
func join(set *clusterv1.MachineSet, cluster *clusterv1.Cluster, o client.Object) {
	if standalone(set) {
		ownership.Join(o, cluster)
		return
	}
	ownership.Label(o, clusterv1.ClusterNameLabel, cluster.Name)
}

// adopt is conditional on the Machine's resourceVersion: of two sets that want it one gets it (MS-03).
func (c *Controller) adopt(ctx context.Context, s Snapshot, a Adopt) error {
	for _, m := range s.Others {
		if m.Name == a.Machine {
			return c.writer.Patch(ctx, m, func(o client.Object) { ownership.Own(o, ownedBy(s)) })
		}
	}
	return nil
}

func (c *Controller) ownTemplate(ctx context.Context, s Snapshot, a OwnTemplate) error {
	for _, t := range []Template{s.Bootstrap, s.Infra} {
		if t.Ref.Kind == a.Kind && t.Ref.Name == a.Name && t.Object.Unstructured != nil {
			return c.writer.Patch(ctx, t.Object.Unstructured, func(o client.Object) { ownership.Own(o, ownership.ByCluster(s.Cluster)) })
		}
	}
	return nil
}

// deleteOrphan asks the API server itself whether there is a Machine before it believes that there is none.
func (c *Controller) deleteOrphan(ctx context.Context, s Snapshot, a DeleteOrphan) error {
	for _, o := range s.Clones.Orphans {
		if o.GetKind() != a.Kind || o.GetName() != a.Name {
			continue
		}
		err := c.live.Get(ctx, client.ObjectKey{Namespace: s.Set.Namespace, Name: a.Name}, &clusterv1.Machine{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading Machine %s: %w", a.Name, err)
		}
		return c.writer.Delete(ctx, o.Unstructured)
	}
	return nil
}

// judge applies the two conditions of a Machine that its owner sets; the others are not the set's.
func (c *Controller) judge(ctx context.Context, s Snapshot, a Judge) error {
	m := s.machine(a.Machine).Machine
	table := condition.Table[Judge]{
		{Type: clusterv1.MachineUpToDateCondition, Of: func(a Judge) condition.Verdict { return a.UpToDate }},
		{Type: clusterv1.MachineOwnerRemediatedCondition, Of: func(a Judge) condition.Verdict { return a.Remediated }},
	}
	owned := []string{clusterv1.MachineOwnerRemediatedCondition}
	if s.Deployment == nil {
		owned = append(owned, clusterv1.MachineUpToDateCondition) // else the Machine controller's
	}
	if err := c.writer.TakeOverStatus(ctx, c.live, m, kube.Conditions(owned...)); err != nil {
		return err
	}
	status := map[string]any{}
	if conditions := table.Evaluate(a, loop.MomentOf(m, s.Now)); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return c.writer.ApplyStatus(ctx, m, status)
}

func (c *Controller) delete(ctx context.Context, s Snapshot, a Delete) error {
	list := strings.Fields(a.Names)
	return each(list, func(name string) error {
		m := s.machine(name)
		if m.Machine == nil || m.Deleted {
			return nil
		}
		if err := c.writer.Delete(ctx, m.DeepCopy()); err != nil {
			return err
		}
		c.deleted.Add(s.Set.UID, name, s.Now)
		return nil
	})
}

// each calls f for every name, several at once, and returns the errors of all of them.
func each(names []string, f func(name string) error) error {
	const atOnce = 10
	failed := make([]error, len(names))
	slots := make(chan struct{}, atOnce)
	done := make(chan struct{})
	for i, name := range names {
		go func() {
			slots <- struct{}{}
			failed[i] = f(name)
			<-slots
			done <- struct{}{}
		}()
	}
	for range names {
		<-done
	}
	return errors.Join(failed...)
}

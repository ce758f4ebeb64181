package machineset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/clone"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// create makes Machines, several at once: of each its bootstrap config, its infrastructure machine, then itself, each
// with one write (MS-04). What was made of one that could not be finished is removed again.
func (c *Controller) create(ctx context.Context, s Snapshot, a Create) error {
	if s.Deployment == nil {
		c.forget(s.Set) // what new Machines were made from is still to be looked up, to judge them
	}
	return each(strings.Fields(a.Names), func(name string) error {
		parts, err := build(s, name)
		if err != nil {
			return err
		}
		for i, o := range parts.objects {
			if err := c.writer.Named(manager).CreateApplied(ctx, o); err != nil {
				c.forget(s.Set)
				return errors.Join(err, c.undo(ctx, parts.objects[:i]))
			}
		}
		c.created.Add(s.Set.UID, name, s.Now)
		return nil
	})
}

// undo removes what was created. What cannot be removed now is an orphan, which a later pass finds.
func (c *Controller) undo(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := c.writer.Delete(ctx, o); err != nil {
			return fmt.Errorf("cleaning up: %w", err)
		}
	}
	return nil
}

// keeper writes what the set says of its Machines. "manager" is the field manager of the reference implementation before its
// MachineSets applied, and of many other programs: what the set does not want is not known to be the set's.
func (c *Controller) keeper() machines.Keeper {
	return machines.Keeper{Live: c.live, Writer: c.writer, Manager: manager, Former: []string{"manager", manager}}
}

func (c *Controller) clones() clone.Writers {
	return clone.Writers{Live: c.live, Creator: manager, Metadata: metadataManager, Writer: c.writer}
}

// answer reads bootstrap configs and infrastructure machines.
func (c *Controller) answer(ctx context.Context, s Snapshot, _ AskClones) (Snapshot, error) {
	s.Clones = &Clones{Items: map[cloneKey]contract.Object{}, Stale: map[cloneKey]bool{}}
	for _, t := range []Template{s.Bootstrap, s.Infra} {
		if !t.Ref.IsDefined() {
			continue
		}
		kind := clone.Ref(t.Ref, "")
		list, err := c.others.List(ctx, kind.APIGroup, kind.Kind, s.Set.Namespace, map[string]string{
			clusterv1.ClusterNameLabel: s.Set.Spec.ClusterName, clusterv1.MachineSetNameLabel: contract.LabelValue(s.Set.Name),
		})
		if fault.KindOf(err) == fault.Invalid {
			continue // not installed: there are none
		}
		if err != nil {
			return s, err
		}
		for _, o := range list {
			c.remember(&s, o)
		}
	}
	if err := c.readUnlabelled(ctx, &s); err != nil {
		return s, err
	}
	s.Clones.Orphans = orphans(s)
	if verified(s) {
		c.verify(s.Set)
		s.Verified = true
	}
	return s, nil
}

// verified reports whether nothing is left to do for which clones have to be read.
func verified(s Snapshot) bool {
	unjudged := func(m Member) bool {
		return undecided(s, m) || !m.Deleted && differs(of(m.Machine, clusterv1.MachineUpToDateCondition), upToDate(s, m.Machine))
	}
	return len(propagation(s)) == 0 && len(s.Created) == 0 && (s.Deployment != nil || !slices.ContainsFunc(s.Machines, unjudged))
}

func (c *Controller) remember(s *Snapshot, o contract.Object) {
	key := cloneKey{o.GetKind(), o.GetName()}
	s.Clones.Items[key] = o
	s.Clones.Stale[key] = c.writer.Writes().Stale(o)
}

// readUnlabelled reads those that do not carry the set's label, as those of adopted Machines.
func (c *Controller) readUnlabelled(ctx context.Context, s *Snapshot) error {
	for _, m := range s.Machines {
		for _, ref := range refs(m.Machine) {
			if _, ok := s.Clones.Items[cloneKey{ref.Kind, ref.Name}]; ok || m.Deleted {
				continue
			}
			o, _, err := c.others.Look(ctx, m.Machine, ref)
			if err != nil {
				return err
			}
			if o.Unstructured != nil {
				c.remember(s, o)
			}
		}
	}
	return nil
}

// orphans are clones that the set still controls and that no Machine refers to: the Machine was never made (MS-04).
func orphans(s Snapshot) []contract.Object {
	used := map[cloneKey]bool{}
	for _, m := range s.Machines {
		for _, ref := range refs(m.Machine) {
			used[cloneKey{ref.Kind, ref.Name}] = true
		}
	}
	var out []contract.Object
	for _, key := range sortedKeys(s.Clones.Items) {
		o := s.Clones.Items[key]
		if !used[key] && !named(s, key.name) && o.GetDeletionTimestamp().IsZero() && ownership.ControllerOf(o, s.Set.UID) == ownership.Self {
			out = append(out, o)
		}
	}
	return out
}

// named reports whether there may be a Machine of that name, whoever controls it.
func named(s Snapshot, name string) bool {
	for _, other := range s.Created {
		if other == name {
			return true
		}
	}
	for _, m := range s.Others {
		if m.Name == name {
			return true
		}
	}
	return s.machine(name).Machine != nil
}

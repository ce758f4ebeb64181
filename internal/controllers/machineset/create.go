package machineset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/clone"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
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

// takeOver gives what older programs said of a Machine to the manager that says it now, once (MS-09): it could not
// change or remove it otherwise. What the set does not want is not known to be the set's, and stays where it is.
func (c *Controller) takeOver(ctx context.Context, want, m *clusterv1.Machine) error {
	if owned := kube.OwnedMetadata(m, manager); len(owned.Labels)+len(owned.Annotations) > 0 {
		return nil
	}
	live := &clusterv1.Machine{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
		return fmt.Errorf("reading Machine %s: %w", m.Name, err)
	}
	return c.writer.Named(manager).HandOver(ctx, live, kube.HandOver{
		From: []string{"manager", manager}, To: manager, Takes: func(p fieldpath.Path) bool { return claims(want, p) },
	})
}

// claims tells the fields of a Machine that its MachineSet says.
func claims(want *clusterv1.Machine, p fieldpath.Path) bool {
	if len(p) < 2 || p[0].FieldName == nil || p[1].FieldName == nil {
		return false
	}
	switch *p[0].FieldName + "." + *p[1].FieldName {
	case "metadata.labels":
		return has(want.Labels, p)
	case "metadata.annotations":
		return has(want.Annotations, p)
	case "spec.readinessGates", "spec.minReadySeconds", "spec.deletion", "spec.taints":
		return true
	}
	return false
}

func has(keys map[string]string, p fieldpath.Path) bool {
	if len(p) != 3 || p[2].FieldName == nil {
		return false
	}
	_, ok := keys[*p[2].FieldName]
	return ok
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

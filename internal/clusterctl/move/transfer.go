package move

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/portable"
	"github.com/slipwayhq/slipway/internal/fault"
)

// parallel is how many objects are written at the same time.
const parallel = 16

// transfer brings objects from one side to the other.
type transfer struct {
	// from is nil where the objects come from files.
	from, to *side
	entries  []Entry
	// here and there are the IDs of an entry on both sides.
	here, there func(Entry) graph.ID
	// change is called for each object before it is written.
	change func(*unstructured.Unstructured) error

	old, live map[graph.ID]graph.Object
	owners    map[types.UID]graph.ID // by the UID on the side from which they come; the ID is that on the other side
	mu        sync.Mutex
	uids      map[graph.ID]types.UID // on the other side
}

// forth is from the source to the target.
func (m *Move) forth(j *journal) *transfer {
	return &transfer{from: m.source, to: m.target, entries: j.Plan.Entries, change: m.mutate,
		here: func(e Entry) graph.ID { return e.ID }, there: Entry.At}
}

// back is from the target to the source.
func (m *Move) back(j *journal) *transfer {
	entries := slices.DeleteFunc(slices.Clone(j.Plan.Entries), func(e Entry) bool { return e.Copy })
	return &transfer{from: m.target, to: m.source, entries: entries, change: func(*unstructured.Unstructured) error { return nil },
		here: Entry.At, there: func(e Entry) graph.ID { return e.ID }}
}

// load reads both sides.
func (t *transfer) load(ctx context.Context) (err error) {
	if t.from != nil {
		if t.old, err = t.from.findEntries(ctx, t.entries, t.here); err != nil {
			return err
		}
	}
	if t.live, err = t.to.findEntries(ctx, t.entries, t.there); err != nil {
		return err
	}
	t.owners, t.uids = map[types.UID]graph.ID{}, map[graph.ID]types.UID{}
	for _, e := range t.entries {
		if o, ok := t.old[t.here(e)]; ok {
			t.owners[o.GetUID()] = t.there(e)
		}
		if o, ok := t.live[t.there(e)]; ok {
			t.uids[t.there(e)] = o.GetUID()
		}
	}
	return nil
}

func (s *side) findEntries(ctx context.Context, entries []Entry, at func(Entry) graph.ID) (map[graph.ID]graph.Object, error) {
	var ids []graph.ID
	versions := map[graph.ID]string{}
	for _, e := range entries {
		ids = append(ids, at(e))
		versions[at(e)] = e.Version
	}
	return s.find(ctx, ids, func(id graph.ID) string { return versions[id] })
}

// run creates what is missing and updates what differs, owners first.
func (t *transfer) run(ctx context.Context) error {
	if err := t.load(ctx); err != nil {
		return err
	}
	return eachLevel(ctx, t.entries, func(ctx context.Context, e Entry) error { return t.one(ctx, e) })
}

// eachLevel does something with all entries, those of a level at the same time.
func eachLevel(ctx context.Context, entries []Entry, do func(context.Context, Entry) error) error {
	for start := 0; start < len(entries); {
		end := start
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(parallel)
		for ; end < len(entries) && entries[end].Level == entries[start].Level; end++ {
			e := entries[end]
			group.Go(func() error { return do(inner, e) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		start = end
	}
	return nil
}

func (t *transfer) one(ctx context.Context, e Entry) error {
	old, exists := t.old[t.here(e)]
	if !exists || portable.IsMarked(old.Unstructured) {
		return nil // gone over already
	}
	live, there := t.live[t.there(e)]
	if there && e.Copy {
		return nil
	}
	want, err := t.desired(e, old.Unstructured)
	if err != nil {
		return err
	}
	managers := want.GetManagedFields()
	want.SetManagedFields(nil)
	if there {
		if portable.IsCovered(want, live.Unstructured) {
			return t.restoreManagers(ctx, live.Unstructured, managers)
		}
		return t.to.writer.Apply(ctx, live.Unstructured, want)
	}
	if err := t.to.writer.Create(ctx, want); err != nil {
		return err
	}
	if want.GetUID() == "" {
		return fault.New(fault.Conflict, "AlreadyExists", "%s was created at the %s by another client", t.there(e), t.to.name)
	}
	t.mu.Lock()
	t.uids[t.there(e)] = want.GetUID()
	t.mu.Unlock()
	return t.restoreManagers(ctx, want, managers)
}

// restoreManagers gives an object of the other side the managers that its fields have here. The controllers there may write it at the same
// time: it is read again then.
func (t *transfer) restoreManagers(ctx context.Context, live *unstructured.Unstructured, managers []metav1.ManagedFieldsEntry) error {
	again := false
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if again {
			if err := t.to.client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
				return client.IgnoreNotFound(err) // what is missing at the end is found when both sides are compared
			}
		}
		again = true
		return t.to.writer.RestoreManagers(ctx, live, managers)
	})
}

// desired is an object as it is to be on the other side: without status, with the owners that it has there.
func (t *transfer) desired(e Entry, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o := portable.Of(old)
	var refs []metav1.OwnerReference
	t.mu.Lock()
	for _, ref := range old.GetOwnerReferences() {
		if uid := t.uids[t.owners[ref.UID]]; uid != "" {
			ref.UID, ref.Name = uid, t.owners[ref.UID].Name
			refs = append(refs, ref)
		}
	}
	t.mu.Unlock()
	o.SetOwnerReferences(refs)
	if err := t.change(o); err != nil {
		return nil, err
	}
	to := t.there(e)
	o.SetNamespace(to.Namespace)
	o.SetName(to.Name)
	return o, nil
}

// verify compares both sides: everything that is still on the one has to be on the other.
func (t *transfer) verify(ctx context.Context) error {
	if err := t.load(ctx); err != nil {
		return err
	}
	var missing, different []string
	for _, e := range t.entries {
		old, exists := t.old[t.here(e)]
		live, there := t.live[t.there(e)]
		switch {
		case !exists:
		case !there:
			missing = append(missing, t.there(e).String())
		case e.Copy, portable.IsMarked(old.Unstructured):
		default:
			want, err := t.desired(e, old.Unstructured)
			if err != nil {
				return err
			}
			if !portable.IsCovered(want, live.Unstructured) {
				different = append(different, t.there(e).String())
			}
		}
	}
	if len(missing)+len(different) == 0 {
		return nil
	}
	return continued(fault.New(fault.Conflict, "NotEqual", "nothing was deleted, because the %s is not as the %s: missing [%s], different [%s]",
		t.to.name, t.from.name, strings.Join(missing, ", "), strings.Join(different, ", ")))
}

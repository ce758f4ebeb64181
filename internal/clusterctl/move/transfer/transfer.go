package transfer

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

// Entry is an object of a plan. Its JSON names are short, because the journal has an entry for each object, and must
// not change. The plan of package move has one entry for each selected object.
type Entry struct {
	ID graph.ID `json:"i"`
	// To is the ID at the target, if it differs.
	To *graph.ID `json:"t,omitempty"`
	// Version is the API version for reads and writes.
	Version string `json:"v"`
	// Level is the creation order: entries of lower levels are created first.
	Level int `json:"l,omitempty"`
	// Copy means that the object is created if missing, and left at the source.
	Copy bool `json:"c,omitempty"`
	// Existed means that the object existed at the target before the move, and is never deleted there.
	Existed bool `json:"e,omitempty"`
}

// At returns the ID at the target. Package move uses it as TargetID of the transfer to the target, and as SourceID of
// the reverse transfer.
func (e Entry) At() graph.ID {
	if e.To != nil {
		return *e.To
	}
	return e.ID
}

// maxConcurrentWrites is the maximum number of concurrent writes.
const maxConcurrentWrites = 16

// Transfer transfers objects from one management cluster to the other: from source to target, back in a rollback, or
// from files in a restore. Package move creates it in each phase that needs it.
type Transfer struct {
	// From is nil if the objects are read from files.
	From, To *Endpoint
	Entries  []Entry
	// SourceID and TargetID return the ID of an entry in From and in To.
	SourceID, TargetID func(Entry) graph.ID
	// Change is called for each object before it is written.
	Change func(*unstructured.Unstructured) error

	// Source are the objects in From, Live the objects in To.
	Source, Live map[graph.ID]graph.Object
	// SourceKnown means that the caller has read Source, which is not read again.
	SourceKnown bool
	owners      map[types.UID]graph.ID // by the UID in From; the ID is the one in To
	written     bool                   // since both were read
	mu          sync.Mutex
	uids        map[graph.ID]types.UID // in To
}

// Load reads the objects from both management clusters, or only from To if Source is known. To save memory it drops the
// status, which does not move, and the managed fields of objects whose managers are already restored.
func (t *Transfer) Load(ctx context.Context) (err error) {
	t.Live, t.written = nil, false // release the memory before reading again
	readSource := t.From != nil && !t.SourceKnown
	if readSource {
		t.Source = nil
	}
	t.Live, err = t.To.findTrimmed(ctx, t.Entries, t.TargetID, func(o graph.Object) {
		delete(o.Object, "status")
		if !t.To.Writer.LacksManagers(o.Unstructured) {
			o.SetManagedFields(nil)
		}
	})
	if err != nil {
		return err
	}
	if readSource {
		settled := map[graph.ID]bool{}
		for _, e := range t.Entries {
			o, there := t.Live[t.TargetID(e)]
			settled[t.SourceID(e)] = there && len(o.GetManagedFields()) == 0
		}
		t.Source, err = t.From.findTrimmed(ctx, t.Entries, t.SourceID, func(o graph.Object) {
			delete(o.Object, "status")
			if settled[graph.IDOf(o.Unstructured)] {
				o.SetManagedFields(nil)
			}
		})
		if err != nil {
			return err
		}
	}
	t.owners, t.uids = map[types.UID]graph.ID{}, map[graph.ID]types.UID{}
	for _, e := range t.Entries {
		if o, ok := t.Source[t.SourceID(e)]; ok {
			t.owners[o.GetUID()] = t.TargetID(e)
		}
		if o, ok := t.Live[t.TargetID(e)]; ok {
			t.uids[t.TargetID(e)] = o.GetUID()
		}
	}
	return t.loadOtherOwners(ctx)
}

// loadOtherOwners reads owners that are not among the entries and exist in both management clusters, such as
// cluster-scoped ones, so that the owner references to them can be set in To.
func (t *Transfer) loadOtherOwners(ctx context.Context) error {
	tried := map[types.UID]bool{}
	for _, e := range t.Entries {
		old, there := t.Source[t.SourceID(e)]
		if t.From == nil || !there {
			continue
		}
		for _, ref := range old.GetOwnerReferences() {
			if _, known := t.owners[ref.UID]; known || tried[ref.UID] {
				continue
			}
			tried[ref.UID] = true
			if err := t.loadOwner(ctx, e, ref); err != nil && !apierrors.IsForbidden(err) {
				return err
			}
		}
	}
	return nil
}

func (t *Transfer) loadOwner(ctx context.Context, e Entry, ref metav1.OwnerReference) error {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := t.From.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if IsNoMatch(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the scope of %s: %w", gvk.Kind, err)
	}
	here := graph.ID{Group: gvk.Group, Kind: gvk.Kind, Name: ref.Name}
	there := here
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		here.Namespace, there.Namespace = t.SourceID(e).Namespace, t.TargetID(e).Namespace
	}
	own, err := t.From.metadata(ctx, gvk, here)
	if err != nil || own == nil || own.UID != ref.UID {
		return err
	}
	other, err := t.To.metadata(ctx, gvk, there)
	if err == nil && other != nil {
		t.owners[ref.UID], t.uids[there] = there, other.UID
	}
	return err
}

// Run creates missing objects and updates changed ones, owners first. The phases creating and deleting of a move call
// it, and the restore from files.
func (t *Transfer) Run(ctx context.Context) error {
	if err := t.Load(ctx); err != nil {
		return err
	}
	return EachLevel(ctx, t.Entries, func(ctx context.Context, e Entry) error { return t.TransferEntry(ctx, e) })
}

// EachLevel calls do for all entries, level by level, and concurrently within a level. A move creates objects with it,
// and deletes them with the reversed entries. The entries of a level must be adjacent.
func EachLevel(ctx context.Context, entries []Entry, do func(context.Context, Entry) error) error {
	for start := 0; start < len(entries); {
		end := start
		for end < len(entries) && entries[end].Level == entries[start].Level {
			end++
		}
		if err := Each(ctx, entries[start:end], do); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// Each calls do for all entries concurrently.
func Each(ctx context.Context, entries []Entry, do func(context.Context, Entry) error) error {
	group, inner := fault.NewGroup(ctx)
	group.SetLimit(maxConcurrentWrites)
	for _, e := range entries {
		group.Go(func() error { return do(inner, e) })
	}
	return group.Wait()
}

// TransferEntry creates or updates one object. A rollback recreates single objects with it.
func (t *Transfer) TransferEntry(ctx context.Context, e Entry) error {
	old, exists := t.Source[t.SourceID(e)]
	if !exists {
		return nil // already transferred
	}
	live, there := t.Live[t.TargetID(e)]
	isMarked := graph.IsDeletedForMove(old.Unstructured)
	if there && e.Copy || !there && isMarked {
		return nil // Verify detects a marked object that the target does not have
	}
	want, err := t.desired(e, old.Unstructured)
	if err != nil {
		return err
	}
	managers := want.GetManagedFields()
	want.SetManagedFields(nil)
	if isMarked { // the move has removed its finalizers
		want.SetFinalizers(live.GetFinalizers())
	}
	if there {
		if graph.Contains(want, live.Unstructured) {
			return t.restoreManagers(ctx, live.Unstructured, managers)
		}
		t.write()
		return t.To.Writer.Apply(ctx, live.Unstructured, want)
	}
	t.write()
	writer := t.To.Writer
	if len(writer.Others(managers)) > 0 {
		writer = writer.WithManager(kube.ArrivalManager)
	}
	if err := writer.Create(ctx, want); err != nil {
		return err
	}
	if want.GetUID() == "" {
		return fault.New(fault.Conflict, "AlreadyExists", "%s was created at the %s by another client", t.TargetID(e), t.To.Name)
	}
	t.mu.Lock()
	t.uids[t.TargetID(e)] = want.GetUID()
	t.mu.Unlock()
	return t.restoreManagers(ctx, want, managers)
}

func (t *Transfer) write() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = true
}

// restoreManagers restores the field managers of an object in To. If a controller writes the object at the same time,
// it is read again.
func (t *Transfer) restoreManagers(ctx context.Context, live *unstructured.Unstructured, managers []metav1.ManagedFieldsEntry) error {
	again := false
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if again {
			if err := t.To.Client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
				return client.IgnoreNotFound(err) // Verify detects objects that are missing at the end
			}
		}
		again = true
		return t.To.Writer.RestoreManagers(ctx, live, managers)
	})
}

// desired returns an object as it should be in To: without status, with the owner references of To.
func (t *Transfer) desired(e Entry, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o := graph.Strip(old)
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
	if err := t.Change(o); err != nil {
		return nil, err
	}
	to := t.TargetID(e)
	o.SetNamespace(to.Namespace)
	o.SetName(to.Name)
	return o, nil
}

// IsTransferred reports whether an object of From is in To as it is in From now. A move calls it before it deletes an
// object at the source that has changed.
func (t *Transfer) IsTransferred(e Entry, now *unstructured.Unstructured) (bool, error) {
	live, there := t.Live[t.TargetID(e)]
	if !there {
		return false, nil
	}
	return t.isEqual(e, now, live.Unstructured)
}

// isEqual reports whether an object in To has all content of the one in From. The mark of a deletion and the finalizers
// that it removes are no content: another client may change an object after it was marked.
func (t *Transfer) isEqual(e Entry, old, live *unstructured.Unstructured) (bool, error) {
	want, err := t.desired(e, old)
	return err == nil && graph.Contains(want, live), err
}

// Verify compares both management clusters: everything that still exists in From must exist in To. A move calls it
// before it deletes anything at the source.
func (t *Transfer) Verify(ctx context.Context) error {
	if t.Source == nil || t.Live == nil || t.written {
		if err := t.Load(ctx); err != nil {
			return err
		}
	}
	var missing, different []string
	for _, e := range t.Entries {
		old, exists := t.Source[t.SourceID(e)]
		live, there := t.Live[t.TargetID(e)]
		switch {
		case !exists:
		case !there:
			missing = append(missing, t.TargetID(e).String())
		case e.Copy:
		default:
			equal, err := t.isEqual(e, old.Unstructured, live.Unstructured)
			if err != nil {
				return err
			}
			if !equal {
				different = append(different, t.TargetID(e).String())
			}
		}
	}
	if len(missing)+len(different) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "NotEqual", "the %s is not as the %s, so nothing more is deleted: missing [%s], different [%s]",
		t.To.Name, t.From.Name, strings.Join(missing, ", "), strings.Join(different, ", "))
}

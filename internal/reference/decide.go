package reference

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// missingRecheck is the interval for reading a missing object again, because a kind that is not installed yet
// cannot be watched.
const missingRecheck = 30 * time.Second

// The actions on provider objects, which [Act] runs. Each may be repeated. Role is the name of the [Role] of the
// object.
type (
	// SetOwner adds the owner reference and the cluster label to the object.
	SetOwner struct{ Owner, Role, Kind, Name string }
	// Delete deletes the object.
	Delete struct{ Owner, Role, Kind, Name string }
)

// Independent marks actions that may run in parallel.
func (SetOwner) Independent() {}

func (a SetOwner) String() string {
	return fmt.Sprintf("own %s %s: it is the %s's %s", a.Kind, a.Name, a.Owner, a.Role)
}

func (a Delete) String() string {
	return fmt.Sprintf("delete %s %s: the %s is deleted", a.Kind, a.Name, a.Owner)
}

// Decide adds the actions and waits for the object. The Cluster, Machine and MachinePool controllers call it for each
// of their references while their object is not being deleted. The package documentation contains the decision table.
func (l Link) Decide(p *reconciler.Plan) {
	problem := l.Problem()
	switch presence := l.Presence(); {
	case presence == contract.NotSet, l.IsLost() && l.Expendable:
	case l.IsLost():
		p.WaitFor(clusterv1.ObjectDeletedReason, "%s", l.lostText()).For(l.Ref.Kind, l.Ref.Name).UntilUserActs()
	case presence == contract.Missing:
		p.WaitFor(clusterv1.ObjectDoesNotExistReason, "Waiting for %s to be created", l).For(l.Ref.Kind, l.Ref.Name).ToChange("")
		p.RecheckIn(missingRecheck)
	case presence == contract.Found && l.conflictingController() == nil && !l.isOwned():
		p.Do(SetOwner{Owner: l.Owner.Kind, Role: l.Name, Kind: l.Ref.Kind, Name: l.Ref.Name})
	case problem != "":
		l.waitForUser(p, "ReferenceUnreadable", problem)
	case !l.IsDone():
		p.WaitFor("WaitingForProvider", "%s", l.awaitedFieldText()).For(l.Ref.Kind, l.Ref.Name).ToChange(l.awaitedField())
	}
}

// Delete deletes the object and waits until it is gone, while its owner is being deleted. An object that another owner
// controls is not deleted. The Machine and MachinePool controllers call it; the Cluster controller calls [Link.Remove].
func (l Link) Delete(p *reconciler.Plan, reason string) {
	switch l.Remove(p) {
	case contract.Unreadable:
		l.waitForUser(p, reason, l.Problem())
	case contract.Found:
		p.WaitFor(reason, "Waiting for %s to be deleted%s", l, l.FinalizersText()).For(l.Ref.Kind, l.Ref.Name).ToChange("")
	}
}

// FinalizersText returns a message with the foreign finalizers that block the deletion of the object; see
// [condition.ForeignFinalizersText].
func (l Link) FinalizersText() string {
	if l.Presence() != contract.Found {
		return ""
	}
	return condition.ForeignFinalizersText(schema.GroupKind{Group: l.Ref.APIGroup, Kind: l.Ref.Kind}, l.Object())
}

// Remove deletes the object. It returns Found or Unreadable if the deletion is not complete, and Missing if there
// is nothing to wait for. The Cluster controller calls it, because it waits for several objects with one message.
func (l Link) Remove(p *reconciler.Plan) contract.Presence {
	switch presence := l.Presence(); {
	case presence == contract.Found && l.conflictingController() != nil:
		return contract.Missing
	case presence == contract.Found && l.Object().GetDeletionTimestamp().IsZero():
		p.Do(Delete{Owner: l.Owner.Kind, Role: l.Name, Kind: l.Ref.Kind, Name: l.Ref.Name})
		fallthrough
	default:
		return presence
	}
}

func (l Link) waitForUser(p *reconciler.Plan, reason, problem string) {
	p.WaitFor(reason, "%s", problem).For(l.Ref.Kind, l.Ref.Name).UntilUserActs()
	if l.Object().Problem != "" { // an unreadable object is not watched
		p.RecheckIn(missingRecheck)
	}
}

// awaitedField returns the path of the field that the object has to set.
func (l Link) awaitedField() string {
	c := l.View.Completion()
	if c.Unnamed() {
		return c.Result.Path()
	}
	return c.Flag.Path()
}

// awaitedFieldText returns the message for a wait until the object sets the awaited field.
func (l Link) awaitedFieldText() string {
	if c := l.View.Completion(); c.Unnamed() {
		return fmt.Sprintf("Waiting for %s to set %s: it reports %s", l, l.awaitedField(), c.Flag.Path())
	}
	return fmt.Sprintf("Waiting for %s to report %s", l, l.awaitedField())
}

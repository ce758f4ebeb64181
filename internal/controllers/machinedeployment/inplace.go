package machinedeployment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/inplace"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// Where an extension makes all changes from an old template to the current one, the Machines of its MachineSet are handed over to the
// current one instead of deleted (package inplace). Whether it does is asked before anything is rolled out, and not known is not no:
//
//	no extension, or it leaves changes     replace the Machines
//	it makes all changes                   hand them over
//	it did not answer                      nothing, but for Machines that are on their way already

// inPlaceUnknown is the reason of the wait for the answer of an extension.
const inPlaceUnknown = "InPlaceUpdateUnknown"

// inPlaceRecheck is when an extension that did not answer is called again.
const inPlaceRecheck = 15 * time.Second

// AskInPlace asks whether the Machines of the old MachineSets can be updated in place.
type AskInPlace struct{}

func (AskInPlace) String() string {
	return "whether an extension can update the Machines of old MachineSets in place"
}

// moves are what the annotations of a MachineSet say about Machines that are handed over, each a list of names.
type moves struct {
	// to is the MachineSet that it hands over its surplus to.
	to string
	// from are the MachineSets that hand over theirs to it.
	from string
	// counted are Machines that were handed over to it, and that its replicas count.
	counted string
}

// annotate adds the annotations. What a user wrote into one that says nothing now is overwritten: no one else removes it.
func (m moves) annotate(annotations map[string]string, live *clusterv1.MachineSet) {
	for key, value := range map[string]string{
		clusterv1.MachineSetMoveMachinesToMachineSetAnnotation:       m.to,
		clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation: m.from,
		clusterv1.AcknowledgedMoveAnnotation:                         m.counted,
	} {
		if value != "" || live != nil && live.Annotations[key] != "" && !isOwnAnnotation(live, key) {
			annotations[key] = value
		}
	}
}

// isOwnAnnotation reports whether the controller has applied an annotation, so that it is removed where it is not applied any more.
func isOwnAnnotation(set *clusterv1.MachineSet, key string) bool {
	return slices.Contains(kube.OwnedMetadata(set, kube.Prefix+Name).Annotations, key)
}

// inPlace is what is known of updates in place in a rollout.
type inPlace struct {
	// wanted: an answer is needed, and was not asked for.
	wanted bool
	// unknown says why nothing is rolled out, since there was no answer; empty: there was. recheck is when to ask again.
	unknown string
	recheck time.Duration
	// moving are the MachineSets that hand over their surplus.
	moving map[string]bool
}

func (p inPlace) asks() bool { return p.wanted }

// inPlaceOf reads the answers of the extension; where nothing is rolled out, none is needed.
func inPlaceOf(s Snapshot, r rolloutState) inPlace {
	candidates := inPlaceCandidates(s)
	if r.state.Held || r.denied || len(candidates) == 0 {
		return inPlace{}
	}
	if s.InPlace == nil {
		return inPlace{wanted: true}
	}
	for _, set := range candidates {
		if answer := s.InPlace[set.Name]; !answer.IsKnown() {
			return inPlace{unknown: unknownText(set.Name, answer), recheck: cmp.Or(answer.Later, answer.Retry, inPlaceRecheck)}
		}
	}
	return inPlace{}
}

func unknownText(set string, answer inplace.Answer) string {
	why := "the extension could not be called yet"
	if answer.Problem != nil {
		why = fault.UserMessage(answer.Problem)
	}
	return fmt.Sprintf("Whether the Machines of MachineSet %s can be updated in place is not known, and nothing is rolled out until it is: %s", set, why)
}

// inPlaceCandidates are the old MachineSets that have Machines to update.
func inPlaceCandidates(s Snapshot) []*clusterv1.MachineSet {
	if !s.Settings.InPlace || s.Deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		return nil
	}
	var out []*clusterv1.MachineSet
	current := currentSet(s)
	for i := range s.Sets {
		if i != current && s.Sets[i].DeletionTimestamp.IsZero() && len(s.Machines[s.Sets[i].Name]) > 0 {
			out = append(out, &s.Sets[i])
		}
	}
	return out
}

// canUpdate reports whether the Machines of an old MachineSet can be updated in place; where that is not known, what was decided
// before holds.
func (r rolloutState) canUpdate(s Snapshot, set *clusterv1.MachineSet) bool {
	if !s.Settings.InPlace {
		return false
	}
	if answer, asked := s.InPlace[set.Name]; asked && answer.IsKnown() {
		return answer.Covered
	}
	return r.index >= 0 && inplace.MoveTo(set) == s.Sets[r.index].Name
}

// movesOf are what the annotations of a MachineSet are to say; nil: the current one, which does not exist yet.
func (r rolloutState) movesOf(s Snapshot, set *clusterv1.MachineSet) moves {
	var m moves
	switch {
	case r.state.New == nil:
	case set == nil || set.Name == r.state.New.Name:
		from := slices.Sorted(maps.Keys(r.moving))
		m.from = inplace.List(from[:min(len(from), inplace.MostNamed)])
	case r.moving[set.Name]:
		m.to = r.state.New.Name
	}
	if set != nil {
		counted := countedBefore(s, set)
		if !r.denied {
			counted = append(counted, newlyCounted(s, set)...)
		}
		slices.Sort(counted)
		m.counted = inplace.List(counted)
	}
	return m
}

// countedBefore are the Machines that were handed over to a MachineSet and that its replicas count, while they say so.
func countedBefore(s Snapshot, set *clusterv1.MachineSet) []string {
	return awaiting(s, set, func(m *clusterv1.Machine) bool { return !inplace.IsAwaitingCount(set, m) })
}

// newlyCounted are Machines that were handed over to a MachineSet and that its replicas do not count yet: as many as fit into its
// annotation.
func newlyCounted(s Snapshot, set *clusterv1.MachineSet) []string {
	out := awaiting(s, set, func(m *clusterv1.Machine) bool {
		return inplace.IsAwaitingCount(set, m) && m.DeletionTimestamp.IsZero()
	})
	room := max(0, inplace.MostNamed-len(countedBefore(s, set)))
	return out[:min(len(out), room)]
}

// awaiting names the Machines of a MachineSet whose move is not complete, sorted.
func awaiting(s Snapshot, set *clusterv1.MachineSet, keep func(*clusterv1.Machine) bool) []string {
	var out []string
	for i := range s.Machines[set.Name] {
		if m := &s.Machines[set.Name][i]; inplace.StateOf(m) == inplace.Moving && keep(m) {
			out = append(out, m.Name)
		}
	}
	return out
}

// inPlaceLines say of old MachineSets with Machines whether these are updated in place.
func inPlaceLines(s Snapshot) []string {
	var out []string
	for _, set := range inPlaceCandidates(s) {
		answer, asked := s.InPlace[set.Name]
		switch {
		case !asked || !answer.IsKnown():
		case answer.Covered:
			out = append(out, fmt.Sprintf("Machines of MachineSet %s are updated in place by %s", set.Name, answer.Handler))
		case answer.Uncovered != "":
			out = append(out, replacedText(set.Name, answer))
		}
	}
	return out
}

func replacedText(set string, answer inplace.Answer) string {
	if answer.Handler == "" {
		return fmt.Sprintf("Machines of MachineSet %s are replaced, since %s", set, answer.Uncovered)
	}
	return fmt.Sprintf("Machines of MachineSet %s are replaced, since %s does not change %s in place", set, answer.Handler, answer.Uncovered)
}

// replacedNote says why Machines are replaced by those of a new MachineSet; empty: there is no extension that could update them.
func replacedNote(s Snapshot) string {
	for _, set := range inPlaceCandidates(s) {
		if answer := s.InPlace[set.Name]; answer.IsKnown() && !answer.Covered && answer.Uncovered != "" {
			return replacedText(set.Name, answer)
		}
	}
	return ""
}

// answer answers AskInPlace.
func (c *Controller) answer(ctx context.Context, s Snapshot, _ loop.Question) (Snapshot, error) {
	s.InPlace = map[string]inplace.Answer{}
	for _, set := range inPlaceCandidates(s) {
		answer, err := c.canUpdate(ctx, s, set)
		if err != nil {
			return s, err
		}
		s.InPlace[set.Name] = answer
	}
	return s, nil
}

// canUpdate asks the extension about one MachineSet, unless the answer follows from the templates.
func (c *Controller) canUpdate(ctx context.Context, s Snapshot, set *clusterv1.MachineSet) (inplace.Answer, error) {
	if rollout.Expired(s.Deployment.Spec.Rollout.After.Time, set.CreationTimestamp.Time, s.Now) {
		return inplace.Answer{Uncovered: "spec.rollout.after asks for new Machines"}, nil
	}
	if why := neverInPlace(set.Spec.Template, s.Deployment.Spec.Template); why != "" {
		return inplace.Answer{Uncovered: why}, nil
	}
	was := set.Spec.Template.Spec
	old, err := clone.ReadTemplates(ctx, c.refs, s.Deployment, slices.DeleteFunc(
		[]clusterv1.ContractVersionedObjectReference{was.InfrastructureRef, was.Bootstrap.ConfigRef},
		func(ref clusterv1.ContractVersionedObjectReference) bool { return !ref.IsDefined() })...)
	if err != nil {
		return inplace.Answer{}, err
	}
	for _, template := range old.Unusable() {
		return inplace.Answer{Uncovered: template.Blocker()}, nil
	}
	desired := s.Deployment.Spec.Template.Spec
	return c.caller.CanUpdateMachineSet(ctx,
		inplace.MachineSet{MachineSet: currentForm(s, set), Infrastructure: old.Of(was.InfrastructureRef).Object.Unstructured, Bootstrap: unstructuredOf(old, was.Bootstrap.ConfigRef)},
		inplace.MachineSet{MachineSet: desiredForm(s), Infrastructure: s.Templates.Of(desired.InfrastructureRef).Object.Unstructured,
			Bootstrap: unstructuredOf(s.Templates, desired.Bootstrap.ConfigRef)})
}

func unstructuredOf(templates clone.Templates, ref clusterv1.ContractVersionedObjectReference) *unstructured.Unstructured {
	if !ref.IsDefined() {
		return nil
	}
	return templates.Of(ref).Object.Unstructured
}

// neverInPlace says why no extension can make Machines of one template those of another; empty: one may.
func neverInPlace(from, to clusterv1.MachineTemplateSpec) string {
	sameKind := func(a, b clusterv1.ContractVersionedObjectReference) bool {
		return a.APIGroup == b.APIGroup && a.Kind == b.Kind
	}
	switch {
	case len(rollout.Differences(from, to)) == 0:
		return "their template is the current one, which another MachineSet has"
	case !sameKind(from.Spec.InfrastructureRef, to.Spec.InfrastructureRef):
		return "their infrastructure is of another kind"
	case !sameKind(from.Spec.Bootstrap.ConfigRef, to.Spec.Bootstrap.ConfigRef):
		return "their bootstrap config is of another kind"
	}
	return ""
}

// currentForm is an old MachineSet as an extension gets it: what follows in place and the names of the templates, whose contents it
// gets, are those of the current one, since no patch has to change them. What changes during a rollout is left out.
func currentForm(s Snapshot, set *clusterv1.MachineSet) *clusterv1.MachineSet {
	out := desiredForm(s)
	out.Name = set.Name
	out.Spec.Selector = set.Spec.Selector
	desired := out.Spec.Template
	out.Spec.Template = rollout.InPlace(set.Spec.Template, desired)
	out.Spec.Template.Spec.InfrastructureRef = desired.Spec.InfrastructureRef
	out.Spec.Template.Spec.Bootstrap.ConfigRef = desired.Spec.Bootstrap.ConfigRef
	withoutSecretOfConfig(&out.Spec.Template)
	return out
}

// withoutSecretOfConfig removes the name of a data Secret that a bootstrap config decides.
func withoutSecretOfConfig(t *clusterv1.MachineTemplateSpec) {
	if t.Spec.Bootstrap.ConfigRef.IsDefined() {
		t.Spec.Bootstrap.DataSecretName = nil
	}
}

// desiredForm is the current MachineSet as an extension gets it, the same before and after it is created.
func desiredForm(s Snapshot) *clusterv1.MachineSet {
	d := s.Deployment
	out := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: nameOf(s, nextRevision(s)), Labels: maps.Clone(d.Spec.Template.Labels)}}
	out.Spec = clusterv1.MachineSetSpec{ClusterName: d.Spec.ClusterName, Selector: d.Spec.Selector, Template: *d.Spec.Template.DeepCopy()}
	if i := currentSet(s); i >= 0 {
		out.Name = s.Sets[i].Name
	}
	withoutSecretOfConfig(&out.Spec.Template)
	return out
}

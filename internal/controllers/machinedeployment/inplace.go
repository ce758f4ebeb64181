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
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// This file is the part of a rollout for in-place updates. If an extension makes all changes from an old template to
// the current one, the Machines of the old MachineSet are transferred to the current one instead of being deleted
// (package inplace). The extension is called before the rollout starts, and an unknown result never counts as "no":
//
//	no extension, or changes not covered   replace the Machines
//	all changes covered                    transfer the Machines
//	result unknown                         nothing, except for Machines whose transfer has started

// inPlaceUnknown is the reason of a wait for the response of an extension. The condition RollingOut shows this wait.
const inPlaceUnknown = "InPlaceUpdateUnknown"

// inPlaceRecheck is the retry interval for an extension that did not respond.
const inPlaceRecheck = 15 * time.Second

// askInPlace requests whether the Machines of the old MachineSets can be updated in place. decideRollout puts it into
// the plan.
type askInPlace struct{}

func (askInPlace) String() string {
	return "whether an extension can update the Machines of old MachineSets in place"
}

// moves contains the values of a MachineSet's annotations about transferred Machines, each a list of names. movesOf
// computes them, and desiredObject writes them.
type moves struct {
	// to is the MachineSet to which it transfers its surplus Machines.
	to string
	// from are the MachineSets that transfer their Machines to it.
	from string
	// counted are transferred Machines that are included in its replicas.
	counted string
}

// annotate adds the annotations. If a user has set one that must be absent, it is overwritten with an empty value,
// because nothing else removes it.
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

// isOwnAnnotation reports whether the controller applied the annotation. Such an annotation is removed when the
// controller no longer applies it.
func isOwnAnnotation(set *clusterv1.MachineSet, key string) bool {
	return slices.Contains(kube.OwnedMetadata(set, kube.ManagerPrefix+Name).Annotations, key)
}

// inPlace is the state of in-place updates in a rollout. inPlaceOf computes it.
type inPlace struct {
	// wanted is set if a result is needed that was not requested yet.
	wanted bool
	// unknown explains why nothing is rolled out because the result is unknown, or is empty. recheck is the delay
	// before the next call.
	unknown string
	recheck time.Duration
	// moving are the MachineSets that transfer their surplus Machines.
	moving map[string]bool
}

// needsCheck reports whether decideRollout has to request a call of the extension.
func (p inPlace) needsCheck() bool { return p.wanted }

// inPlaceOf evaluates the results of the extension. No result is needed while nothing is rolled out. rolloutOf calls
// it.
func inPlaceOf(s snapshot, r rolloutState) inPlace {
	candidates := inPlaceCandidates(s)
	if r.state.Paused || r.denied || len(candidates) == 0 {
		return inPlace{}
	}
	if s.InPlace == nil {
		return inPlace{wanted: true}
	}
	for _, set := range candidates {
		if answer := s.InPlace[set.Name]; !answer.IsKnown() {
			return inPlace{unknown: unknownText(set.Name, answer), recheck: cmp.Or(answer.CallAfter, answer.Retry, inPlaceRecheck)}
		}
	}
	return inPlace{}
}

func unknownText(set string, answer inplace.UpdateCheck) string {
	why := "the extension could not be called yet"
	if answer.Problem != nil {
		why = fault.UserMessage(answer.Problem)
	}
	return fmt.Sprintf("Whether the Machines of MachineSet %s can be updated in place is not known, and nothing is rolled out until it is: %s", set, why)
}

// inPlaceCandidates returns the old MachineSets with Machines to update.
func inPlaceCandidates(s snapshot) []*clusterv1.MachineSet {
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

// canUpdate reports whether the Machines of an old MachineSet can be updated in place. While the result is unknown,
// the previous decision applies.
func (r rolloutState) canUpdate(s snapshot, set *clusterv1.MachineSet) bool {
	if !s.Settings.InPlace {
		return false
	}
	if answer, asked := s.InPlace[set.Name]; asked && answer.IsKnown() {
		return answer.Covered
	}
	return r.index >= 0 && inplace.TransferTarget(set) == s.Sets[r.index].Name
}

// movesOf returns the annotations of a MachineSet. The argument set is nil for a current MachineSet that does not
// exist yet. The plan of a new or existing MachineSet calls it.
func (r rolloutState) movesOf(s snapshot, set *clusterv1.MachineSet) moves {
	var m moves
	switch {
	case r.state.New == nil:
	case set == nil || set.Name == r.state.New.Name:
		from := slices.Sorted(maps.Keys(r.moving))
		m.from = inplace.List(from[:min(len(from), inplace.MaxListedNames)])
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

// countedBefore returns the transferred Machines that the MachineSet's replicas already include, until their
// transfer is complete.
func countedBefore(s snapshot, set *clusterv1.MachineSet) []string {
	return awaiting(s, set, func(m *clusterv1.Machine) bool { return !inplace.IsAwaitingCount(set, m) })
}

// newlyCounted returns the transferred Machines that the MachineSet's replicas do not include yet, up to the number
// that fits into the annotation. setView passes their number to the rollout, which raises the replicas. The same write
// adds their names to the annotation (movesOf).
func newlyCounted(s snapshot, set *clusterv1.MachineSet) []string {
	out := awaiting(s, set, func(m *clusterv1.Machine) bool {
		return inplace.IsAwaitingCount(set, m) && m.DeletionTimestamp.IsZero()
	})
	room := max(0, inplace.MaxListedNames-len(countedBefore(s, set)))
	return out[:min(len(out), room)]
}

// awaiting returns the sorted names of the Machines of a MachineSet whose transfer is not complete.
func awaiting(s snapshot, set *clusterv1.MachineSet, keep func(*clusterv1.Machine) bool) []string {
	var out []string
	for i := range s.Machines[set.Name] {
		if m := &s.Machines[set.Name][i]; inplace.StateOf(m) == inplace.Moving && keep(m) {
			out = append(out, m.Name)
		}
	}
	return out
}

// inPlaceLines returns for each old MachineSet with Machines whether these are updated in place. The condition
// RollingOut lists them.
func inPlaceLines(s snapshot) []string {
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

func replacedText(set string, answer inplace.UpdateCheck) string {
	if answer.Handler == "" {
		return fmt.Sprintf("Machines of MachineSet %s are replaced, since %s", set, answer.Uncovered)
	}
	return fmt.Sprintf("Machines of MachineSet %s are replaced, since %s does not change %s in place", set, answer.Handler, answer.Uncovered)
}

// replacedNote explains why Machines are replaced instead of updated in place. It is empty if no extension could update
// them. It becomes the event ReplacingMachines when the new MachineSet is created.
func replacedNote(s snapshot) string {
	for _, set := range inPlaceCandidates(s) {
		if answer := s.InPlace[set.Name]; answer.IsKnown() && !answer.Covered && answer.Uncovered != "" {
			return replacedText(set.Name, answer)
		}
	}
	return ""
}

// answer calls the extension for each old MachineSet. Package reconciler calls it when [decide] requests askInPlace.
func (c *controller) answer(ctx context.Context, s snapshot, _ reconciler.ReadRequest) (snapshot, error) {
	s.InPlace = map[string]inplace.UpdateCheck{}
	for _, set := range inPlaceCandidates(s) {
		answer, err := c.canUpdate(ctx, s, set)
		if err != nil {
			return s, err
		}
		s.InPlace[set.Name] = answer
	}
	return s, nil
}

// canUpdate calls the extension for one MachineSet, unless the templates already determine the result.
func (c *controller) canUpdate(ctx context.Context, s snapshot, set *clusterv1.MachineSet) (inplace.UpdateCheck, error) {
	if rollout.Expired(s.Deployment.Spec.Rollout.After.Time, set.CreationTimestamp.Time, s.Now) {
		return inplace.UpdateCheck{Uncovered: "spec.rollout.after requests new Machines"}, nil
	}
	if why := neverInPlace(set.Spec.Template, s.Deployment.Spec.Template); why != "" {
		return inplace.UpdateCheck{Uncovered: why}, nil
	}
	was := set.Spec.Template.Spec
	old, err := clone.ReadTemplates(ctx, c.refs, s.Deployment, slices.DeleteFunc(
		[]clusterv1.ContractVersionedObjectReference{was.InfrastructureRef, was.Bootstrap.ConfigRef},
		func(ref clusterv1.ContractVersionedObjectReference) bool { return !ref.IsDefined() })...)
	if err != nil {
		return inplace.UpdateCheck{}, err
	}
	for _, template := range old.Unusable() {
		return inplace.UpdateCheck{Uncovered: template.Blocker()}, nil
	}
	desired := s.Deployment.Spec.Template.Spec
	return c.caller.CanUpdateMachineSet(ctx,
		inplace.MachineSet{MachineSet: currentForm(s, set), Infrastructure: old.Get(was.InfrastructureRef).Object.Unstructured, Bootstrap: unstructuredOf(old, was.Bootstrap.ConfigRef)},
		inplace.MachineSet{MachineSet: desiredForm(s), Infrastructure: s.Templates.Get(desired.InfrastructureRef).Object.Unstructured,
			Bootstrap: unstructuredOf(s.Templates, desired.Bootstrap.ConfigRef)})
}

func unstructuredOf(templates clone.Templates, ref clusterv1.ContractVersionedObjectReference) *unstructured.Unstructured {
	if !ref.IsDefined() {
		return nil
	}
	return templates.Get(ref).Object.Unstructured
}

// neverInPlace returns why no extension can turn Machines of one template into Machines of another, or an empty
// string.
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

// currentForm returns an old MachineSet in the form for the request to an extension. Fields that are updated in
// place and the names of the templates, whose contents are sent separately, are taken from the current MachineSet,
// because no patch has to change them. Fields that change during a rollout are omitted.
func currentForm(s snapshot, set *clusterv1.MachineSet) *clusterv1.MachineSet {
	out := desiredForm(s)
	out.Name = set.Name
	out.Spec.Selector = set.Spec.Selector
	desired := out.Spec.Template
	out.Spec.Template = rollout.InPlaceTemplate(set.Spec.Template, desired)
	out.Spec.Template.Spec.InfrastructureRef = desired.Spec.InfrastructureRef
	out.Spec.Template.Spec.Bootstrap.ConfigRef = desired.Spec.Bootstrap.ConfigRef
	withoutSecretOfConfig(&out.Spec.Template)
	return out
}

// withoutSecretOfConfig removes the name of a data Secret that a bootstrap config determines.
func withoutSecretOfConfig(t *clusterv1.MachineTemplateSpec) {
	if t.Spec.Bootstrap.ConfigRef.IsDefined() {
		t.Spec.Bootstrap.DataSecretName = nil
	}
}

// desiredForm returns the current MachineSet in the form for the request to an extension. It is the same before and
// after the MachineSet is created.
func desiredForm(s snapshot) *clusterv1.MachineSet {
	d := s.Deployment
	out := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: nameOf(s, nextRevision(s)), Labels: maps.Clone(d.Spec.Template.Labels)}}
	out.Spec = clusterv1.MachineSetSpec{ClusterName: d.Spec.ClusterName, Selector: d.Spec.Selector, Template: *d.Spec.Template.DeepCopy()}
	if i := currentSet(s); i >= 0 {
		out.Name = s.Sets[i].Name
	}
	withoutSecretOfConfig(&out.Spec.Template)
	return out
}

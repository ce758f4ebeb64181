package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
	"github.com/slipwayhq/slipway/internal/topology/patch"
)

const (
	// problemRecheck is the interval for reading unreadable objects again, because a kind that is not installed yet
	// cannot be watched.
	problemRecheck = 30 * time.Second
	// unseenRecheck is the interval for checking whether the cache shows a created object.
	unseenRecheck = time.Second
)

// decide computes the plan that brings the objects of a topology to their desired state, which package
// internal/topology computes. Package reconciler calls it in each reconciliation, again after the reads that it
// requests. It is pure: it neither reads nor writes.
//
//	Cluster is being deleted                     call BeforeClusterDelete; the Cluster controller deletes the objects
//	class missing, or not reconciled             wait for it
//	something cannot be read, or computed        wait for a user
//	a hook has to be called                      call it; record its result before anything else is written
//	an extension patches templates               call it first
//	object missing                               create it, in the order of references; then set the Cluster's references
//	template differs                             check if its spec changes: then create another, switch references, delete
//	                                             the old one
//	worker existed, and was not deleted          wait until it is restored
//	object differs                               apply
//	worker or health check not in the topology   delete it
//	template not in use                          delete it
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	switch {
	case !s.Cluster.DeletionTimestamp.IsZero():
		decideDeletion(s, &p)
		return p
	case !s.Cluster.Spec.Topology.IsDefined() || s.NoFinalizer || !hasUsableClass(s, &p):
		return p
	}
	cluster, err := withDefaults(s)
	if err != nil {
		waitForUser(s, &p, message(err))
		return p
	}
	if s.proceed(&p) {
		decideObjects(s, cluster, &p)
	}
	retry(&p, append(slices.Clone(s.Lifecycle.Failed), s.undecidedTemplates(&p)...))
	return p
}

// undecidedTemplates waits for the templates for which it is unknown whether they change, and returns the errors.
func (s snapshot) undecidedTemplates(p *reconciler.Plan) []error {
	var failed []error
	for _, key := range slices.SortedFunc(maps.Keys(s.Undecided), func(a, b topology.Key) int { return cmp.Compare(a.String(), b.String()) }) {
		err := s.Undecided[key]
		failed = append(failed, err)
		if len(p.Reads) == 0 {
			p.WaitFor(clusterv1.ClusterTopologyReconciledFailedReason, "%s", failure(err)).For(clusterv1.ClusterKind, s.Cluster.Name).ForTime()
		}
	}
	return failed
}

// decideObjects computes the desired objects of the topology and the actions for them.
func decideObjects(s snapshot, cluster *clusterv1.Cluster, p *reconciler.Plan) {
	desired, questions, err := desire(s, cluster, versionsOf(s))
	switch {
	case err != nil:
		waitForUser(s, p, message(err))
		if f := fault.As(err); f != nil && f.Reason == patch.ReasonInvalidResponse { // no event reports that the extension was corrected
			p.RecheckIn(problemRecheck)
		}
	case len(questions) > 0:
		decideQuestions(s, questions, p)
	default:
		decideParts(s, desired, p)
	}
}

// hasUsableClass reports whether the class can be used. If not, it adds a wait to the plan.
func hasUsableClass(s snapshot, p *reconciler.Plan) bool {
	key := topology.ClassKey(s.Cluster)
	switch {
	case s.Class == nil:
		p.WaitFor(clusterv1.ClusterTopologyReconciledClusterClassNotReconciledReason, "Waiting for ClusterClass %s to be created", key).
			For("ClusterClass", key.Name).ToChange("")
	case s.Class.Status.ObservedGeneration != s.Class.Generation:
		p.WaitFor(clusterv1.ClusterTopologyReconciledClusterClassNotReconciledReason, "Waiting for ClusterClass %s to be reconciled", key).
			For("ClusterClass", key.Name).ToChange("status.observedGeneration")
	case condition.Set(s.Class.Status.Conditions).IsFalse(clusterv1.ClusterClassVariablesReadyCondition):
		p.WaitFor(clusterv1.ClusterTopologyReconciledClusterClassNotReconciledReason, "Waiting for the variables of ClusterClass %s to become ready: %s",
			key, condition.Set(s.Class.Status.Conditions).Get(clusterv1.ClusterClassVariablesReadyCondition).Message).
			For("ClusterClass", key.Name).ToChange("condition " + clusterv1.ClusterClassVariablesReadyCondition)
	case len(s.Problems) > 0:
		for _, problem := range s.Problems {
			waitForUser(s, p, sentence(problem))
		}
		p.RecheckIn(problemRecheck)
	default:
		return true
	}
	return false
}

func waitForUser(s snapshot, p *reconciler.Plan, problem string) {
	p.WaitFor(clusterv1.ClusterTopologyReconciledFailedReason, "%s", problem).For("ClusterClass", topology.ClassKey(s.Cluster).Name).UntilUserActs()
}

// message returns the message of an error for users.
func message(err error) string {
	if steps := stepErrors(err); len(steps) > 0 {
		var lines []string
		for _, step := range steps {
			if line := sentence(step.brief()); !slices.Contains(lines, line) && len(lines) < maxRefused {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "\n")
	}
	if f := fault.As(err); f != nil {
		return sentence(withCause(f))
	}
	return sentence(err.Error())
}

// sentence returns the text with an upper-case first letter.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// desire computes the desired objects, or returns the calls of extensions that are needed first.
func desire(s snapshot, cluster *clusterv1.Cluster, versions topology.Versions) (topology.Desired, []patch.ExtensionRequest, error) {
	in := s.Snapshot
	in.Cluster = cluster
	draft, err := topology.NewDraft(in, versions)
	if err != nil {
		return topology.Desired{}, nil, err
	}
	if s.Compiled.Err != nil {
		return topology.Desired{}, nil, s.Compiled.Err
	}
	patched, questions, err := draft.Patch(s.Compiled.Program, s.Answers)
	if err != nil || len(questions) > 0 {
		return topology.Desired{}, questions, err
	}
	rotated, err := draft.Rotate(patched)
	if rotated && err == nil {
		patched, questions, err = draft.Patch(s.Compiled.Program, s.Answers)
	}
	if err != nil || len(questions) > 0 {
		return topology.Desired{}, questions, err
	}
	desired, err := draft.DesiredState(patched)
	return desired, nil, err
}

// withDefaults returns the Cluster with the defaults of the class's variables. If the class was created after the
// Cluster, no webhook has set or checked them.
func withDefaults(s snapshot) (*clusterv1.Cluster, error) {
	cluster := *s.Cluster
	s.Cluster.Spec.Topology.DeepCopyInto(&cluster.Spec.Topology)
	s.Compiled.Variables.Default(&cluster.Spec.Topology)
	if errs := s.Compiled.Variables.Validate(&cluster.Spec.Topology, nil, field.NewPath("spec", "topology")); len(errs) > 0 {
		return nil, fault.New(fault.Invalid, "VariablesInvalid", "the variables of the Cluster do not match ClusterClass %s: %s; correct them",
			topology.ClassKey(s.Cluster), errs.ToAggregate().Error())
	}
	return &cluster, nil
}

// decideQuestions requests the calls of extensions for patches, and waits for extensions that cannot be called now.
func decideQuestions(s snapshot, questions []patch.ExtensionRequest, p *reconciler.Plan) {
	waits := len(p.Waits) // waits for the order of an upgrade, which requires these responses
	for _, q := range questions {
		failed := s.Failed[q.Key]
		if failed == nil {
			p.Reads = append(p.Reads, askExtension{Question: q})
			continue
		}
		p.WaitFor(clusterv1.ClusterTopologyReconciledFailedReason, "%s: %s", sentence("extension "+q.Extension+" of patch "+q.Patch), failure(failed)).
			For("ClusterClass", topology.ClassKey(s.Cluster).Name).ForTime()
		p.RecheckIn(cmp.Or(fault.RetryAfter(failed), problemRecheck))
	}
	if len(p.Waits) > waits {
		p.Reads = nil
	}
}

// decideParts adds the actions that bring each part to its desired state and delete obsolete objects.
func decideParts(s snapshot, desired topology.Desired, p *reconciler.Plan) {
	var groups groups
	isCreated := s.Cluster.Spec.InfrastructureRef.IsDefined() && s.Cluster.Spec.ControlPlaneRef.IsDefined()
	waiting := map[topology.Key]bool{}
	for key := range s.Undecided {
		waiting[key.Group()] = true
	}
	for i := range desired.Parts {
		part := &desired.Parts[i]
		if isLost(s, part.Key) {
			lost := lostReference(s, part.Key)
			p.WaitFor(clusterv1.ClusterTopologyReconciledFailedReason, "%s %s, the %s of the Cluster, does not exist: restore it, or delete the Cluster",
				lost.Kind, lost.Name, part.Key).For(lost.Kind, lost.Name).UntilUserActs()
			return
		}
		if worker := part.OfWorker(); part.Worker != "" && s.IsAwaited(worker) {
			if part.Key == worker {
				await(s, worker, p)
			}
			continue
		}
		action := decidePart(s, part, p)
		if action != nil && waiting[part.Key.Group()] {
			action = s.withoutTemplates(action)
		}
		switch {
		case action == nil:
		case part.Worker == "" && !isCreated: // the objects that the Cluster is created from come first
			p.Do(action)
		default:
			groups.add(part.Key, action)
		}
	}
	if len(p.Reads) > 0 {
		return
	}
	setReferences(s, desired, p)
	if len(groups.Each) > 0 {
		p.Do(groups)
	}
	for _, o := range desired.Obsolete { // only after their replacements could be written
		if o.GetDeletionTimestamp().IsZero() {
			p.Do(deleteObject{Object: o, Kind: kindOf(o), Name: o.GetName(), Why: "the topology does not have it"})
		}
	}
	decideOrphans(s, desired, p)
}

// isLost reports whether the Cluster references an object that does not exist.
func isLost(s snapshot, key topology.Key) bool {
	switch key.Role {
	case topology.InfraCluster:
		return s.Cluster.Spec.InfrastructureRef.IsDefined() && s.Live.InfraCluster.Unstructured == nil
	case topology.ControlPlane:
		return s.Cluster.Spec.ControlPlaneRef.IsDefined() && s.Live.ControlPlane.Unstructured == nil
	}
	return false
}

func lostReference(s snapshot, key topology.Key) clusterv1.ContractVersionedObjectReference {
	if key.Role == topology.InfraCluster {
		return s.Cluster.Spec.InfrastructureRef
	}
	return s.Cluster.Spec.ControlPlaneRef
}

// decidePart returns the action for a part. It returns nil if there is nothing to do or a read is needed first.
func decidePart(s snapshot, part *topology.Part, p *reconciler.Plan) reconciler.Action {
	isWorker := part.Role == topology.Deployment || part.Role == topology.Pool
	switch {
	case part.Live == nil && isWorker && len(s.Unseen) > 0 && !s.LookedUp:
		p.Reads = append(p.Reads, askWorkers{})
	case part.Live == nil && isWorker && len(s.Unseen) > 0:
		p.RecheckIn(unseenRecheck)
	case part.Live == nil:
		return create{Part: part}
	case part.Frozen || !part.Live.GetDeletionTimestamp().IsZero() || !differs(s, part):
	case !part.Role.IsTemplate():
		return apply{Part: part}
	case s.Unchanged[topology.Fingerprint(part.Live, part.Want)]:
		return apply{Part: part}
	case s.Undecided[part.Key] != nil:
	default:
		p.Reads = append(p.Reads, askChange{Part: part})
	}
	return nil
}

// differs reports whether applying the desired state may change the object.
func differs(s snapshot, part *topology.Part) bool {
	covered, err := kube.IsApplied(part.Live, fieldManager, part.Want.Object)
	if err == nil && covered {
		return false
	}
	last, tried := s.Attempts[part.Live.GetUID()]
	return !tried || last != topology.Fingerprint(part.Live, part.Want)
}

// setReferences sets the Cluster's references to the objects that were created for it, and the list of its workers.
func setReferences(s snapshot, desired topology.Desired, p *reconciler.Plan) {
	after := s.Cluster.DeepCopy()
	topology.SetReferences(after, desired)
	workers := s.WorkerRecord()
	infra, controlPlane := after.Spec.InfrastructureRef != s.Cluster.Spec.InfrastructureRef, after.Spec.ControlPlaneRef != s.Cluster.Spec.ControlPlaneRef
	if infra || controlPlane || !topology.HasLabels(s.Cluster) || workers != s.Cluster.Annotations[lifecycle.WorkersAnnotation] {
		p.Do(setClusterReferences{Desired: &desired, Workers: workers})
	}
}

// kindOf returns the kind of an object of the core.
func kindOf(o any) string {
	switch o.(type) {
	case *clusterv1.MachineDeployment:
		return "MachineDeployment"
	case *clusterv1.MachinePool:
		return "MachinePool"
	case *clusterv1.MachineHealthCheck:
		return "MachineHealthCheck"
	}
	return fmt.Sprintf("%T", o)
}

package rootcause

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// reasonTemplateMissing is the reason of a link to a template that does not exist.
const reasonTemplateMissing = "TemplateNotFound"

// createTemplate is the remedy of the reasons that report a template that cannot be read.
const createTemplate = "Create the template that the message names, or correct the reference to it"

// missingTemplate returns the chain to a template that an object refers to and that does not exist. It is nil if there is none,
// if the object needs no further Machines and does not report the template, or if the object has a more important problem.
func (s *search) missingTemplate(o object, problems []problem, plans bool) *Chain {
	if o.isDeleting() {
		return nil
	}
	for _, path := range referencePaths() {
		ref, ok := o.referenceAt(path...)
		if !ok || !strings.HasSuffix(ref.Kind, "Template") || !s.isMissing(ref) {
			continue
		}
		through := problems[0]
		i := slices.IndexFunc(problems, func(p problem) bool {
			return strings.Contains(p.Message, ref.String()) || remediesByReason[p.Reason].text == createTemplate
		})
		if i >= 0 {
			through = problems[i]
		}
		if problems[0].weight <= weightDeletion && i != 0 || i < 0 && !o.needsMachines() {
			continue
		}
		since := through.Since
		if since.IsZero() {
			since = o.since(time.Time{}, "", ref.String())
		}
		return &Chain{
			Links:  []Link{through.Link, {Object: ref, Reason: reasonTemplateMissing, Message: fmt.Sprintf("The template does not exist, and %s refers to it", o.ref), Since: since}},
			Remedy: o.templateRemedy(ref, strings.Join(path, "."), max(0, s.now.Sub(since))), Plans: plans, weight: weightUserTask,
		}
	}
	return nil
}

// isMissing reports whether an object is known not to exist.
func (s *search) isMissing(ref Ref) bool {
	_, found := s.graph.Get(ref)
	return !found && s.graph.IsMissing(ref)
}

// needsMachines reports whether the object has to create Machines: replicas are missing or out of date.
func (o object) needsMachines() bool {
	count := func(fallback int64, path ...string) int64 {
		if n, found, err := unstructured.NestedInt64(o.content.Object, path...); found && err == nil {
			return n
		}
		return fallback
	}
	current := count(0, "status", "replicas")
	return min(current, count(current, "status", "upToDateReplicas")) < count(1, "spec", "replicas")
}

// templatePatience is the time in which a template is usually created after the object that refers to it.
const templatePatience = 30 * time.Second

// templateRemedy returns the remedy for a template that has been missing for some time. The reference is corrected where it is
// determined: in the topology of the Cluster, in the MachineDeployment of a MachineSet, or in the object itself.
func (o object) templateRemedy(template Ref, field string, age time.Duration) Remedy {
	at, isOfTopology := o.specifiedBy()
	if isOfTopology {
		field = "spec.topology"
	}
	r := remedy{
		text:    fmt.Sprintf("Create %s, or correct %s of %s, which determines the reference", template, field, at),
		command: fillCommand(editText, object{ref: at, content: o.content}, ""), patience: templatePatience,
	}.within(age)
	return Remedy{Text: r.text, Command: r.command, Automatic: r.automatic}
}

// specifiedBy returns the object in which a user changes the specification of an object: the Cluster of a managed topology,
// the MachineDeployment or control plane of a Machine and its objects, or the object itself. It reports whether the object
// is part of a managed topology.
func (o object) specifiedBy() (Ref, bool) {
	labels, core := o.content.GetLabels(), clusterv1.GroupVersion.Group
	if _, isOfTopology := labels[clusterv1.ClusterTopologyOwnedLabel]; isOfTopology && o.cluster() != "" {
		return clusterRef(o.ref.Namespace, o.cluster()), true
	}
	for _, owner := range ownersOf(o.content) {
		if owner.Kind == "MachineDeployment" && owner.Group == core {
			return owner, false
		}
	}
	switch {
	case o.ref.Group == core && o.ref.Kind == "MachineDeployment":
	case labels[clusterv1.MachineDeploymentNameLabel] != "":
		return Ref{core, "MachineDeployment", o.ref.Namespace, labels[clusterv1.MachineDeploymentNameLabel]}, false
	case o.isOfControlPlane() && labels[clusterv1.MachineControlPlaneNameLabel] != "":
		return Ref{"controlplane.cluster.x-k8s.io", "KubeadmControlPlane", o.ref.Namespace, labels[clusterv1.MachineControlPlaneNameLabel]}, false
	}
	return o.ref, false
}

// simulatedFault returns the infrastructure of a Machine whose annotation simulates a problem of a control plane or its Machine.
// Messages about etcd and Pods do not name it, because they are the messages of real faults.
func (s *search) simulatedFault(o object, p problem) (Ref, bool) {
	if !strings.HasPrefix(p.Type, "Etcd") && !strings.HasSuffix(p.Type, "PodHealthy") && p.Type != "ControlPlaneComponentsHealthy" {
		return Ref{}, false
	}
	machines := []Ref{o.ref}
	if o.ref.Kind != "Machine" {
		machines = s.graph.Owned(o.ref)
	}
	for _, ref := range machines[:min(len(machines), maxChildren)] {
		u, found := s.graph.Get(ref)
		if !found || ref.Kind != "Machine" {
			continue
		}
		at := newObject(ref, u).annotated()
		infrastructure, found := s.graph.Get(at)
		if !found {
			continue
		}
		if _, has := infrastructure.GetAnnotations()[infrav1.ControlPlaneFaultsAnnotation]; has {
			return at, true
		}
	}
	return Ref{}, false
}

// faultTemplate returns the object from whose spec.template an object got the annotation that its message names: its
// template or its MachineDeployment.
func (s *search) faultTemplate(o object, message string) (Ref, bool) {
	annotation := annotationForm.FindString(message[:min(len(message), maxMentionText)])
	if annotation == "" {
		return Ref{}, false
	}
	own := o.content.GetAnnotations()
	kind, group, _ := strings.Cut(own[clusterv1.TemplateClonedFromGroupKindAnnotation], ".")
	owner, _ := o.specifiedBy()
	for _, ref := range []Ref{{group, kind, o.ref.Namespace, own[clusterv1.TemplateClonedFromNameAnnotation]}, owner} {
		if ref.Kind == "" || ref.Name == "" {
			continue
		}
		template, found := s.graph.Get(ref)
		if !found {
			continue
		}
		copied, _, _ := unstructured.NestedStringMap(template.Object, "spec", "template", "metadata", "annotations")
		if _, has := copied[annotation]; has {
			return ref, true
		}
	}
	return Ref{}, false
}

package admission

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// defaultMachineSet sets the cluster label, replicas, the deletion order, a selector if it is empty, and defaults in
// the Machine template.
func defaultMachineSet(in, old *clusterv1.MachineSet) (runtime.Object, bool) {
	out := in.DeepCopy()
	changed := defaultClusterLabel(&out.Labels, out.Spec.ClusterName)
	if out.Spec.Replicas == nil {
		var before *int32
		if old != nil {
			before = old.Spec.Replicas
		}
		out.Spec.Replicas = new(defaultReplicas(out.Annotations, before))
		changed = true
	}
	if out.Spec.Deletion.Order == "" {
		out.Spec.Deletion.Order = clusterv1.RandomMachineSetDeletionOrder
		changed = true
	}
	if isEmptySelector(out.Spec.Selector) && out.Name != "" {
		label := map[string]string{clusterv1.MachineSetNameLabel: contract.LabelValue(out.Name)}
		out.Spec.Selector.MatchLabels = label
		if out.Spec.Template.Labels == nil {
			out.Spec.Template.Labels = map[string]string{}
		}
		out.Spec.Template.Labels[clusterv1.MachineSetNameLabel] = label[clusterv1.MachineSetNameLabel]
		changed = true
	}
	if defaultMachineSpec(&out.Spec.Template.Spec) {
		changed = true
	}
	if !changed {
		return in, false
	}
	return out, true
}

func validateMachineSet(r Request, set *clusterv1.MachineSet) Response {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if old, isUpdate := r.Old.(*clusterv1.MachineSet); isUpdate {
		errs = append(errs, validateSame(old.Spec.ClusterName, set.Spec.ClusterName, spec.Child("clusterName"))...)
	}
	errs = append(errs, validateReplicas(r, set.Spec.Replicas, replicasOf(r.Old), spec.Child("replicas"))...)
	errs = append(errs, validateAutoscaler(r)...)
	errs = append(errs, validateSkippedChecks(set.Annotations)...)
	if isEmptySelector(set.Spec.Selector) {
		errs = append(errs, field.Required(spec.Child("selector"), "select the Machines by labels of the template"))
	}
	errs = append(errs, validateTemplateSelector(set.Spec.Selector, set.Spec.Template.Labels, spec)...)
	errs = append(errs, validateMachineNaming(set.Spec.MachineNaming, spec.Child("machineNaming", "template"))...)
	errs = append(errs, validateMachineTemplate(r, set)...)
	return Response{Errors: errs}
}

// validateMachineTemplate validates spec.template.
func validateMachineTemplate(r Request, set *clusterv1.MachineSet) field.ErrorList {
	path := field.NewPath("spec", "template")
	template := set.Spec.Template
	spec := template.Spec
	var errs field.ErrorList
	if spec.ClusterName != set.Spec.ClusterName {
		errs = append(errs, field.Invalid(path.Child("spec", "clusterName"), spec.ClusterName, "must be the same as spec.clusterName"))
	}
	_, controlPlane := template.Labels[clusterv1.MachineControlPlaneLabel]
	errs = append(errs, template.ObjectMeta.Validate(path.Child("metadata"))...)
	errs = append(errs, validateBootstrap(spec.Bootstrap, path.Child("spec", "bootstrap"))...)
	errs = append(errs, validateVersion(spec.Version, path.Child("spec", "version"))...)
	return append(errs, validateTaints(spec.Taints, taintRules{controlPlane, r.Gates}, path.Child("spec", "taints"))...)
}

func isEmptySelector(s metav1.LabelSelector) bool {
	return len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// validateSkippedChecks validates the annotation that skips preflight checks.
func validateSkippedChecks(annotations map[string]string) field.ErrorList {
	text, ok := annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation]
	if !ok || text == "" {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(clusterv1.MachineSetSkipPreflightChecksAnnotation)
	known := preflightChecks()
	var errs field.ErrorList
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); !slices.Contains(known, name) {
			errs = append(errs, field.NotSupported(path, name, known))
		}
	}
	return errs
}

// preflightChecks returns the names of the checks that may be skipped.
func preflightChecks() []string {
	return []string{
		string(clusterv1.MachineSetPreflightCheckAll), string(clusterv1.MachineSetPreflightCheckControlPlaneIsStable),
		string(clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew), string(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew),
		string(clusterv1.MachineSetPreflightCheckKubernetesVersionSkew),
	}
}

package admission

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// defaultMachineSet sets the cluster label, replicas, the deletion order, a selector if it is empty, and defaults in
// the Machine template, for [Default]. They are Cluster API's defaults.
func defaultMachineSet(r Request, set *clusterv1.MachineSet) {
	defaultClusterLabel(set, set.Spec.ClusterName)
	setReplicas(&set.Spec.Replicas, set.Annotations, r.Old)
	set.Spec.Deletion.Order = cmp.Or(set.Spec.Deletion.Order, clusterv1.RandomMachineSetDeletionOrder)
	if isEmptySelector(set.Spec.Selector) && set.Name != "" {
		label := map[string]string{clusterv1.MachineSetNameLabel: contract.LabelValue(set.Name)}
		set.Spec.Selector.MatchLabels = label
		addLabels(&set.Spec.Template.Labels, label)
	}
	defaultMachineSpec(&set.Spec.Template.Spec)
}

// validateMachineSet validates a MachineSet for [Validate], on create and update.
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
	template := spec.Child("template")
	if cluster := set.Spec.Template.Spec.ClusterName; cluster != set.Spec.ClusterName {
		errs = append(errs, field.Invalid(template.Child("spec", "clusterName"), cluster, "must be the same as spec.clusterName"))
	}
	_, controlPlane := set.Spec.Template.Labels[clusterv1.MachineControlPlaneLabel]
	errs = append(errs, validateMachineTemplate(set.Spec.Template, taintRules{controlPlane, r.Gates}, template)...)
	return Response{Errors: errs}
}

// validateMachineTemplate validates the spec.template of several kinds.
func validateMachineTemplate(template clusterv1.MachineTemplateSpec, rules taintRules, path *field.Path) field.ErrorList {
	errs := template.ObjectMeta.Validate(path.Child("metadata"))
	errs = append(errs, validateBootstrap(template.Spec.Bootstrap, path.Child("spec", "bootstrap"))...)
	errs = append(errs, validateVersion(template.Spec.Version, path.Child("spec", "version"))...)
	return append(errs, validateTaints(template.Spec.Taints, rules, path.Child("spec", "taints"))...)
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

// preflightChecks returns the names of the checks that may be skipped, which Cluster API defines.
func preflightChecks() []string {
	return []string{
		string(clusterv1.MachineSetPreflightCheckAll), string(clusterv1.MachineSetPreflightCheckControlPlaneIsStable),
		string(clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew), string(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew),
		string(clusterv1.MachineSetPreflightCheckKubernetesVersionSkew),
	}
}

package admission

import (
	"fmt"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/naming"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/variables"
	"github.com/slipwayhq/slipway/internal/version"
)

// classRequest is a write request for a ClusterClass. [validateClusterClass] creates it.
type classRequest struct {
	New *clusterv1.ClusterClass
	// Old is nil on create.
	Old *clusterv1.ClusterClass
	// Users holds the Clusters that use the class, in any namespace.
	Users []clusterv1.Cluster
	// RuntimeSDK is true if extensions are called.
	RuntimeSDK bool
}

// validateClass validates the spec of a ClusterClass on create and update. Patches are in classpatches.go, changes of a
// class that Clusters use in classchange.go. [validateClusterClass] calls it for [Validate].
func validateClass(r classRequest) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateParts(r.New, spec)
	errs = append(errs, validateKubernetesVersions(r.New.Spec.KubernetesVersions, spec.Child("kubernetesVersions"))...)
	errs = append(errs, validateUpgradeExtension(r, spec.Child("upgrade", "external"))...)
	var old []clusterv1.ClusterClassVariable
	if r.Old != nil {
		old = r.Old.Spec.Variables
	}
	errs = append(errs, variables.ValidateDefinitions(r.New.Spec.Variables, old, spec.Child("variables"))...)
	errs = append(errs, validatePatches(r, spec.Child("patches"))...)
	if r.Old != nil {
		errs = append(errs, checkCompatible(r.Old, r.New)...)
		errs = append(errs, validateUse(r, spec)...)
	}
	return errs
}

// refuseClassDeletion returns the reason why a class may not be deleted, or an empty string. [RefuseDeletion] calls it.
func refuseClassDeletion(class *clusterv1.ClusterClass, users []clusterv1.Cluster) string {
	if len(users) == 0 {
		return ""
	}
	return fmt.Sprintf("ClusterClass %s is used by %s: delete them, or change their class first", class.Name, namesOf(users))
}

// namesOf lists the names of the Clusters, up to a limit.
func namesOf(clusters []clusterv1.Cluster) string {
	const most = 5
	var names []string
	for _, c := range clusters {
		names = append(names, c.Namespace+"/"+c.Name)
	}
	slices.Sort(names)
	if len(names) <= most {
		return "Clusters " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("Clusters %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// part holds the common fields of the parts of a ClusterClass: infrastructure, control plane and classes of workers.
// [partsOf] creates them for the rules that apply to all parts. A new name in templates must also be added to the list
// in validateParts.
type part struct {
	path      *field.Path
	templates map[string]clusterv1.ClusterClassTemplateReference // by field name
	metadata  clusterv1.ObjectMeta
	naming    string
	values    naming.Values
}

// partsOf returns the parts of a class.
func partsOf(class *clusterv1.ClusterClass, spec *field.Path) []part {
	const example = "example"
	cluster := map[string]string{"name": example}
	s := class.Spec
	out := []part{
		{path: spec.Child("infrastructure"), naming: s.Infrastructure.Naming.Template, values: naming.Values{"cluster": cluster},
			templates: map[string]clusterv1.ClusterClassTemplateReference{"templateRef": s.Infrastructure.TemplateRef}},
		{path: spec.Child("controlPlane"), naming: s.ControlPlane.Naming.Template, values: naming.Values{"cluster": cluster}, metadata: s.ControlPlane.Metadata,
			templates: map[string]clusterv1.ClusterClassTemplateReference{
				"templateRef": s.ControlPlane.TemplateRef, "machineInfrastructure.templateRef": s.ControlPlane.MachineInfrastructure.TemplateRef,
			}},
	}
	for _, c := range topology.WorkerClasses(class) {
		values := naming.Values{"cluster": cluster, "machineDeployment": {"topologyName": example}}
		if c.Role == topology.Pool {
			values = naming.Values{"cluster": cluster, "machinePool": {"topologyName": example}}
		}
		out = append(out, part{path: c.Path(spec), metadata: c.Metadata, naming: c.Naming, values: values,
			templates: map[string]clusterv1.ClusterClassTemplateReference{
				"bootstrap.templateRef": c.Bootstrap, "infrastructure.templateRef": c.Infrastructure,
			}})
	}
	return out
}

func validateParts(class *clusterv1.ClusterClass, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, p := range partsOf(class, spec) {
		for _, name := range []string{"templateRef", "machineInfrastructure.templateRef", "bootstrap.templateRef", "infrastructure.templateRef"} {
			if ref, ok := p.templates[name]; ok && ref.Kind != "" && (!strings.HasSuffix(ref.Kind, clusterv1.TemplateSuffix) || ref.Kind == clusterv1.TemplateSuffix) {
				errs = append(errs, field.Invalid(p.path.Child(name, "kind"), ref.Kind, "must be the kind of a template, which ends with Template"))
			}
		}
		errs = append(errs, validateMetadata(p.metadata, p.path.Child("metadata"))...)
		errs = append(errs, validateNaming(p.naming, p.values, naming.ParseAny, p.path.Child("naming", "template"))...)
	}
	errs = append(errs, validateWorkerClassNames(class, spec)...)
	control := class.Spec.ControlPlane
	if control.HealthCheck.IsDefined() && !control.MachineInfrastructure.TemplateRef.IsDefined() {
		errs = append(errs, field.Forbidden(spec.Child("controlPlane", "healthCheck"),
			"can be set only with machineInfrastructure: without it the control plane has no Machines"))
	}
	return errs
}

// validateWorkerClassNames checks that the names of worker classes are unique.
func validateWorkerClassNames(class *clusterv1.ClusterClass, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[topology.Key]bool{}
	for _, c := range topology.WorkerClasses(class) {
		if seen[c.Key] {
			errs = append(errs, field.Duplicate(c.Path(spec).Child("class"), c.Worker))
		}
		seen[c.Key] = true
	}
	return errs
}

func validateMetadata(m clusterv1.ObjectMeta, path *field.Path) field.ErrorList {
	return append(metav1validation.ValidateLabels(m.Labels, path.Child("labels")),
		apivalidation.ValidateAnnotations(m.Annotations, path.Child("annotations"))...)
}

// validateKubernetesVersions checks that the versions that upgrades pass through ascend without skipping a minor
// version.
func validateKubernetesVersions(versions []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var before version.Version
	for i, text := range versions {
		now, err := parseVersion(text)
		if err != nil {
			return append(errs, field.Invalid(path.Index(i), text, err.Error()))
		}
		if i > 0 {
			switch {
			case slices.Contains(versions[:i], text):
				errs = append(errs, field.Duplicate(path.Index(i), text))
			case now.Version.LT(before.Version): // builds of a version have no order
				errs = append(errs, field.Invalid(path.Index(i), text, "must be newer than "+versions[i-1]+", which is before it"))
			case now.Major != before.Major || now.Minor > before.Minor+1:
				errs = append(errs, field.Invalid(path.Index(i), text, fmt.Sprintf("must be at most one minor version newer than %s: add the versions between them", versions[i-1])))
			}
		}
		before = now
	}
	return errs
}

// parseVersion parses a Kubernetes version with a leading v.
func parseVersion(text string) (version.Version, error) {
	const form = "must be a semantic version with a leading v, for example v1.36.3"
	if !strings.HasPrefix(text, "v") || !version.Valid(text) {
		return version.Version{}, fmt.Errorf("%s", form)
	}
	v, err := version.Parse(text)
	if err != nil {
		return version.Version{}, fmt.Errorf("%s", form)
	}
	return v, nil
}

func validateUpgradeExtension(r classRequest, path *field.Path) field.ErrorList {
	extension := r.New.Spec.Upgrade.External.GenerateUpgradePlanExtension
	switch {
	case extension == "":
	case !r.RuntimeSDK:
		return field.ErrorList{field.Forbidden(path, "requires the feature gate RuntimeSDK")}
	case len(r.New.Spec.KubernetesVersions) > 0:
		return field.ErrorList{field.Forbidden(path, "cannot be set together with kubernetesVersions: both define the versions that an upgrade passes")}
	}
	return nil
}

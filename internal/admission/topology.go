package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// TopologyRequest is a write request for a Cluster with a topology (spec.topology), with the state of other objects
// that its rules read. validateTopology (cluster.go) creates it for [Validate]. Package manager/webhook creates one
// without these objects, and reads those that ChangesVersion and ChangesClass require.
type TopologyRequest struct {
	New *clusterv1.Cluster
	// Old is nil on create.
	Old *clusterv1.Cluster
	// Class of the Cluster; nil if it does not exist. Definitions has its variables.
	Class       *clusterv1.ClusterClass
	Definitions *variables.Definitions
	// OldClass is the previous class of the Cluster, if the class changes; nil if it does not exist.
	OldClass *clusterv1.ClusterClass
	// Upgrading lists the parts of the Cluster that do not run its version yet; it is read if the version changes.
	Upgrading []string
}

// IsReconciled reports whether the variables in the status of a class are up to date with its generation. Otherwise
// variables of Clusters cannot be validated yet. defaultCluster sets no variables before that, and package
// manager/webhook waits a moment for it when a Cluster is created.
func IsReconciled(class *clusterv1.ClusterClass) bool {
	if class.Status.ObservedGeneration != class.Generation {
		return false
	}
	return slices.ContainsFunc(class.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == clusterv1.ClusterClassVariablesReadyCondition && c.Status == "True"
	})
}

// ChangesVersion reports whether a request changes the version of an existing topology.
func (r TopologyRequest) ChangesVersion() bool {
	return r.Old != nil && r.Old.Spec.Topology.IsDefined() && r.Old.Spec.Topology.Version != r.New.Spec.Topology.Version
}

// ChangesClass reports whether a request changes the class of an existing topology.
func (r TopologyRequest) ChangesClass() bool {
	return r.Old != nil && r.Old.Spec.Topology.IsDefined() && topology.ClassKey(r.Old) != topology.ClassKey(r.New)
}

// validateManagedTopology validates the topology of a Cluster, as part of the Cluster's validation on create and
// update.
func validateManagedTopology(r TopologyRequest) Response {
	var v Response
	path := field.NewPath("spec", "topology")
	if !r.New.DeletionTimestamp.IsZero() {
		return v
	}
	v.refuse(validateConcurrency(r.New)...)
	v.refuse(validateTopologyParts(r.New.Spec.Topology, path)...)
	v.refuse(r.annotations(path)...)
	if r.Old != nil && !r.Old.Spec.Topology.IsDefined() {
		if _, allowed := r.New.Annotations[clusterv1.ClusterTopologyUnsafeUpdateClassNameAnnotation]; !allowed {
			v.refuse(field.Forbidden(path.Child("classRef"), "cannot be set on an existing Cluster without a topology: create a new Cluster, or set the annotation "+
				clusterv1.ClusterTopologyUnsafeUpdateClassNameAnnotation+" after you have prepared its objects"))
		}
	}
	r.version(&v, path.Child("version"))
	if !r.classExists(&v, path.Child("classRef")) {
		return v
	}
	if r.ChangesClass() {
		r.validateClassChange(&v, path.Child("classRef"))
	}
	v.refuse(validateWithClass(r.New.Spec.Topology, r.Class, path)...)
	if n := r.New.Spec.Topology.ControlPlane.Replicas; n != nil && topology.LacksNodes(r.Class.Spec.ControlPlane.TemplateRef) &&
		(r.Old == nil || !equality.Semantic.DeepEqual(n, r.Old.Spec.Topology.ControlPlane.Replicas)) {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%s has no effect, because control planes of ClusterClass %s have no nodes; remove it", path.Child("controlPlane", "replicas"), r.Class.Name))
	}
	if !IsReconciled(r.Class) {
		if !IsPaused(r.New) {
			v.Warnings = append(v.Warnings, fmt.Sprintf("the variables of ClusterClass %s/%s are not reconciled yet; the variables of the Cluster are validated and defaulted after that",
				r.Class.Namespace, r.Class.Name))
		}
		return v
	}
	var old *clusterv1.Topology
	if r.Old != nil {
		old = &r.Old.Spec.Topology
	}
	v.refuse(r.Definitions.Validate(&r.New.Spec.Topology, old, path)...)
	return v
}

// IsPaused reports whether reconciliation of a Cluster is paused. A paused Cluster may just have been moved together
// with its class, so the webhook does not wait for the class.
func IsPaused(cluster *clusterv1.Cluster) bool { return ptr.Deref(cluster.Spec.Paused, false) }

// classExists reports whether the class exists. On create, a missing class is only a warning, because it may be created
// after the Cluster.
func (r TopologyRequest) classExists(v *Response, path *field.Path) bool {
	if r.Class != nil {
		return true
	}
	key := topology.ClassKey(r.New)
	if r.Old == nil {
		v.Warnings = append(v.Warnings, fmt.Sprintf("ClusterClass %s does not exist; create it, or the Cluster remains without objects (\"kubectl get clusterclasses -n %s\" lists the existing classes)", key, key.Namespace))
	} else {
		v.refuse(field.Invalid(path, key.String(), "ClusterClass does not exist: create it, then change the topology"))
	}
	return false
}

// validateClassChange validates a change to another class.
func (r TopologyRequest) validateClassChange(v *Response, path *field.Path) {
	if r.OldClass == nil {
		v.refuse(field.Forbidden(path, fmt.Sprintf("cannot be changed while the current ClusterClass %s does not exist, because the new one cannot be compared with it",
			topology.ClassKey(r.Old))))
		return
	}
	for _, err := range checkCompatible(r.OldClass, r.Class) {
		v.refuse(field.Forbidden(path, fmt.Sprintf("ClusterClass %s/%s is not compatible with the current one: %s", r.Class.Namespace, r.Class.Name, err.Error())))
	}
}

func validateConcurrency(cluster *clusterv1.Cluster) field.ErrorList {
	const name = clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation
	text, set := cluster.Annotations[name]
	if !set {
		return nil
	}
	if n, err := strconv.Atoi(text); err != nil || n < 1 {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(name), text, "must be a whole number, 1 or more")}
	}
	return nil
}

// validateTopologyParts validates fields that do not depend on the class.
func validateTopologyParts(t clusterv1.Topology, path *field.Path) field.ErrorList {
	errs := validateMetadata(t.ControlPlane.Metadata, path.Child("controlPlane", "metadata"))
	errs = append(errs, validateTopologyReplicas(t.ControlPlane.Replicas, path.Child("controlPlane", "replicas"))...)
	if t.ClassRef.Name == "" {
		errs = append(errs, field.Required(path.Child("classRef", "name"), "a topology needs a ClusterClass"))
	}
	seen := map[topology.Key]bool{}
	for _, w := range topology.Workers(t) {
		at := w.Path(path)
		if seen[w.Key] {
			errs = append(errs, field.Duplicate(at.Child("name"), w.Worker))
		}
		seen[w.Key] = true
		errs = append(errs, validateTopologyReplicas(w.Replicas, at.Child("replicas"))...)
		if w.Role == topology.Deployment && w.Replicas != nil && isAutoscaled(w.Metadata.Annotations) {
			errs = append(errs, replicasOfAutoscaler(at))
		}
		errs = append(errs, validateMetadata(w.Metadata, at.Child("metadata"))...)
	}
	return errs
}

func validateTopologyReplicas(replicas *int32, path *field.Path) field.ErrorList {
	if replicas != nil && *replicas < 0 {
		return field.ErrorList{field.Invalid(path, *replicas, "must be 0 or more")}
	}
	return nil
}

func replicasOfAutoscaler(at *field.Path) *field.Error {
	return field.Forbidden(at.Child("replicas"), "cannot be set together with the annotations of the autoscaler, which sets replicas; remove one of them")
}

// validateWithClass validates the topology against the class.
func validateWithClass(t clusterv1.Topology, class *clusterv1.ClusterClass, path *field.Path) field.ErrorList {
	errs := validateControlPlaneCheck(t.ControlPlane.HealthCheck, class, path.Child("controlPlane", "healthCheck"))
	for _, w := range topology.Workers(t) {
		at := w.Path(path)
		c := topology.FindWorkerClass(class, w.Role, w.Class)
		if c == nil {
			errs = append(errs, unknownClass(class, w, at.Child("class")))
			continue
		}
		if isEnabledWithoutCheck(w, *c) {
			errs = append(errs, field.Forbidden(at.Child("healthCheck", "enabled"), undefinedCheck))
		}
		if isSetDespiteAutoscaler(w, *c) && !isAutoscaled(w.Metadata.Annotations) {
			errs = append(errs, replicasOfAutoscaler(at))
		}
	}
	return errs
}

const undefinedCheck = "can be true only if the topology or the class defines the health check"

// isEnabledWithoutCheck reports whether a health check is enabled that neither the topology nor the class defines.
func isEnabledWithoutCheck(w topology.Worker, c topology.WorkerClass) bool {
	return ptr.Deref(w.HealthCheck.Enabled, false) && !w.HealthCheck.IsDefined() && !c.HealthCheck.IsDefined()
}

// isSetDespiteAutoscaler reports whether a MachineDeployment sets replicas although its class has limits of the
// autoscaler.
func isSetDespiteAutoscaler(w topology.Worker, c topology.WorkerClass) bool {
	return w.Role == topology.Deployment && w.Replicas != nil && isAutoscaled(c.Metadata.Annotations)
}

// unknownClass returns an error that lists the existing classes of the kind.
func unknownClass(class *clusterv1.ClusterClass, w topology.Worker, path *field.Path) *field.Error {
	var names []string
	for _, c := range topology.WorkerClasses(class) {
		if c.Role == w.Role {
			names = append(names, c.Worker)
		}
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	return field.Invalid(path, w.Class, fmt.Sprintf("ClusterClass %s has no such class of %ss; it has: %s", class.Name, w.Role, strings.Join(names, ", ")))
}

func validateControlPlaneCheck(check clusterv1.ControlPlaneTopologyHealthCheck, class *clusterv1.ClusterClass, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if (check.IsDefined() || ptr.Deref(check.Enabled, false)) && !class.Spec.ControlPlane.MachineInfrastructure.TemplateRef.IsDefined() {
		errs = append(errs, field.Forbidden(path, "can be set only if the class has controlPlane.machineInfrastructure: without it the control plane has no Machines"))
	}
	if ptr.Deref(check.Enabled, false) && !check.IsDefined() && !class.Spec.ControlPlane.HealthCheck.IsDefined() {
		errs = append(errs, field.Forbidden(path.Child("enabled"), undefinedCheck))
	}
	return errs
}

// disableCheckHint describes how to turn off the check if an upgrade never completes.
const disableCheckHint = "; if it never completes, the annotation " + clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation + " on the Cluster disables this check"

// version validates the version of a topology, and changes of it.
func (r TopologyRequest) version(v *Response, path *field.Path) {
	text := r.New.Spec.Topology.Version
	if text == "" {
		v.refuse(field.Required(path, "a topology needs a Kubernetes version, for example v1.36.3"))
		return
	}
	now, err := parseVersion(text)
	if err != nil {
		v.refuse(field.Invalid(path, text, err.Error()))
		return
	}
	if !r.ChangesVersion() {
		if r.Old == nil || r.ChangesClass() {
			r.validateListedVersion(v, path)
		}
		return
	}
	if _, unsafe := r.New.Annotations[clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation]; unsafe {
		v.Warnings = append(v.Warnings, fmt.Sprintf("the change of the version from %s to %s is not checked, because of the annotation %s; remove it afterwards",
			r.Old.Spec.Topology.Version, text, clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation))
		return
	}
	r.validateListedVersion(v, path)
	before, err := parseVersion(r.Old.Spec.Topology.Version)
	if err != nil {
		return // the current version is invalid and cannot be compared
	}
	switch {
	case now.Major > before.Major:
		v.refuse(field.Invalid(path, text, "must have the major version of "+before.String()+", the current version"))
	case now.Compare(before) < 0:
		v.refuse(field.Invalid(path, text, "must not be older than "+before.String()+", the current version: Kubernetes cannot be downgraded"))
	case now.Minor > before.Minor+1 && !r.hasUpgradePlans():
		v.refuse(field.Invalid(path, text, fmt.Sprintf("must be at most one minor version newer than %s; to go further, the ClusterClass needs kubernetesVersions or an extension that plans upgrades",
			before)))
	}
	switch {
	case len(r.Upgrading) > 0:
		v.refuse(field.Forbidden(path, fmt.Sprintf("cannot be changed while the Cluster is upgrading to %s: waiting for %s%s", before, strings.Join(r.Upgrading, ", "), disableCheckHint)))
	case lifecycle.IsPending(r.Old, lifecycle.AfterClusterUpgrade):
		v.refuse(field.Forbidden(path, fmt.Sprintf("cannot be changed before the upgrade to %s is complete, including hook AfterClusterUpgrade; see condition TopologyReconciled%s", before, disableCheckHint)))
	}
}

// hasUpgradePlans reports whether the class defines upgrade paths across several minor versions.
func (r TopologyRequest) hasUpgradePlans() bool {
	return r.Class != nil && (len(r.Class.Spec.KubernetesVersions) > 0 || r.Class.Spec.Upgrade.External.GenerateUpgradePlanExtension != "")
}

// validateListedVersion checks that the class lists the version, if it has a list of versions.
func (r TopologyRequest) validateListedVersion(v *Response, path *field.Path) {
	if r.Class == nil || len(r.Class.Spec.KubernetesVersions) == 0 || slices.Contains(r.Class.Spec.KubernetesVersions, r.New.Spec.Topology.Version) {
		return
	}
	v.refuse(field.NotSupported(path, r.New.Spec.Topology.Version, r.Class.Spec.KubernetesVersions))
}

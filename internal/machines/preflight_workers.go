package machines

import (
	"fmt"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/version"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// PreflightWorkers is the input of the checks for worker Machines. The MachineSet controller runs them before it
// creates, replaces or transfers a Machine.
type PreflightWorkers struct {
	Cluster *clusterv1.Cluster
	// ControlPlane is the object that spec.controlPlaneRef of the Cluster references.
	ControlPlane contract.ControlPlaneView
	// Owner describes the owner of the Machines in messages, such as "the MachineSet".
	Owner string
	// Machine is the spec of the Machines.
	Machine clusterv1.MachineSpec
}

// WorkerChecks returns the checks for worker Machines. Cluster API defines the checks and their names; Kubernetes and
// kubeadm define the version skew.
//
//	ControlPlaneIsStable     not being provisioned or upgraded, and the topology has no upgrade pending
//	KubernetesVersionSkew    not newer than the running control plane, and at most 3 minor versions older
//	KubeadmVersionSkew       the minor version of the running control plane, if kubeadm joins the Machine
//	ControlPlaneVersionSkew  the version in the control plane's spec, in Clusters with a topology
//
// The checks compare with the running versions in the control plane's status, because these determine what can join
// it, while the version in its spec may never be reached. Until a version runs, the checks use the spec. The MachineSet
// controller runs them.
func WorkerChecks() PreflightChecks[PreflightVersions] {
	return PreflightChecks[PreflightVersions]{
		{Name: string(clusterv1.MachineSetPreflightCheckControlPlaneIsStable), Blocker: PreflightVersions.unstable},
		{Name: string(clusterv1.MachineSetPreflightCheckKubernetesVersionSkew), Blocker: PreflightVersions.kubernetesSkew},
		{Name: string(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew), Blocker: PreflightVersions.kubeadmSkew},
		{Name: string(clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew), Blocker: PreflightVersions.controlPlaneSkew},
	}
}

// PreflightBlocker is a reason not to create a Machine now. The MachineSet controller waits for each of them.
type PreflightBlocker struct {
	Message string
	// Invalid is set if a user has to correct the input. All other blockers end when the control plane changes.
	Invalid bool
}

// Blockers returns why a worker Machine must not be created now. It returns nil if no checks are selected, the
// Cluster has no control plane object, or the control plane has no version. The MachineSet controller calls it before
// it creates Machines.
func (w PreflightWorkers) Blockers(checks PreflightChecks[PreflightVersions]) []PreflightBlocker {
	ref := w.Cluster.Spec.ControlPlaneRef
	name := ref.Kind + " " + ref.Name
	switch {
	case len(checks) == 0 || !ref.IsDefined():
		return nil
	case w.ControlPlane.Problem != "":
		return []PreflightBlocker{{w.ControlPlane.Problem, true}}
	case w.ControlPlane.Presence() == contract.Missing:
		return []PreflightBlocker{{name + " does not exist", false}}
	}
	v := PreflightVersions{PreflightWorkers: w, name: name}
	found, problem := v.read()
	if problem != "" {
		return []PreflightBlocker{{problem, true}}
	}
	if !found {
		return nil
	}
	var invalid []PreflightBlocker
	if text := w.Machine.Version; text != "" {
		var err error
		if v.machine, err = version.Parse(text); err != nil {
			invalid = []PreflightBlocker{{fmt.Sprintf("Version %q of %s is not a semantic version", text, w.Owner), true}}
		}
		v.hasMachine = err == nil
	}
	var out []PreflightBlocker
	for _, message := range checks.Blockers(v) {
		out = append(out, PreflightBlocker{message, false})
	}
	return append(out, invalid...)
}

// PreflightVersions is the input of the checks with the versions that they compare.
type PreflightVersions struct {
	PreflightWorkers
	// name is the kind and name of the control plane.
	name string
	// spec is the version in the control plane's spec. span is the range of running versions; it equals spec while
	// nothing runs.
	spec version.Version
	span version.Span
	runs bool
	// machine is the version of the Machines, if they have one.
	machine    version.Version
	hasMachine bool
}

// read reads the versions of the control plane; found is false if it has none.
func (v *PreflightVersions) read() (found bool, problem string) {
	text := v.ControlPlane.SpecVersion.Or("")
	if text == "" {
		return false, ""
	}
	var err error
	if v.spec, err = version.Parse(text); err != nil {
		return true, fmt.Sprintf("Version %q of %s is not a semantic version", text, v.name)
	}
	v.span = version.Span{Lowest: v.spec, Highest: v.spec}
	for _, status := range v.ControlPlane.Versions.Or(nil) {
		running, err := version.Parse(status.Version)
		if err != nil {
			return true, fmt.Sprintf("Version %q that %s runs is not a semantic version", status.Version, v.name)
		}
		if !v.runs {
			v.span, v.runs = version.Span{Lowest: running, Highest: running}, true
		}
		v.span = v.span.Include(running)
	}
	return true, ""
}

func (v PreflightVersions) unstable() string {
	if message := v.pendingUpgrade(); message != "" {
		return message
	}
	switch {
	case !v.runs:
		return v.name + " is being provisioned"
	// A suffix that a distribution adds is not a prerelease.
	case v.span.Lowest.Compare(v.spec) < 0 && !version.Runs(v.span.Lowest.String(), v.spec.String()):
		return fmt.Sprintf("%s is being upgraded from %s to %s", v.name, v.span.Lowest, v.spec)
	}
	return ""
}

// pendingUpgrade returns a message if the topology of the Cluster requests another version than the control plane's
// spec.
func (v PreflightVersions) pendingUpgrade() string {
	topology := v.Cluster.Spec.Topology
	step := v.Cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]
	if !topology.IsDefined() || v.isSpec(topology.Version) || v.isSpec(step) {
		return ""
	}
	next := topology.Version
	if step != "" {
		next = step
	}
	return fmt.Sprintf("%s is about to be upgraded to %s", v.name, next)
}

// isSpec reports whether a version equals the version in the control plane's spec.
func (v PreflightVersions) isSpec(text string) bool {
	other, err := version.Parse(text)
	return err == nil && other.Compare(v.spec) == 0
}

// running describes one of the running versions of the control plane, and the version in its spec if the minor
// version differs.
func (v PreflightVersions) running(one version.Version) string {
	if one.SameMinor(v.spec) {
		return fmt.Sprintf("version %s of %s", one, v.name)
	}
	return fmt.Sprintf("version %s, which %s runs while its spec requires %s", one, v.name, v.spec)
}

func (v PreflightVersions) kubernetesSkew() string {
	switch {
	case !v.hasMachine:
		return ""
	case v.span.IsOlderThan(v.machine):
		return fmt.Sprintf("Version %s of %s is newer than %s", v.machine, v.Owner, v.running(v.span.Lowest))
	case v.span.IsTooNewFor(v.machine):
		return fmt.Sprintf("Version %s of %s is more than %d minor versions older than %s",
			v.machine, v.Owner, version.MaxKubeletLag, v.running(v.span.Highest))
	}
	return ""
}

func (v PreflightVersions) kubeadmSkew() string {
	ref := v.Machine.Bootstrap.ConfigRef
	if !v.hasMachine || ref.Kind != "KubeadmConfigTemplate" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return ""
	}
	if other, differs := v.span.OtherMinor(v.machine); differs {
		return fmt.Sprintf("Version %s of %s must have the minor version of the control plane that it joins with kubeadm: %s", v.machine, v.Owner, v.running(other))
	}
	return ""
}

func (v PreflightVersions) controlPlaneSkew() string {
	if !v.hasMachine || !v.Cluster.Spec.Topology.IsDefined() || v.machine.Compare(v.spec) == 0 {
		return ""
	}
	return fmt.Sprintf("Version %s of %s is not version %s of %s: it will be replaced soon", v.machine, v.Owner, v.spec, v.name)
}

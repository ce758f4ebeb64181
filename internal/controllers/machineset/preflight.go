package machineset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Checks are all preflight checks, in the order in which they are made.
func Checks() []clusterv1.MachineSetPreflightCheck {
	return []clusterv1.MachineSetPreflightCheck{
		clusterv1.MachineSetPreflightCheckControlPlaneIsStable, clusterv1.MachineSetPreflightCheckKubernetesVersionSkew,
		clusterv1.MachineSetPreflightCheckKubeadmVersionSkew, clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew,
	}
}

// asksPreflight reports whether preflight checks may be asked for: Machines are missing, or unhealthy.
func asksPreflight(s Snapshot) bool { return missing(s) > 0 || len(unhealthy(s)) > 0 }

// preflight returns what speaks against making or replacing a Machine now (MS-12); nothing where none shall be made,
// or the Cluster has no control plane object, or that has no version (MS-17).
//
//	ControlPlaneIsStable     not provisioning, not upgrading, no upgrade pending in the topology                MS-13
//	KubernetesVersionSkew    not newer than the control plane, and at most 3 minor versions older (2 before     MS-14
//	                         v1.28)
//	KubeadmVersionSkew       the control plane's minor version, where kubeadm boots the Machine                 MS-15
//	ControlPlaneVersionSkew  the control plane's version, in Clusters with a topology                           MS-16
func preflight(s Snapshot) []string {
	if s.Cluster == nil || !s.Cluster.Spec.ControlPlaneRef.IsDefined() || !asksPreflight(s) || len(active(s)) == 0 {
		return nil
	}
	ref := s.Cluster.Spec.ControlPlaneRef
	switch {
	case s.ControlPlaneProblem != "":
		return []string{s.ControlPlaneProblem}
	case s.ControlPlane == nil:
		return []string{fmt.Sprintf("%s %s does not exist", ref.Kind, ref.Name)}
	}
	text := s.ControlPlane.SpecVersion.Or("")
	if text == "" {
		return nil
	}
	plane, err := parse(text)
	if err != nil {
		return []string{fmt.Sprintf("version %q of %s %s is not a semantic version", text, ref.Kind, ref.Name)}
	}
	c := checked{Snapshot: s, name: ref.Kind + " " + ref.Name, text: text, plane: plane}
	return c.run()
}

// active are the checks that are neither turned off for all MachineSets nor for this one (MS-17).
func active(s Snapshot) []clusterv1.MachineSetPreflightCheck {
	skipped := skips(s)
	var out []clusterv1.MachineSetPreflightCheck
	for _, check := range Checks() {
		if s.Settings.makes(check) && !skipped[check] && !skipped[clusterv1.MachineSetPreflightCheckAll] {
			out = append(out, check)
		}
	}
	return out
}

// skips are the checks that an annotation turns off, on the set, its MachineDeployment, or the bootstrap template.
func skips(s Snapshot) map[clusterv1.MachineSetPreflightCheck]bool {
	out := map[clusterv1.MachineSetPreflightCheck]bool{}
	texts := []string{s.Set.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation]}
	if s.Deployment != nil {
		texts = append(texts, s.Deployment.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation])
	}
	if s.Bootstrap.Object.Unstructured != nil {
		texts = append(texts, s.Bootstrap.Object.GetAnnotations()[clusterv1.MachineSetSkipPreflightChecksAnnotation])
	}
	for _, text := range texts {
		for name := range strings.SplitSeq(text, ",") {
			out[clusterv1.MachineSetPreflightCheck(strings.TrimSpace(name))] = true
		}
	}
	return out
}

// checked is a snapshot with what all checks look at.
type checked struct {
	Snapshot
	// name, version text and version of the control plane.
	name, text string
	plane      semver.Version
}

func (c checked) run() []string {
	var out []string
	checks := active(c.Snapshot)
	say := func(check clusterv1.MachineSetPreflightCheck, message string) {
		if message != "" && slices.Contains(checks, check) {
			out = append(out, fmt.Sprintf("%s (preflight check %s)", message, check))
		}
	}
	say(clusterv1.MachineSetPreflightCheckControlPlaneIsStable, c.unstable())
	text := c.Set.Spec.Template.Spec.Version
	if text == "" {
		return out
	}
	version, err := parse(text)
	if err != nil {
		return append(out, fmt.Sprintf("version %q of the MachineSet is not a semantic version", text))
	}
	say(clusterv1.MachineSetPreflightCheckKubernetesVersionSkew, c.kubernetesSkew(version))
	say(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew, c.kubeadmSkew(version))
	say(clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew, c.planeSkew())
	return out
}

func (c checked) unstable() string { // MS-13
	if topology := c.Cluster.Spec.Topology; topology.IsDefined() {
		step := c.Cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]
		if topology.Version != c.text && step != c.text {
			next := topology.Version
			if step != "" {
				next = step
			}
			return fmt.Sprintf("%s is about to be upgraded to %s", c.name, next)
		}
	}
	versions := c.ControlPlane.Versions.Or(nil)
	if len(versions) == 0 {
		return c.name + " is being provisioned"
	}
	for _, v := range versions {
		if have, err := parse(v.Version); err != nil || have.LT(c.plane) {
			return fmt.Sprintf("%s is being upgraded from %s to %s", c.name, v.Version, c.text)
		}
	}
	return ""
}

// olderMinors is how many minor versions a Machine may be older than its control plane.
func olderMinors(plane semver.Version) uint64 {
	if plane.Major == 1 && plane.Minor < 28 {
		return 2
	}
	return 3
}

func (c checked) kubernetesSkew(v semver.Version) string { // MS-14
	switch {
	case v.Major != c.plane.Major, v.Minor > c.plane.Minor:
		return fmt.Sprintf("version %s of the MachineSet is newer than version %s of %s", c.Set.Spec.Template.Spec.Version, c.text, c.name)
	case v.Minor+olderMinors(c.plane) < c.plane.Minor:
		return fmt.Sprintf("version %s of the MachineSet is more than %d minor versions older than version %s of %s",
			c.Set.Spec.Template.Spec.Version, olderMinors(c.plane), c.text, c.name)
	}
	return ""
}

func (c checked) kubeadmSkew(v semver.Version) string { // MS-15
	ref := c.Set.Spec.Template.Spec.Bootstrap.ConfigRef
	if ref.Kind != "KubeadmConfigTemplate" || ref.APIGroup != bootstrapv1.GroupVersion.Group ||
		v.Major == c.plane.Major && v.Minor == c.plane.Minor {
		return ""
	}
	return fmt.Sprintf("version %s of the MachineSet is of another minor version than %s of %s, and kubeadm needs the same",
		c.Set.Spec.Template.Spec.Version, c.text, c.name)
}

func (c checked) planeSkew() string { // MS-16
	if !c.Cluster.Spec.Topology.IsDefined() || c.Set.Spec.Template.Spec.Version == c.text {
		return ""
	}
	return fmt.Sprintf("version %s of the MachineSet is not version %s of %s: it will be replaced soon",
		c.Set.Spec.Template.Spec.Version, c.text, c.name)
}

func parse(version string) (semver.Version, error) {
	return semver.Parse(strings.TrimPrefix(version, "v"))
}

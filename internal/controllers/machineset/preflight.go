package machineset

import (
	"fmt"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/version"
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

// preflight returns what speaks against creating or replacing a Machine now; nothing where none shall be created, or the
// Cluster has no control plane object, or that has no version.
//
//	ControlPlaneIsStable     it is neither provisioned nor upgraded, and the topology has no upgrade pending
//	KubernetesVersionSkew    not newer than what the control plane runs, and at most 3 minor versions older
//	KubeadmVersionSkew       the minor version that the control plane runs, where kubeadm joins the Machine
//	ControlPlaneVersionSkew  the version that the control plane's spec asks for, in Clusters with a topology
//
// What a control plane runs is in its status, and decides what can join it: its spec may ask for something that never comes to
// be. Before anything runs, the spec is all there is.
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
	c := checked{Snapshot: s, name: ref.Kind + " " + ref.Name}
	text := s.ControlPlane.SpecVersion.Or("")
	if text == "" {
		return nil
	}
	var err error
	if c.spec, err = version.Parse(text); err != nil {
		return []string{fmt.Sprintf("Version %q of %s is not a semantic version", text, c.name)}
	}
	c.lowest, c.highest = c.spec, c.spec
	for i, status := range s.ControlPlane.Versions.Or(nil) {
		v, err := version.Parse(status.Version)
		if err != nil {
			return []string{fmt.Sprintf("Version %q that %s runs is not a semantic version", status.Version, c.name)}
		}
		if i == 0 || v.Compare(c.lowest) < 0 {
			c.lowest = v
		}
		if i == 0 || v.Compare(c.highest) > 0 {
			c.highest = v
		}
		c.runs = true
	}
	return c.check()
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
	// name of the control plane.
	name string
	// spec is the version that the control plane's spec asks for; lowest and highest are the versions that it runs. They are as the
	// spec while nothing runs.
	spec, lowest, highest version.Version
	runs                  bool
}

func (c checked) check() []string {
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
	v, err := version.Parse(text)
	if err != nil {
		return append(out, fmt.Sprintf("Version %q of the MachineSet is not a semantic version", text))
	}
	say(clusterv1.MachineSetPreflightCheckKubernetesVersionSkew, c.kubernetesSkew(v))
	say(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew, c.kubeadmSkew(v))
	say(clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew, c.planeSkew(v))
	return out
}

func (c checked) unstable() string {
	if topology := c.Cluster.Spec.Topology; topology.IsDefined() {
		step := c.Cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]
		if !c.isSpec(topology.Version) && !c.isSpec(step) {
			next := topology.Version
			if step != "" {
				next = step
			}
			return fmt.Sprintf("%s is about to be upgraded to %s", c.name, next)
		}
	}
	switch {
	case !c.runs:
		return c.name + " is being provisioned"
	case c.lowest.Compare(c.spec) < 0 && !version.Runs(c.lowest.String(), c.spec.String()): // a distribution's suffix is no prerelease
		return fmt.Sprintf("%s is being upgraded from %s to %s", c.name, c.lowest, c.spec)
	}
	return ""
}

// isSpec reports whether a version is the one that the control plane's spec asks for.
func (c checked) isSpec(text string) bool {
	v, err := version.Parse(text)
	return err == nil && v.Compare(c.spec) == 0
}

// of names one of the versions that the control plane runs, and what its spec asks for if that is another minor version.
func (c checked) of(v version.Version) string {
	if v.SameMinor(c.spec) {
		return fmt.Sprintf("version %s of %s", v, c.name)
	}
	return fmt.Sprintf("version %s, which %s runs while its spec asks for %s", v, c.name, c.spec)
}

// olderMinors is how many minor versions a Machine may be older than its control plane.
const olderMinors = 3

func (c checked) kubernetesSkew(v version.Version) string {
	switch {
	case v.Major != c.lowest.Major, v.Minor > c.lowest.Minor:
		return fmt.Sprintf("Version %s of the MachineSet is newer than %s", v, c.of(c.lowest))
	case v.Minor+olderMinors < c.highest.Minor:
		return fmt.Sprintf("Version %s of the MachineSet is more than %d minor versions older than %s", v, olderMinors, c.of(c.highest))
	}
	return ""
}

func (c checked) kubeadmSkew(v version.Version) string {
	ref := c.Set.Spec.Template.Spec.Bootstrap.ConfigRef
	if ref.Kind != "KubeadmConfigTemplate" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return ""
	}
	for _, have := range []version.Version{c.lowest, c.highest} {
		if !v.SameMinor(have) {
			return fmt.Sprintf("Version %s of the MachineSet must have the minor version of what it joins with kubeadm: %s", v, c.of(have))
		}
	}
	return ""
}

func (c checked) planeSkew(v version.Version) string {
	if !c.Cluster.Spec.Topology.IsDefined() || v.Compare(c.spec) == 0 {
		return ""
	}
	return fmt.Sprintf("Version %s of the MachineSet is not version %s of %s: it will be replaced soon", v, c.spec, c.name)
}

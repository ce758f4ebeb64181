package admission

// Warnings of kinds that are served, so that manifests stay valid, and that this version has no controller for. Another provider
// may have one.
const (
	warnKubeadmControlPlane = "this version of Slipway has no controller for KubeadmControlPlane: without another provider that has one " +
		"the cluster gets no control plane; use HostedControlPlane (docs/hosted-control-plane.md)"
	warnTopology = "this version of Slipway has no managed topologies: nothing here uses a "
)

// warnOnCreation admits everything, and warns of a new object.
func warnOnCreation(r Request, warning string) Verdict {
	if r.Old != nil {
		return Verdict{}
	}
	return Verdict{Warnings: []string{warning}}
}

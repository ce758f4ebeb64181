package admission

// warnTopology warns of kinds that are used by managed topologies alone, while these are switched off. Manifests with them stay valid.
const warnTopology = "the feature gate ClusterTopology is off in this manager (--feature-gates=ClusterTopology=true): nothing here uses a "

// warnOnCreation admits everything, and warns of a new object.
func warnOnCreation(r Request, warning string) Verdict {
	if r.Old != nil {
		return Verdict{}
	}
	return Verdict{Warnings: []string{warning}}
}

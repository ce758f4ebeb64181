package admission

// warnTopology warns of kinds that are used by managed topologies alone, while these are switched off. Manifests with them stay valid.
const warnTopology = "this version of Slipway has no managed topologies: nothing here uses a "

// warnOnCreation admits everything, and warns of a new object.
func warnOnCreation(r Request, warning string) Verdict {
	if r.Old != nil {
		return Verdict{}
	}
	return Verdict{Warnings: []string{warning}}
}

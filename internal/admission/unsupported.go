package admission

// warnTopology warns about kinds that only managed topologies use, while these are turned off. Manifests with these
// kinds remain valid.
const warnTopology = "the feature gate ClusterTopology is off in this manager (--feature-gates=ClusterTopology=true): nothing here uses a "

// warnOnCreation admits everything, and returns a warning on create.
func warnOnCreation(r Request, warning string) Response {
	if r.Old != nil {
		return Response{}
	}
	return Response{Warnings: []string{warning}}
}

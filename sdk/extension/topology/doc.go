// Package topology helps with the topology mutation hooks: it goes through the templates of a request, decodes them,
// gives access to variables, and makes patches of what was changed.
//
//	patches := topology.Patcher{Rules: []topology.Rule{
//		topology.For("infrastructure.slipway.dev/v1alpha1", "LocalMachineTemplate", setImage),
//	}}
//	extension.On("patches", hooksv1.GeneratePatches, patches.Generate)
//
//	func setImage(ctx context.Context, t topology.Template, m *localv1.LocalMachineTemplate) error {
//		image, err := topology.Get[string](t.Variables, "image.name")
//		if topology.IsNotFound(err) {
//			return nil
//		}
//		…
//		return err
//	}
//
// Does: GeneratePatches ([Patcher]) and ValidateTopology ([Validator]) with rules, for templates of a kind and where they are
// used ([Rule.Where]); DiscoverVariables from a Go struct ([DiscoverVariables]); reading of variables ([Get], [Read]), those
// named builtin included.
//
// Never: patches what a rule did not change: fields that a Go type does not know stay as they are.
//
// Read first: [Patcher], [Variables].
package topology

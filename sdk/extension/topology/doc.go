// Package topology supports handlers of the topology mutation hooks. It iterates over the templates of a request,
// decodes them, provides access to variables, and creates patches for the changes.
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
// [Patcher] and [Validator] handle GeneratePatches and ValidateTopology with rules, for templates of a kind and
// optionally their use ([Rule.Where]). [DiscoverVariables] handles DiscoverVariables for a Go struct. [Get] and [Read]
// read variables, including the builtin ones. Patches contain only what a rule has changed: fields that a Go type does
// not define are preserved.
package topology

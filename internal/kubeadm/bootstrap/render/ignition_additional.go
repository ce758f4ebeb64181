package render

import (
	clct "github.com/flatcar/container-linux-config-transpiler/config"
	"github.com/flatcar/ignition/config/v2_3"
	"github.com/flatcar/ignition/config/v2_3/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// withAdditional merges the user's Container Linux Config (spec.ignition.containerLinuxConfig) into the rendered
// configuration. Warnings are treated as errors if the user has set strict. [renderIgnition] calls it before it
// validates the result.
func withAdditional(config types.Config, user bootstrapv1.ContainerLinuxConfig) (types.Config, error) {
	if user.AdditionalConfig == "" {
		return config, nil
	}
	const where = "spec.ignition.containerLinuxConfig.additionalConfig"
	strict := user.Strict != nil && *user.Strict
	parsed, tree, said := clct.Parse([]byte(user.AdditionalConfig))
	if problems := problemsOf(said, strict); problems != "" {
		return config, ignitionInvalid("%s cannot be used: %s", where, problems)
	}
	converted, said := clct.Convert(parsed, "", tree)
	if problems := problemsOf(said, strict); problems != "" {
		return config, ignitionInvalid("%s cannot be converted: %s", where, problems)
	}
	merged := v2_3.Append(config, converted)
	merged.Systemd.Units = mergeUnits(merged.Systemd.Units)
	return merged, nil
}

// mergeUnits merges units with the same name: drop-ins are combined, and the last unit takes precedence for all other
// fields.
func mergeUnits(units []types.Unit) []types.Unit {
	var out []types.Unit
	at := map[string]int{}
	for _, u := range units {
		i, ok := at[u.Name]
		if !ok {
			at[u.Name] = len(out)
			out = append(out, u)
			continue
		}
		have := &out[i]
		have.Dropins = append(have.Dropins, u.Dropins...)
		if u.Contents != "" {
			have.Contents = u.Contents
		}
		if u.Enabled != nil {
			have.Enabled = u.Enabled
		}
		have.Enable, have.Mask = have.Enable || u.Enable, have.Mask || u.Mask
	}
	return out
}

package render

import (
	"encoding/json"
	"path"
	"reflect"
	"strings"

	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/flatcar/ignition/config/validate"
	"github.com/flatcar/ignition/config/validate/report"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// The names are the same as in the reference implementation, because commands and drop-ins of users refer to them.
const (
	// configPath is the configuration file of kubeadm. It is moved to /tmp once kubeadm has succeeded.
	configPath = "/etc/kubeadm.yml"
	// scriptPath is the script that runs kubeadm and the commands before and after it.
	scriptPath = "/etc/kubeadm.sh"
	// unitName is the unit that runs the script. User configuration may add drop-ins to it.
	unitName = "kubeadm.service"
)

// IgnitionFormat writes Ignition, for operating systems such as Flatcar. The KubeadmConfig controller renders with it
// if spec.format is ignition and the feature gate KubeadmBootstrapFormatIgnition is enabled. The zero value is ready to
// use.
type IgnitionFormat struct{}

// Name returns the value of KubeadmConfig.spec.format for this format. The KubeadmConfig controller selects the format
// by it.
func (IgnitionFormat) Name() bootstrapv1.Format { return bootstrapv1.Ignition }

// ConfigPath returns the path of kubeadm's configuration, which is the same for all roles. The KubeadmConfig controller
// passes it to [Init], [Join] and [JoinControlPlane].
func (IgnitionFormat) ConfigPath() string { return configPath }

// Render returns the payload as an Ignition configuration, see [renderIgnition].
func (IgnitionFormat) Render(p Payload) ([]byte, error) { return renderIgnition(p) }

// renderIgnition returns the configuration as JSON. Errors are Invalid faults: Ignition does not support an entry of
// the payload, or the user's additional configuration is invalid.
func renderIgnition(p Payload) ([]byte, error) {
	config, err := ignitionConfig(p)
	if err != nil {
		return nil, err
	}
	if config, err = withAdditional(config, p.Ignition.ContainerLinuxConfig); err != nil {
		return nil, err
	}
	if problems := problemsOf(validate.ValidateWithoutSource(reflect.ValueOf(config)), false); problems != "" {
		return nil, ignitionInvalid("the Ignition configuration would not be valid: %s", problems)
	}
	out, err := json.Marshal(config)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidIgnition", "the Ignition configuration cannot be encoded").From(err)
	}
	return out, nil
}

// ignitionConfig converts the payload without the user's additional configuration. The functions that add one part each
// are in ignition_users.go, ignition_disks.go and ignition_files.go.
func ignitionConfig(p Payload) (types.Config, error) {
	config := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	if len(p.BootCommands) > 0 {
		return config, ignitionInvalid("spec.bootCommands are not supported with the format ignition; use a unit in spec.ignition")
	}
	p.Files = append(p.Files, File{Path: scriptPath, Owner: "root:root", Permissions: "0700", Content: script(p)})
	config.Systemd.Units = []types.Unit{kubeadmUnit()}
	for _, add := range []func(*types.Config, Payload) error{addUsers, addNTP, addDisks, addMounts, addFiles} {
		if err := add(&config, p); err != nil {
			return config, err
		}
	}
	return config, nil
}

// script runs the commands in order and stops at the first failure. It creates the directory of the sentinel file in
// /run, which does not exist yet when Ignition writes files.
func script(p Payload) []byte {
	lines := []string{"#!/bin/bash", "set -e", "mkdir -p " + path.Dir(sentinelPath)}
	lines = append(lines, p.PreKubeadmCommands...)
	lines = append(lines, p.Kubeadm+" || exit 1", "mv "+configPath+" /tmp/")
	lines = append(lines, p.PostKubeadmCommands...)
	return []byte(strings.Join(lines, "\n") + "\n")
}

// kubeadmUnit runs the script at the first boot, and again at the next boot if kubeadm has not succeeded.
func kubeadmUnit() types.Unit {
	enabled := true
	return types.Unit{Name: unitName, Enabled: &enabled, Contents: `[Unit]
Description=Makes this machine a Kubernetes node
Wants=network-online.target
After=network-online.target
ConditionPathExists=` + configPath + `

[Service]
Type=oneshot
ExecStart=` + scriptPath + `

[Install]
WantedBy=multi-user.target
`}
}

// problemsOf returns the errors of a report in one line, including warnings if requested.
func problemsOf(r report.Report, warnings bool) string {
	var out []string
	for _, e := range r.Entries {
		if e.Kind == report.EntryError || warnings && e.Kind == report.EntryWarning {
			out = append(out, e.Message)
		}
	}
	return strings.Join(out, "; ")
}

func ignitionInvalid(message string, args ...any) *fault.Fault {
	return fault.New(fault.Invalid, ReasonInvalid, message, args...)
}

package componentconfig

import (
	"fmt"
	"strings"
)

// Component names a control plane component. Admission and package processconfig pass it to [FlagProblem].
type Component string

const (
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Etcd              Component = "etcd"
)

// maxLength limits the length of a value, as in the API of the HostedControlPlane.
const maxLength = 1024

// FlagProblem returns why the flag cannot be set on the component, or an empty string if it can. The name has no
// leading dashes. Admission calls it for the spec of a HostedControlPlane, and package processconfig again before each
// start.
func FlagProblem(c Component, name, value string) string {
	form, listed := flagsOf(c)[name]
	if !listed {
		return fmt.Sprintf("Flag --%s of %s cannot be set: remove it; `slipway docs hosted-control-plane` lists the flags that can", name, c)
	}
	if len(value) > maxLength || !form.accepts(value) {
		return fmt.Sprintf("Flag --%s of %s must be %s", name, c, form.description)
	}
	return ""
}

// SplitFlag splits a flag of the form --name=value into name and value. Packages controlplane and processconfig call
// it.
func SplitFlag(flag string) (name, value string) {
	name, value, _ = strings.Cut(strings.TrimPrefix(flag, "--"), "=")
	return name, value
}

func flagsOf(c Component) map[string]form {
	switch c {
	case APIServer:
		return apiServerFlags()
	case ControllerManager:
		return controllerManagerFlags()
	case Scheduler:
		return schedulerFlags()
	case Etcd:
		return etcdFlags()
	}
	return nil
}

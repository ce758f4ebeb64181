package componentconfig

import (
	"fmt"
	"slices"
	"strings"
)

// FlagComponent names a control plane component.
type FlagComponent string

const (
	FlagAPIServer     FlagComponent = "kube-apiserver"
	ControllerManager FlagComponent = "kube-controller-manager"
	FlagScheduler     FlagComponent = "kube-scheduler"
	FlagEtcd          FlagComponent = "etcd"
)

// maxLength limits the length of a value, as in the API.
const maxLength = 1024

// FlagProblem returns why the flag cannot be set on the component, or an empty string if it can. The name has no
// leading dashes.
func FlagProblem(c FlagComponent, name, value string) string {
	form, listed := flagsOf(c)[name]
	if !listed {
		return fmt.Sprintf("Flag --%s of %s cannot be set: remove it; docs/hosted-control-plane.md lists the flags that can", name, c)
	}
	if len(value) > maxLength || !form.accepts(value) {
		return fmt.Sprintf("Flag --%s of %s must be %s", name, c, form.description)
	}
	return ""
}

// FlagNames returns the sorted names of the flags that can be set on the component, and a description of the
// valid values of each.
func FlagNames(c FlagComponent) (names []string, values map[string]string) {
	values = map[string]string{}
	for name, form := range flagsOf(c) {
		names, values[name] = append(names, name), form.description
	}
	slices.Sort(names)
	return names, values
}

// FlagSplit splits a flag of the form --name=value into name and value.
func FlagSplit(flag string) (name, value string) {
	name, value, _ = strings.Cut(strings.TrimPrefix(flag, "--"), "=")
	return name, value
}

func flagsOf(c FlagComponent) map[string]form {
	switch c {
	case FlagAPIServer:
		return apiServerFlags()
	case ControllerManager:
		return controllerManagerFlags()
	case FlagScheduler:
		return schedulerFlags()
	case FlagEtcd:
		return etcdFlags()
	}
	return nil
}

package upgrade

import (
	"fmt"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults.
const (
	// reasonResource is the reason when a resource has no rollout, or not one that the command supports; Invalid.
	reasonResource = "InvalidRolloutResource"
	// reasonNotFound is the reason when the object does not exist; Gone.
	reasonNotFound = "RolloutResourceNotFound"
	// ReasonState is the reason when the state of the object does not allow the change; Invalid. `slipway rollout
	// status` returns it for a paused rollout.
	ReasonState = "InvalidRolloutState"
)

// RolloutKind is a kind with rollouts. The values are part of the JSON output of `slipway rollout status`.
type RolloutKind string

// The kinds with rollouts.
const (
	MachineDeployment   RolloutKind = "MachineDeployment"
	kubeadmControlPlane RolloutKind = "KubeadmControlPlane"
	machinePool         RolloutKind = "MachinePool"
)

// RolloutResource is an object with a rollout, an argument of `slipway rollout`.
type RolloutResource struct {
	Kind RolloutKind
	Name string
}

// String returns the resource in the notation of kubectl.
func (r RolloutResource) String() string { return strings.ToLower(string(r.Kind)) + "/" + r.Name }

// names returns the accepted names of a kind. The first is the full name and the last the abbreviation, which errors
// show.
func names(k RolloutKind) []string {
	singular := strings.ToLower(string(k))
	out := []string{singular, singular + "s"}
	switch k {
	case MachineDeployment:
		return append(out, "md")
	case kubeadmControlPlane:
		return append(out, "kcp")
	}
	return append(out, "mp")
}

// Changeable returns the kinds whose rollout can be restarted, paused and resumed. The commands of `slipway rollout`
// accept them.
func Changeable() []RolloutKind { return []RolloutKind{MachineDeployment, kubeadmControlPlane} }

// Readable returns the kinds whose rollout status can be read. `slipway rollout status` accepts them.
func Readable() []RolloutKind { return append(Changeable(), machinePool) }

// ParseResource parses resources as kubectl does: "md/a", "md/a kcp/b", or "md a b". All commands of `slipway rollout`
// parse their arguments with it.
func ParseResource(args []string, kinds []RolloutKind) ([]RolloutResource, error) {
	if len(args) == 0 {
		return nil, fault.New(fault.Invalid, reasonResource, "name what rolls out, for example machinedeployment/NAME; the kinds are: %s", list(kinds))
	}
	if !strings.Contains(args[0], "/") {
		kind, err := find(args[0], kinds)
		if err != nil {
			return nil, err
		}
		if len(args) == 1 {
			return nil, fault.New(fault.Invalid, reasonResource, "the name is missing: write %s/NAME", args[0])
		}
		var out []RolloutResource
		for _, name := range args[1:] {
			if strings.Contains(name, "/") {
				return nil, fault.New(fault.Invalid, reasonResource, "%q is no name: write either %s NAME, or KIND/NAME for each", name, args[0])
			}
			out = append(out, RolloutResource{kind, name})
		}
		return out, nil
	}
	var out []RolloutResource
	for _, arg := range args {
		kindName, name, found := strings.Cut(arg, "/")
		if !found || name == "" || strings.Contains(name, "/") {
			return nil, fault.New(fault.Invalid, reasonResource, "%q is not KIND/NAME, for example machinedeployment/NAME", arg)
		}
		kind, err := find(kindName, kinds)
		if err != nil {
			return nil, err
		}
		out = append(out, RolloutResource{kind, name})
	}
	return out, nil
}

func find(name string, kinds []RolloutKind) (RolloutKind, error) {
	short, _, _ := strings.Cut(strings.ToLower(name), ".") // a group may follow, as in machinedeployments.cluster.x-k8s.io
	for _, k := range kinds {
		for _, n := range names(k) {
			if n == short {
				return k, nil
			}
		}
	}
	if strings.Contains(name, "-") { // no kind contains a hyphen, so this is a name
		return "", fault.New(fault.Invalid, reasonResource, "the kind of %q is missing: write KIND/%s; the kinds are: %s", name, name, list(kinds))
	}
	return "", fault.New(fault.Invalid, reasonResource, "%q is not supported by this command; the supported kinds are: %s", name, list(kinds))
}

func list(kinds []RolloutKind) string {
	var out []string
	for _, k := range kinds {
		n := names(k)
		out = append(out, fmt.Sprintf("%s (%s)", n[0], n[len(n)-1]))
	}
	return strings.Join(out, ", ")
}

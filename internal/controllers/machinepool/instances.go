package machinepool

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/version"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// instances is the list of provider IDs of a pool. The reads of Nodes, the nodeRefs and the counters of the status are
// all based on it, so that they never contradict each other.
type instances struct {
	// ids lists each provider ID once, in the order of the source.
	ids []string
	// repeated are provider IDs that are listed more than once.
	repeated []string
}

// instances returns the infrastructure's list of provider IDs, or the list that was last copied from it. The copy
// is used if the infrastructure is not provisioned yet and has no list, if it cannot be read, which does not mean
// that its instances are gone, or if its list is empty although it does not report 0 replicas.
func (s snapshot) instances() instances {
	reported := s.Infra.ProviderIDList.Or(nil)
	if !isProvisioned(s) || len(reported) == 0 && !hasUsableList(s) {
		reported = s.Pool.Spec.ProviderIDList
	}
	var out instances
	seen := make(map[string]bool, len(reported))
	for _, id := range reported {
		if seen[id] && !slices.Contains(out.repeated, id) {
			out.repeated = append(out.repeated, id)
		}
		if !seen[id] {
			out.ids = append(out.ids, id)
		}
		seen[id] = true
	}
	return out
}

// isProvisioned reports whether the infrastructure exists and is, or once was, provisioned.
func isProvisioned(s snapshot) bool {
	return s.Infra.Presence() == contract.Found && ptr.Deref(initialization(s).InfrastructureProvisioned, false)
}

// reportedReplicas returns the number of replicas that the infrastructure reports, or the last known number. For a
// pool without Machines the contract defines that the number becomes known together with the list. If the
// infrastructure reports no number, the length of the list is used. count (status.go) calls it.
func reportedReplicas(s snapshot, list instances) int32 {
	last := ptr.Deref(s.Pool.Status.Replicas, 0)
	switch n, counted := s.Infra.Replicas.Get(); {
	case s.Infra.Presence() != contract.Found, !hasMachines(s) && !isProvisioned(s), s.Infra.Replicas.Err() != nil:
		return last
	case counted:
		return n
	case hasMachines(s):
		return 0
	}
	return int32(len(list.ids))
}

// repeatedIDs returns a message about provider IDs that are listed more than once, or an empty string.
func (s snapshot) repeatedIDs() string {
	repeated := s.instances().repeated
	if len(repeated) == 0 || !isProvisioned(s) {
		return ""
	}
	return fmt.Sprintf("%s lists provider IDs more than once in %s: %s; each instance needs an ID of its own",
		s.infra(), s.Infra.ProviderIDList.Path(), condition.Names(repeated))
}

// incompleteList returns a message if the infrastructure has more replicas than provider IDs, or an empty string.
func (s snapshot) incompleteList() string {
	infra, replicas := s.infra(), s.Infra.Replicas.Or(0)
	if !hasUsableInfra(s) || !isProvisioned(s) {
		return ""
	}
	listed, path := len(s.Infra.ProviderIDList.Or(nil)), s.Infra.ProviderIDList.Path()
	switch {
	case listed == 0 && replicas > 0:
		return fmt.Sprintf("Waiting for %s to set %s: it reports %d replicas", infra, path, replicas)
	case !hasMachines(s) && int(replicas) > listed:
		return fmt.Sprintf("Waiting for %s to complete %s: it reports %d replicas and %d provider IDs", infra, path, replicas, listed)
	}
	return ""
}

// missingNodes returns a message about provider IDs without a Node in a pool without Machines, or an empty string.
func (s snapshot) missingNodes() string {
	var ids []string
	for _, id := range s.instances().ids {
		_, found := s.Nodes.Items[id]
		if _, shared := s.Nodes.Duplicates[id]; !found && !shared {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("Waiting for Nodes with the provider IDs of %s to exist: %s", s.infra(), condition.Names(ids))
}

// nodeRivals returns messages about Nodes that share a provider ID. It is unknown which of them is the instance.
func (s snapshot) nodeRivals() []string {
	var out []string
	for _, id := range s.instances().ids {
		if names := s.Nodes.Duplicates[id]; len(names) > 0 {
			out = append(out, fmt.Sprintf("Nodes %s have the same spec.providerID %s: a provider ID has to be unique", condition.Names(names), id))
		}
	}
	return out
}

// listProblems returns the problems of the list and the Nodes of a pool without Machines. Decide waits with the same
// messages; the conditions MachinesReady and MachinesUpToDate list them.
func (s snapshot) listProblems() []string {
	return append(nonEmpty(s.repeatedIDs(), s.incompleteList(), s.missingNodes()), s.nodeRivals()...)
}

// unreadyNodes returns a message with the Nodes that are not ready, or an empty string. The condition MachinesReady of
// a pool without Machines reports it.
func (s snapshot) unreadyNodes() string {
	return s.nodesThat(func(n *corev1.Node) string {
		if nodeReady(n) {
			return ""
		}
		return n.Name
	}, "not ready")
}

// outdatedNodes returns a message with the Nodes that run another version, or an empty string. The condition
// MachinesUpToDate of a pool without Machines reports it.
func (s snapshot) outdatedNodes() string {
	want := s.Pool.Spec.Template.Spec.Version
	return s.nodesThat(func(n *corev1.Node) string {
		have := n.Status.NodeInfo.KubeletVersion
		if want == "" || version.Runs(have, want) {
			return ""
		}
		return fmt.Sprintf("%s (%s)", n.Name, have)
	}, "not of version "+want)
}

// nodesThat builds a message from the Nodes for which describe returns a text, in the order of the list.
func (s snapshot) nodesThat(describe func(*corev1.Node) string, are string) string {
	var names []string
	for _, id := range s.instances().ids {
		if node, found := s.Nodes.Items[id]; found {
			names = append(names, nonEmpty(describe(&node))...)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Node %s is %s", names[0], are)
	}
	return fmt.Sprintf("Nodes %s are %s", condition.Names(names), are)
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// lines joins several messages into a list. A single message is returned unchanged. The conditions of a pool without
// Machines call it.
func lines(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return "* " + strings.Join(texts, "\n* ")
}

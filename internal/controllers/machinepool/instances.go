package machinepool

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/version"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// instances are the provider IDs that the pool goes by. Nodes, nodeRefs and counters all follow this one list, so that they never
// contradict each other.
type instances struct {
	// ids in the order in which they are listed, each once.
	ids []string
	// repeated are the IDs that are listed more than once.
	repeated []string
}

// instances returns the list of the infrastructure, or else the one that was last taken over from it: an infrastructure that is
// not provisioned yet has no list, one that cannot be read has not lost its instances, and an empty list without a count of zero
// is no news.
func (s Snapshot) instances() instances {
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

// isProvisioned reports whether the infrastructure is there, and is or once was provisioned.
func isProvisioned(s Snapshot) bool {
	return s.Infra.Presence() == contract.Found && isTrue(initialization(s).InfrastructureProvisioned)
}

// reportedReplicas is the number of replicas that the infrastructure reports, or else the last known one. Without Machines it
// becomes known together with the list, as the contract has it. Where the infrastructure does not count, its list does.
func reportedReplicas(s Snapshot, list instances) int32 {
	last := deref(s.Pool.Status.Replicas)
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

// repeatedIDs reports provider IDs that are listed more than once; empty: none are.
func (s Snapshot) repeatedIDs() string {
	repeated := s.instances().repeated
	if len(repeated) == 0 || !isProvisioned(s) {
		return ""
	}
	return fmt.Sprintf("%s lists provider IDs more than once in %s: %s; each instance needs an ID of its own",
		s.infra(), s.Infra.ProviderIDList.Path(), condition.Names(repeated))
}

// incompleteList reports an infrastructure that has more replicas than provider IDs; empty: it has not.
func (s Snapshot) incompleteList() string {
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

// missingNodes reports provider IDs of a pool without Machines for which there is no Node; empty: none.
func (s Snapshot) missingNodes() string {
	var ids []string
	for _, id := range s.instances().ids {
		_, found := s.Nodes.Items[id]
		if _, shared := s.Nodes.Rivals[id]; !found && !shared {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("Waiting for Nodes with the provider IDs of %s to exist: %s", s.infra(), condition.Names(ids))
}

// nodeRivals name the Nodes that have one provider ID among them: which of them is the instance cannot be known.
func (s Snapshot) nodeRivals() []string {
	var out []string
	for _, id := range s.instances().ids {
		if names := s.Nodes.Rivals[id]; len(names) > 0 {
			out = append(out, fmt.Sprintf("Nodes %s have the same spec.providerID %s: a provider ID has to be unique", condition.Names(names), id))
		}
	}
	return out
}

// listProblems are the problems of the list of a pool without Machines, and of the Nodes that it leads to.
func (s Snapshot) listProblems() []string {
	return append(nonEmpty(s.repeatedIDs(), s.incompleteList(), s.missingNodes()), s.nodeRivals()...)
}

// unreadyNodes names the Nodes that are not ready; empty: all are.
func (s Snapshot) unreadyNodes() string {
	return s.nodesThat(func(n *corev1.Node) string {
		if nodeReady(n) {
			return ""
		}
		return n.Name
	}, "not ready")
}

// outdatedNodes names the Nodes that run another version, with that version; empty: none does.
func (s Snapshot) outdatedNodes() string {
	want := s.Pool.Spec.Template.Spec.Version
	return s.nodesThat(func(n *corev1.Node) string {
		have := n.Status.NodeInfo.KubeletVersion
		if want == "" || version.Runs(have, want) {
			return ""
		}
		return fmt.Sprintf("%s (%s)", n.Name, have)
	}, "not of version "+want)
}

// nodesThat makes a sentence of the Nodes for which describe returns a text, in the order of the list.
func (s Snapshot) nodesThat(describe func(*corev1.Node) string, are string) string {
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

// lines makes one message of several; one alone stays as it is.
func lines(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return "* " + strings.Join(texts, "\n* ")
}

package plan

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/plan/world"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// HostChange is a host of an inventory, such as an SSHHost, whose machine changes.
type HostChange struct {
	Object
	// Before and After are the Machines that use the host before and after the change.
	Before *HostUser `json:"before,omitempty"`
	After  *HostUser `json:"after,omitempty"`
}

// HostUser is a Machine that uses a host. The runLog reads it from the host before and after the change.
type HostUser struct {
	Namespace string `json:"namespace"`
	Machine   string `json:"machine"`
	// Owner is the MachineDeployment or control plane of the Machine, as kind/name.
	Owner string `json:"owner,omitempty"`
	// Generated is true if the Machine is created by the change, with a name that will be different in the real
	// cluster.
	Generated bool `json:"generated,omitempty"`
}

// MissingHosts are machines that need a host of the same kind, of which there are too few.
type MissingHosts struct {
	Cluster string `json:"cluster,omitempty"`
	// Count is the number of the machines. A control plane gets its machines one after the other, so it counts as one.
	Count int `json:"count"`
	// Message names the labels that a host needs, and counts the hosts that have them by the reason why they cannot be
	// used.
	Message string `json:"message"`
}

// hosts adds the hosts to a plan, and removes their changes from its objects: the controller of the hosts only notes in
// their metadata who uses them. [runLog.plan] calls it as its last step, because it removes changes from the list of
// objects.
func (l *runLog) hosts(p *Plan, after map[id]*unstructured.Unstructured) {
	if l.inventory == nil {
		return
	}
	hostKind := l.inventory.HostKind()
	keys := slices.Concat(slices.Collect(maps.Keys(l.before)), slices.Collect(maps.Keys(after)))
	slices.SortFunc(keys, func(a, b id) int { return strings.Compare(a.key.String(), b.key.String()) })
	noted := map[Object]bool{}
	for _, key := range slices.Compact(slices.DeleteFunc(keys, func(k id) bool { return k.kind != hostKind })) {
		was, is := l.before[key], after[key]
		before, now := l.hostUser(was, l.before), l.hostUser(is, after)
		if isSame(before, now) {
			continue
		}
		h := HostChange{Before: before, After: now}
		if is != nil {
			h.Object = objectOf(is)
		} else {
			h.Object = objectOf(was)
		}
		noted[h.Object] = true
		p.Hosts = append(p.Hosts, h)
	}
	p.Objects = slices.DeleteFunc(p.Objects, func(c ObjectChange) bool {
		return noted[c.Object] && c.Verb == Update && !slices.ContainsFunc(c.Fields, func(f Field) bool { return !strings.HasPrefix(f.Path, "metadata.") })
	})
	p.HostsUnknown = l.assumesHosts || l.hostsUnknown && slices.ContainsFunc(p.Objects, func(c ObjectChange) bool {
		kind := l.inventory.MachineKind()
		return schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind() == kind && c.Verb == Create
	})
	p.MissingHosts = missingHosts(p.Waits, after)
}

// unknownHosts is an [world.Inventory] whose hosts could not be read. It records the control planes that need hosts for
// the change, because a plan has no objects of their machines.
type unknownHosts struct {
	world.Inventory
	log *runLog
}

// ClaimForControlPlane implements [world.Inventory].
func (h unknownHosts) ClaimForControlPlane(objects world.Objects, controlPlane *unstructured.Unstructured, number int64) (world.Claim, bool, error) {
	claim, needsHosts, err := h.Inventory.ClaimForControlPlane(objects, controlPlane, number)
	h.log.assumesHosts = h.log.assumesHosts || needsHosts && !h.log.began.IsZero()
	return claim, needsHosts, err
}

// hostUser returns the Machine that uses a host; nil if none does.
func (l *runLog) hostUser(host *unstructured.Unstructured, in map[id]*unstructured.Unstructured) *HostUser {
	if host == nil {
		return nil
	}
	claim, _, _ := unstructured.NestedMap(host.Object, "status", "claim")
	namespace, _ := claim["namespace"].(string)
	name, _ := claim["name"].(string)
	if name == "" {
		return nil
	}
	out := &HostUser{Namespace: namespace, Machine: name}
	infrastructure := in[id{l.inventory.MachineKind(), client.ObjectKey{Namespace: namespace, Name: name}}]
	if owner := host.GetAnnotations()[world.OwnerAnnotation]; infrastructure == nil && owner != "" {
		out.Owner, out.Generated = owner, true
	}
	if infrastructure == nil {
		return out
	}
	for _, ref := range infrastructure.GetOwnerReferences() {
		key := id{clusterv1.GroupVersion.WithKind("Machine").GroupKind(), client.ObjectKey{Namespace: namespace, Name: ref.Name}}
		if m := in[key]; m != nil && ref.Kind == "Machine" {
			owner := ownerOfMachine(m)
			out.Machine, out.Owner = m.GetName(), owner.kind.Kind+"/"+owner.key.Name
			out.Generated = l.before[key] == nil && isGenerated(m)
		}
	}
	return out
}

func isSame(a, b *HostUser) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Namespace == b.Namespace && a.Machine == b.Machine
}

// missingHosts counts the objects that wait for a host, by the message of their wait.
func missingHosts(waits []Waiting, after map[id]*unstructured.Unstructured) (out []MissingHosts) {
	for _, w := range waits {
		noHost := slices.IndexFunc(w.Waits, func(w reconciler.Wait) bool { return w.Reason == world.ReasonNoHost })
		u := waiting(w, after)
		if noHost < 0 || u == nil {
			continue
		}
		one := MissingHosts{Cluster: clusterOf(u), Count: 1, Message: w.Waits[noHost].Message}
		at := slices.IndexFunc(out, func(m MissingHosts) bool { return m.Cluster == one.Cluster && m.Message == one.Message })
		if at >= 0 {
			out[at].Count++
			continue
		}
		out = append(out, one)
	}
	return out
}

// waiting returns the object that waits.
func waiting(w Waiting, in map[id]*unstructured.Unstructured) *unstructured.Unstructured {
	for key, u := range in {
		if key.kind.Kind == w.Kind && key.key.String() == w.Object {
			return u
		}
	}
	return nil
}

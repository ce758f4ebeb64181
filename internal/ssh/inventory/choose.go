package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Request describes the host that a machine needs. [Read] creates it with the namespace, and its callers fill in the
// rest.
type Request struct {
	// Namespace of the SSHMachine.
	Namespace Namespace
	// Selector selects hosts by their labels. Nil: all.
	Selector *metav1.LabelSelector
	// FailureDomain of the host. Empty: any.
	FailureDomain string
	// Turn is the number of machines with an equal request that precede this one and have no host yet. Each of them prefers
	// another host, so that machines that are created together rarely claim the same one.
	Turn int
	// Version is the Kubernetes version of the machine: hosts that have its bundle are preferred.
	Version string
	// Installed is set if the machine uses the programs that are installed on the host, instead of those of a bundle.
	Installed bool
	// ControlPlane is set for a machine of a control plane, which needs more memory and processors.
	ControlPlane bool
	// Unsuitable are the hosts that cannot become this machine.
	Unsuitable []infrav1.SSHHostReference
	// Peers are the hosts of the other machines of the cluster.
	Peers []*infrav1.SSHHost
}

// Obstacle is a reason why a machine cannot claim a host.
type Obstacle string

// Obstacles, in the order in which a message lists them; the method obstacle checks them in another order. A new one
// must be added to the list in Choice.obstacles, too.
const (
	otherDomain  Obstacle = "in another failure domain"
	inUse        Obstacle = "in use"
	cleaning     Obstacle = "being cleaned"
	unchecked    Obstacle = "not checked yet"
	unreachable  Obstacle = "unreachable"
	quarantined  Obstacle = "quarantined"
	maintenance  Obstacle = "in maintenance"
	usedByOthers Obstacle = "used by another namespace before"
	ownRuntime   Obstacle = "with a container runtime that prevents the installation of a bundle"
	noRuntime    Obstacle = "without containerd, which spec.bundle None needs"
	tooSmall     Obstacle = "too small for a control plane"
	unsuitable   Obstacle = "that failed the preflight checks of this machine"
	sameIdentity Obstacle = "with the hostname, machine ID or product UUID of another node of the cluster"
)

// Choice is the result of [Request.Choose].
type Choice struct {
	// Host is the chosen host. Nil: there is none.
	Host *infrav1.SSHHost
	// Offered and Selected are the numbers of the hosts that are offered to the namespace, and of those with the labels.
	Offered, Selected int
	// Obstacles counts the selected hosts by the reason why they cannot be claimed.
	Obstacles map[Obstacle]int
	// names has the names of these hosts.
	names map[Obstacle][]string
}

// Choose returns the best host that can be claimed. Hosts that are not offered to the namespace are ignored and not
// counted, so that the result discloses nothing about them. The order depends on no name of a machine, which may be random:
// equal requests together take the same hosts in every run. The SSHMachine controller and the simulation of `slipway
// plan` call it.
func (r Request) Choose(hosts []*infrav1.SSHHost) Choice {
	free, out := r.available(hosts)
	if len(free) > 0 {
		slices.SortFunc(free, r.compare)
		out.Host = free[r.Turn%len(free)] // a machine that precedes this one may never claim a host
	}
	return out
}

// available returns the hosts that can be claimed, and counts why the others cannot.
func (r Request) available(hosts []*infrav1.SSHHost) (free []*infrav1.SSHHost, out Choice) {
	out = Choice{Obstacles: map[Obstacle]int{}, names: map[Obstacle][]string{}}
	for _, h := range r.selected(hosts, &out) {
		if o := r.obstacle(h); o != "" {
			out.Obstacles[o]++
			out.names[o] = append(out.names[o], h.Namespace+"/"+h.Name)
		} else {
			free = append(free, h)
		}
	}
	return free, out
}

// Matching returns the hosts that are offered to the namespace and have the labels, whether they are free or not.
// Capacity calls it, and the SSHCluster controller for the failure domains.
func (r Request) Matching(hosts []*infrav1.SSHHost) []*infrav1.SSHHost {
	return r.selected(hosts, &Choice{})
}

func (r Request) selected(hosts []*infrav1.SSHHost, count *Choice) (out []*infrav1.SSHHost) {
	selector := labels.Everything()
	if r.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(r.Selector); err != nil {
			selector = labels.Nothing()
		}
	}
	for _, h := range hosts {
		if !IsOffered(h, r.Namespace) {
			continue
		}
		count.Offered++
		if selector.Matches(labels.Set(h.Labels)) {
			count.Selected++
			out = append(out, h)
		}
	}
	return out
}

// obstacle returns why the machine cannot claim a host that is offered to it, empty if it can.
func (r Request) obstacle(h *infrav1.SSHHost) Obstacle {
	switch state := h.Status.State; {
	case r.FailureDomain != "" && h.Spec.FailureDomain != r.FailureDomain:
		return otherDomain
	case state == infrav1.SSHHostCleaning || IsReleased(h.Status.Claim):
		return cleaning
	case h.Status.Claim != nil:
		return inUse
	case ptr.Deref(h.Spec.Maintenance, false) || !h.DeletionTimestamp.IsZero():
		return maintenance
	case state == infrav1.SSHHostUnreachable:
		return unreachable
	case state == infrav1.SSHHostQuarantined:
		return quarantined
	case state != infrav1.SSHHostAvailable || h.Status.ObservedGeneration != h.Generation:
		return unchecked
	case !isReusable(h, r.Namespace):
		return usedByOthers
	case HasContainerd(h.Status.Facts.ContainerRuntime) != r.Installed:
		if r.Installed {
			return noRuntime
		}
		return ownRuntime
	case r.ControlPlane && isTooSmall(h.Status.Facts):
		return tooSmall
	case slices.Contains(r.Unsuitable, infrav1.SSHHostReference{Namespace: h.Namespace, Name: h.Name}):
		return unsuitable
	case slices.ContainsFunc(r.Peers, func(p *infrav1.SSHHost) bool { return haveSameIdentity(h, p) }):
		return sameIdentity
	}
	return ""
}

// HasContainerd reports whether containerd is one of the container runtimes in the facts of a host. A bundle cannot be installed
// beside it, and a machine without a bundle needs it. Others can stay. The SSHHost controller and `slipway hosts check`
// call it.
func HasContainerd(runtimes string) bool {
	return slices.Contains(strings.Split(runtimes, ","), "containerd")
}

// isTooSmall reports whether the preflight checks of a control plane would refuse the memory or the processors of a host.
func isTooSmall(f infrav1.SSHHostFacts) bool {
	return f.MemoryMiB > 0 && f.MemoryMiB < remote.MinControlPlaneMemoryMiB || f.CPUs > 0 && f.CPUs < remote.MinControlPlaneCPUs
}

// haveSameIdentity reports whether two hosts cannot be nodes of one cluster: the name of a Node is the hostname, and the
// network add-ons and systemd derive identities from the machine ID. kubeadm requires different product UUIDs.
func haveSameIdentity(a, b *infrav1.SSHHost) bool {
	x, y := a.Status.Facts, b.Status.Facts
	return x.Hostname != "" && x.Hostname == y.Hostname || x.MachineIDHash != "" && x.MachineIDHash == y.MachineIDHash ||
		x.ProductUUIDHash != "" && x.ProductUUIDHash == y.ProductUUIDHash
}

// compare orders hosts: those with the bundle are first.
func (r Request) compare(a, b *infrav1.SSHHost) int {
	rank := func(h *infrav1.SSHHost) int {
		if slices.ContainsFunc(h.Status.Bundles, func(b infrav1.SSHHostBundle) bool { return b.Version == r.Version && r.Version != "" }) {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Message describes why there is no host. The SSHMachine controller waits with it.
func (c Choice) Message(r Request) string {
	asked := "no hostSelector"
	if r.Selector != nil {
		asked = fmt.Sprintf("hostSelector %q", metav1.FormatLabelSelector(r.Selector))
	}
	if r.FailureDomain != "" {
		asked += fmt.Sprintf(" and failure domain %q", r.FailureDomain)
	}
	const remedy = "let the operator add one (slipway hosts add) and offer it to the namespace (spec.offeredTo), or change the selector"
	switch {
	case c.Offered == 0:
		return fmt.Sprintf("No SSHHost is offered to namespace %s: %s", r.Namespace.Name, remedy)
	case c.Selected == 0:
		return fmt.Sprintf("One more SSHHost is needed (%s): none of the %d that are offered to namespace %s has the labels; %s", asked, c.Offered, r.Namespace.Name, remedy)
	}
	return fmt.Sprintf("One more SSHHost is needed (%s): of the %d that are offered to namespace %s and match, %s; wait until one is free, or %s",
		asked, c.Selected, r.Namespace.Name, c.obstacles(), remedy)
}

func (c Choice) obstacles() string {
	var out []string
	for _, o := range []Obstacle{otherDomain, inUse, cleaning, unchecked, unreachable, quarantined, maintenance, usedByOthers, ownRuntime, noRuntime, tooSmall, unsuitable, sameIdentity} {
		if c.Obstacles[o] == 0 {
			continue
		}
		text, names := fmt.Sprintf("%d %s", c.Obstacles[o], o), c.names[o]
		if slices.Contains([]Obstacle{unreachable, quarantined, maintenance, ownRuntime, unsuitable}, o) { // the operator can make these available
			slices.Sort(names)
			text += fmt.Sprintf(" (SSHHost %s)", condition.Names(names))
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

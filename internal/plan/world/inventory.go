package world

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Inventory simulates the hosts of infrastructure machines that need one each, out of a finite number. The provider of
// the machines implements it with the functions that its controllers use. At present only package ssh does, for
// SSHHosts. Its methods connect to nothing, and change only the objects that they return.
type Inventory interface {
	// MachineKind and HostKind are the kinds of the machines and of the hosts.
	MachineKind() schema.GroupKind
	HostKind() schema.GroupKind
	// Claim returns a machine as it is when it has claimed a host, and that host. It returns no host if the machine has
	// one, or with the message of the wait if there is none. The owner is the Machine.
	Claim(objects Objects, machine, owner *unstructured.Unstructured) (Claim, error)
	// ClaimForControlPlane returns the host of one more machine of a control plane, whose Machines are not simulated.
	// It reports whether the machines of the control plane need hosts. It returns neither a host nor a message if the
	// hosts are not known.
	ClaimForControlPlane(objects Objects, controlPlane *unstructured.Unstructured, number int64) (Claim, bool, error)
	// Release returns the host of a machine that was deleted, or nil.
	Release(objects Objects, machine *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Check returns a host as it is when it was checked.
	Check(host *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// ReasonNoHost is the reason of the wait for a host.
const ReasonNoHost = "NoHostAvailable"

// OwnerAnnotation is the annotation of a simulated host with the control plane whose machine uses it, as kind/name. It
// is neither stored nor printed, so its name has no domain. Package ssh sets it in [Inventory.ClaimForControlPlane],
// and package plan reads it for the owner of a host.
const OwnerAnnotation = "plan-owner"

// Objects reads the objects of a [World].
type Objects interface {
	// OfKind returns all objects of a kind. They must not be modified.
	OfKind(kind schema.GroupKind) []*unstructured.Unstructured
}

// Claim reserves a host for a machine. It is the result of [Inventory.Claim] and of [Inventory.ClaimForControlPlane].
type Claim struct {
	Machine, Host *unstructured.Unstructured
	// Message is the reason why there is no host. It is empty if the machine has one.
	Message string
}

// claimHost claims a host for an infrastructure machine. It reports whether the machine has one, and returns the
// function that stores the host, or the wait for one. [Providers] calls the returned function after the update of the
// machine is stored.
func (p *Providers) claimHost(u, owner *unstructured.Unstructured) (bool, func()) {
	claim, err := p.inventory.Claim(p.world.API, u, owner)
	if err != nil {
		return true, nil // an object that cannot be read is simulated by the contract alone
	}
	u.Object = claim.Machine.Object
	if claim.Message != "" {
		p.setCondition(u, map[string]any{"type": clusterv1.ReadyCondition, "status": string(metav1.ConditionFalse), "reason": ReasonNoHost, "message": claim.Message})
		return false, func() { p.waitForHost(u, claim) }
	}
	if claim.Host == nil {
		return true, nil
	}
	return true, func() { p.storeHost(u, claim) }
}

// claimForControlPlane claims hosts for a control plane one after the other, as its Machines are created, and one that
// is spare while Machines are replaced. It returns the number of replicas that have hosts then. [Providers] calls it
// when it simulates a control plane.
func (p *Providers) claimForControlPlane(u *unstructured.Unstructured, have, replicas int64, replaces bool) (next int64, follows []func()) {
	if p.inventory == nil || have >= replicas && !replaces {
		return replicas, nil
	}
	claim, needsHosts, err := p.inventory.ClaimForControlPlane(p.world.API, u, have)
	switch {
	case err != nil, !needsHosts:
		return replicas, nil
	case claim.Message != "":
		p.setCondition(u, map[string]any{"type": clusterv1.ScalingUpCondition, "status": string(metav1.ConditionTrue), "reason": ReasonNoHost, "message": claim.Message})
		return have, []func(){func() { p.waitForHost(u, claim) }}
	case claim.Host == nil:
		return replicas, nil // there are enough
	case have >= replicas:
		return replicas, nil // the host is released when the rollout ends
	}
	return have + 1, []func(){func() { p.storeHost(u, claim) }}
}

// storeHost stores the host that an object has claimed, and ends the wait for it.
func (p *Providers) storeHost(u *unstructured.Unstructured, claim Claim) {
	if p.world.API.WriteAsSystem(claim.Host, "provider") == nil && p.world.plans != nil {
		p.world.plans.Store(planKey(u), reconciler.Plan{}, nil)
	}
}

// waitForHost records that a machine waits for a host.
func (p *Providers) waitForHost(u *unstructured.Unstructured, claim Claim) {
	var plan reconciler.Plan
	plan.WaitFor(ReasonNoHost, "%s", claim.Message).For(u.GetKind(), u.GetName()).UntilUserActs()
	if p.world.plans != nil {
		p.world.plans.Store(planKey(u), plan, nil)
	}
}

func planKey(u *unstructured.Unstructured) reconciler.PlanKey {
	return reconciler.PlanKey{Controller: "provider", Kind: u.GroupVersionKind().GroupKind(), Key: client.ObjectKeyFromObject(u)}
}

// releaseHost releases the host of a machine that was removed.
func (p *Providers) releaseHost(u *unstructured.Unstructured) {
	if p.inventory == nil || u.GroupVersionKind().GroupKind() != p.inventory.MachineKind() {
		return
	}
	if p.world.plans != nil {
		p.world.plans.Drop(u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u))
	}
	host, err := p.inventory.Release(p.world.API, u)
	if err != nil || host == nil {
		return
	}
	_ = p.world.API.WriteAsSystem(host, "provider") // a kind that cannot be read has no hosts
}

// isHost reports whether an object is a host of the inventory. [Providers] calls it for each write.
func (p *Providers) isHost(u *unstructured.Unstructured) bool {
	return p.inventory != nil && u.GroupVersionKind().GroupKind() == p.inventory.HostKind()
}

// hostChanged schedules the check of a host, and what may wait for it if it is free. [Providers] calls it for each
// write of a host.
func (p *Providers) hostChanged(host *unstructured.Unstructured) {
	p.schedule(objectOf(host), host)
	if _, used, _ := unstructured.NestedMap(host.Object, "status", "claim"); used {
		return
	}
	kinds := slices.SortedFunc(maps.Keys(p.roles), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	for _, kind := range kinds {
		if p.roles[kind] != controlPlane && kind != p.inventory.MachineKind() {
			continue
		}
		for _, u := range p.world.API.OfKind(kind) {
			p.schedule(objectOf(u), u)
		}
	}
}

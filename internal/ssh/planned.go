package ssh

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/plan/world"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/machines"
)

// PlannedInventory returns the SSHHosts for the simulation of `slipway plan`. SSHMachines choose hosts with the functions of
// their controller, and nothing connects to a host. If the hosts are not known, there are enough.
func PlannedInventory(isKnown bool) world.Inventory { return plannedInventory{isKnown: isKnown} }

type plannedInventory struct{ isKnown bool }

// MachineKind implements [world.Inventory].
func (plannedInventory) MachineKind() schema.GroupKind {
	return infrav1.GroupVersion.WithKind("SSHMachine").GroupKind()
}

// HostKind implements [world.Inventory].
func (plannedInventory) HostKind() schema.GroupKind {
	return infrav1.GroupVersion.WithKind("SSHHost").GroupKind()
}

// Claim implements [world.Inventory].
func (i plannedInventory) Claim(objects world.Objects, machine, owner *unstructured.Unstructured) (world.Claim, error) {
	out := world.Claim{Machine: machine}
	m, err := typed[infrav1.SSHMachine](machine)
	if err != nil {
		return out, err
	}
	core, err := typed[clusterv1.Machine](owner)
	if err != nil {
		return out, err
	}
	before := m.DeepCopy()
	if m.Spec.ClaimID == "" {
		m.Spec.ClaimID = plannedClaimID(m)
		m.Spec.ProviderID = inventory.ProviderID(m.Spec.ClaimID)
	}
	hosts, err := all[infrav1.SSHHost](objects, i.HostKind())
	if err != nil {
		return out, err
	}
	var chosen *infrav1.SSHHost
	has := !i.isKnown
	for _, h := range hosts {
		if inventory.HasClaim(h, m) && !inventory.IsReleased(h.Status.Claim) || inventory.HasRecord(h, m) {
			has, m.Status.HostRef = true, &infrav1.SSHHostReference{Namespace: h.Namespace, Name: h.Name}
		}
	}
	if !has {
		if chosen, out.Message, err = i.choose(objects, m, core, hosts); err != nil {
			return out, err
		}
	}
	if chosen != nil {
		m.Status.HostRef = &infrav1.SSHHostReference{Namespace: chosen.Namespace, Name: chosen.Name}
		claim(chosen, m)
		if out.Host, err = untyped(chosen, i.HostKind()); err != nil {
			return out, err
		}
	}
	if !reflect.DeepEqual(m, before) {
		out.Machine, err = untyped(m, i.MachineKind())
	}
	return out, err
}

// ClaimForControlPlane implements [world.Inventory].
func (i plannedInventory) ClaimForControlPlane(objects world.Objects, controlPlane *unstructured.Unstructured, number int64) (out world.Claim, needsHosts bool, err error) {
	fields, _, _ := unstructured.NestedStringMap(controlPlane.Object, "spec", "machineTemplate", "spec", "infrastructureRef")
	template := i.template(objects, controlPlane.GetNamespace(), fields)
	if template == nil || !i.isKnown {
		return out, template != nil, nil
	}
	t, err := typed[infrav1.SSHMachineTemplate](template)
	if err != nil {
		return out, true, err
	}
	hosts, err := all[infrav1.SSHHost](objects, i.HostKind())
	if err != nil {
		return out, true, err
	}
	m := &infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: controlPlane.GetNamespace(), Name: fmt.Sprintf("%s-%d", controlPlane.GetName(), number),
		Labels: map[string]string{clusterv1.ClusterNameLabel: controlPlane.GetLabels()[clusterv1.ClusterNameLabel]},
	}, Spec: t.Spec.Template.Spec}
	m.Spec.ClaimID = plannedClaimID(m)
	core := &clusterv1.Machine{}
	core.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	core.Spec.Version, _, _ = unstructured.NestedString(controlPlane.Object, "spec", "version")
	chosen, message, err := i.choose(objects, m, core, hosts)
	if err != nil || message != "" {
		return world.Claim{Message: message}, true, err
	}
	claim(chosen, m)
	chosen.Annotations[world.OwnerAnnotation] = controlPlane.GetKind() + "/" + controlPlane.GetName()
	out.Host, err = untyped(chosen, i.HostKind())
	return out, true, err
}

// template returns the SSHMachineTemplate of a reference; nil for another kind.
func (i plannedInventory) template(objects world.Objects, namespace string, ref map[string]string) *unstructured.Unstructured {
	kind := schema.GroupKind{Group: i.MachineKind().Group, Kind: i.MachineKind().Kind + "Template"}
	if ref["kind"] != kind.Kind || ref["apiGroup"] != kind.Group {
		return nil
	}
	for _, u := range objects.OfKind(kind) {
		if u.GetNamespace() == namespace && u.GetName() == ref["name"] {
			return u
		}
	}
	return nil
}

// choose chooses a host. It returns a message if there is none.
func (i plannedInventory) choose(objects world.Objects, m *infrav1.SSHMachine, core *clusterv1.Machine, hosts []*infrav1.SSHHost) (*infrav1.SSHHost, string, error) {
	list, err := all[infrav1.SSHMachine](objects, i.MachineKind())
	if err != nil {
		return nil, "", err
	}
	var peers []infrav1.SSHMachine
	for _, p := range list {
		if p.Namespace == m.Namespace && p.Labels[clusterv1.ClusterNameLabel] == m.Labels[clusterv1.ClusterNameLabel] {
			peers = append(peers, *p)
		}
	}
	request := machines.RequestOf(m, core)
	request.Namespace = inventory.Namespace{Name: m.Namespace}
	for _, ns := range objects.OfKind(corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()) {
		if ns.GetName() == m.Namespace {
			request.Namespace.UID, request.Namespace.Labels = ns.GetUID(), ns.GetLabels()
		}
	}
	request.Peers, request.Turn = inventory.AmongPeers(m, peers, hosts)
	choice := request.Choose(hosts)
	if choice.Host == nil {
		return nil, choice.Message(request), nil
	}
	return choice.Host, "", nil
}

// claim writes the claim to a host as both controllers do.
func claim(h *infrav1.SSHHost, m *infrav1.SSHMachine) {
	h.Status.Claim = &infrav1.SSHHostClaim{Namespace: m.Namespace, Name: m.Name, ClaimID: m.Spec.ClaimID}
	h.Status.ConfirmedClaimID, h.Status.State = m.Spec.ClaimID, infrav1.SSHHostInUse
	if h.Annotations == nil {
		h.Annotations = map[string]string{}
	}
	h.Annotations[infrav1.LastNamespaceAnnotation], h.Status.LastNamespaceUID = m.Namespace, ""
}

// Release implements [world.Inventory]. A host that cannot be cleaned now remains claimed.
func (i plannedInventory) Release(objects world.Objects, machine *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	m, err := typed[infrav1.SSHMachine](machine)
	if err != nil {
		return nil, err
	}
	hosts, err := all[infrav1.SSHHost](objects, i.HostKind())
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		state := h.Status.State
		if !inventory.HasClaim(h, m) || state == infrav1.SSHHostUnreachable && inventory.IsReleased(h.Status.Claim) {
			continue
		}
		if state == infrav1.SSHHostUnreachable || state == infrav1.SSHHostQuarantined {
			h.Status.Claim.Released = ptr.To(true)
		} else {
			h.Status.Claim, h.Status.Record, h.Status.ConfirmedClaimID, h.Status.State = nil, nil, "", infrav1.SSHHostAvailable
		}
		return untyped(h, i.HostKind())
	}
	return nil, nil
}

// Check implements [world.Inventory]. A host that was never checked passes all checks, as a provider does what its contract
// requires; the address of another one may change.
func (i plannedInventory) Check(host *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	h, err := typed[infrav1.SSHHost](host)
	if err != nil || h.Status.State != "" && h.Status.ObservedGeneration == h.Generation {
		return host, err
	}
	if h.Status.State == "" {
		h.Status.State, h.Status.Facts.Hostname = infrav1.SSHHostAvailable, h.Name
	}
	h.Status.ObservedGeneration = h.Generation
	return untyped(h, i.HostKind())
}

// plannedClaimID returns a claim ID that is the same in every run.
func plannedClaimID(m *infrav1.SSHMachine) string {
	sum := sha256.Sum256([]byte(m.Namespace + "/" + m.Name))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

func typed[T any](u *unstructured.Unstructured) (*T, error) {
	out := new(T)
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
}

func untyped(o any, kind schema.GroupKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(infrav1.GroupVersion.WithKind(kind.Kind))
	return u, err
}

// all returns all objects of a kind.
func all[T any](objects world.Objects, kind schema.GroupKind) (out []*T, err error) {
	for _, u := range objects.OfKind(kind) {
		o, err := typed[T](u)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

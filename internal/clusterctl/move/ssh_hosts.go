package move

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/infrastructure"
)

// readTargetHosts reads the SSHHosts and the labels of the Namespaces of the target, if SSHHosts are to be moved.
// readInput calls it.
func (m *Move) readTargetHosts(ctx context.Context, f *planInput) error {
	hosts := movedHosts(f.selection)
	if len(hosts) == 0 {
		return nil
	}
	k := transfer.KindOf(f.kinds, hosts[0].ID)
	if k.Missing {
		return nil
	}
	var err error
	if f.targetHosts, err = m.target.List(ctx, k, ""); err != nil {
		return err
	}
	var list corev1.NamespaceList
	if err := m.target.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing the namespaces of the target: %w", err)
	}
	f.targetLabels = map[string]map[string]string{}
	for _, ns := range list.Items {
		f.targetLabels[ns.Name] = ns.Labels
	}
	return nil
}

// movedHosts returns the SSHHosts of a selection that move.
func movedHosts(s graph.Selection) (out []graph.Item) {
	for _, i := range s.Items() {
		if i.ID.IsSSH(graph.SSHHost) && !i.Copy {
			out = append(out, i)
		}
	}
	return out
}

// checkHosts adds problems of SSHHosts that cannot exist at the target, and notes about their Namespaces. The target
// finds the SSHMachine of a host by the record, a file on the machine itself that has the names of the source. makePlan
// calls it, except for an export to a directory.
func (p *Plan) checkHosts(f planInput) {
	for _, i := range movedHosts(f.selection) {
		machine, _, claimed := graph.MachineOf(i.Unstructured)
		if to := f.at(machine); claimed && to != machine {
			p.Problems = append(p.Problems, fmt.Sprintf("%s has the record of %s, which cannot get the name %s: move it without changing names", i.ID, machine, to))
		}
		if claimed && i.GetAnnotations()[infrav1.LastNamespaceAnnotation] != machine.Namespace { // an interrupted move could not find it
			p.Problems = append(p.Problems, fmt.Sprintf("%s was claimed by %s just now: repeat the command when the host is in use", i.ID, machine))
		}
		p.checkTargetHosts(f, i)
		p.checkCredentials(f, i)
		if labels, exists := f.targetLabels[machine.Namespace]; claimed && machine.Namespace != i.ID.Namespace && !(exists && transfer.IsOffered(i.Unstructured, labels)) {
			note := fmt.Sprintf("note: the SSHHosts of namespace %s stay claimed, but new machines of namespace %s can claim them only if Namespace %[2]s of the target has the labels in spec.offeredTo", i.ID.Namespace, machine.Namespace)
			if !slices.Contains(p.Notes, note) {
				p.Notes = append(p.Notes, note)
			}
		}
	}
}

// checkTargetHosts adds problems with SSHHosts that the target has already. One with the same name and address, such as
// one that was prepared for the move, is updated.
func (p *Plan) checkTargetHosts(f planInput, i graph.Item) {
	for _, other := range f.targetHosts {
		id := graph.IDOf(other.Unstructured)
		hasSameName, isSameMachine := id == f.at(i.ID), addressOf(other.Unstructured) == addressOf(i.Unstructured)
		_, _, claimed := graph.MachineOf(other.Unstructured)
		switch {
		case hasSameName && !isSameMachine:
			p.Problems = append(p.Problems, fmt.Sprintf("the target has another %s, with address %s: delete it there, or recreate it with another name", id, addressOf(other.Unstructured)))
		case hasSameName && claimed:
			p.Problems = append(p.Problems, fmt.Sprintf("the target has %s already, and uses it: delete the Machine that uses it there", id))
		case isSameMachine && !hasSameName:
			p.Problems = append(p.Problems, fmt.Sprintf("the target has %s with the address of %s, so both are the same machine: delete it there", id, i.ID))
		}
	}
}

// checkCredentials adds problems with Secrets that are not updated because they are copied, and that differ at the
// target.
func (p *Plan) checkCredentials(f planInput, host graph.Item) {
	for _, id := range graph.CredentialsOf(host.Unstructured) {
		at := slices.IndexFunc(f.selection.Items(), func(i graph.Item) bool { return i.ID == id })
		if at < 0 {
			p.Problems = append(p.Problems, fmt.Sprintf("%s does not exist, but has the credentials of %s: create it, or correct spec.credentialsRef", id, host.ID))
			continue
		}
		secret := f.selection.Items()[at]
		existing, exists := f.target[f.at(id)]
		if secret.Copy && exists && !reflect.DeepEqual(secret.Object.Object["data"], existing.Object["data"]) {
			text := fmt.Sprintf("the target has another %s, which %s would use there: rename one of them", f.at(id), host.ID)
			if !slices.Contains(p.Problems, text) {
				p.Problems = append(p.Problems, text)
			}
		}
	}
}

// addressOf returns the address and the port of an SSHHost, with its jump host.
func addressOf(host *unstructured.Unstructured) string {
	server := func(path ...string) string {
		address, _, _ := unstructured.NestedString(host.UnstructuredContent(), append(slices.Clone(path), "address")...)
		port, _, _ := unstructured.NestedInt64(host.UnstructuredContent(), append(slices.Clone(path), "port")...)
		return fmt.Sprintf("%s:%d", address, cmp.Or(port, 22))
	}
	if _, jumps, _ := unstructured.NestedMap(host.UnstructuredContent(), "spec", "jump"); jumps {
		return server("spec") + " through " + server("spec", "jump")
	}
	return server("spec")
}

// isOfHosts reports whether an entry of the journal outside of the namespace is an SSHHost that moves with the machines
// of the namespace, or a Secret that such an SSHHost owns. validateJournal calls it before a move is continued, and
// refuses the journal if it is false. A tenant can write the journal, but neither the status nor the metadata of an
// SSHHost. The source decides as long as it has the object, because the operator may have prepared the one at the
// target.
func (m *Move) isOfHosts(ctx context.Context, j *journal, e transfer.Entry) (bool, error) {
	isSecret := e.ID.Group == "" && e.ID.Kind == "Secret"
	if !isSecret && !e.ID.IsSSH(graph.SSHHost) {
		return false, nil
	}
	source, err := m.source.Get(ctx, e.ID, e.Version)
	if err != nil {
		return false, err
	}
	var target *unstructured.Unstructured
	if m.target != nil { // an export has none
		if target, err = m.target.Get(ctx, e.At(), e.Version); err != nil {
			return false, err
		}
	}
	labels, err := m.source.NamespaceLabels(ctx, m.Scope.Namespace)
	if err != nil {
		return false, err
	}
	moves := func(o *unstructured.Unstructured) bool {
		return isSecret && j.hasOwner(o) || !isSecret && m.isMoving(o, labels)
	}
	switch {
	case source == nil:
		return target == nil || moves(target), nil
	case target == nil || isSecret && e.Existed:
		return moves(source), nil
	case isSecret:
		return moves(source) && moves(target), nil
	}
	_, _, isUsed := graph.MachineOf(target)
	return moves(source) && (!isUsed || e.Existed && addressOf(source) == addressOf(target)), nil
}

// isMoving reports whether an SSHHost is one that the move selects, or that it has created. A created one has lost its
// status, but its metadata has the namespace that uses it. The labels belong to the Namespace at the source. The
// conditions must match the selection of hosts in packages graph and transfer: a host in use moves only with its
// SSHMachine, and another host if a label of clusterctl marks it and it is offered to the namespace. If they are
// narrower, validateJournal refuses to continue the move. If they are wider, a tenant can move hosts of other tenants.
func (m *Move) isMoving(host *unstructured.Unstructured, labels map[string]string) bool {
	machine, _, claimed := graph.MachineOf(host)
	if claimed {
		return machine.Namespace == m.Scope.Namespace
	}
	_, alone := host.GetLabels()[graph.MoveLabel]
	value, hierarchy := host.GetLabels()[graph.MoveHierarchyLabel]
	isNoted := host.GetAnnotations()[infrav1.LastNamespaceAnnotation] == m.Scope.Namespace
	return (alone || hierarchy) && (isNoted || value != infrastructure.MoveInUse && transfer.IsOffered(host, labels))
}

// hasOwner reports whether an SSHHost in the journal owns a Secret.
func (j *journal) hasOwner(secret *unstructured.Unstructured) bool {
	return slices.ContainsFunc(secret.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.Kind == graph.SSHHost && slices.ContainsFunc(j.Plan.Entries, func(e transfer.Entry) bool {
			return !e.Copy && e.ID.IsSSH(graph.SSHHost) && e.ID.Namespace == secret.GetNamespace() && e.ID.Name == ref.Name
		})
	})
}

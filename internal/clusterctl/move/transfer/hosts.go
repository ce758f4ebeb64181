package transfer

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
)

func isHostKind(k Kind) bool { return graph.ID{Group: k.Group, Kind: k.Kind}.IsSSH(graph.SSHHost) }

// readHosts reads the SSHHosts of the namespace and, because the operator has them in namespaces of their own, SSHHosts
// in other namespaces. It also reads the Secrets of the ones that may move: SSHHosts in use, and labelled ones that are
// offered to the namespace. Users of a namespace without machines on SSHHosts need no right to read them.
// [Endpoint.Read] calls it.
func (s *Endpoint) readHosts(ctx context.Context, kinds []Kind, namespace string, objects []graph.Object) ([]graph.Object, error) {
	at := slices.IndexFunc(kinds, isHostKind)
	if at < 0 {
		return nil, nil
	}
	k := kinds[at]
	isUsed := slices.ContainsFunc(objects, func(o graph.Object) bool { return graph.IDOf(o.Unstructured).IsSSH(graph.SSHMachine) })
	if !isUsed && namespace != "" {
		hosts, err := s.List(ctx, k, namespace)
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		return hosts, err
	}
	hosts, err := s.List(ctx, k, "")
	if apierrors.IsForbidden(err) && namespace != "" {
		return nil, fault.New(fault.Invalid, "HostsNotReadable",
			"namespace %s has SSHMachines, with which their SSHHosts move: use an account that may list SSHHosts and read their Secrets in the namespaces of the hosts", namespace).From(err)
	}
	if err != nil || namespace == "" {
		return hosts, err
	}
	labels, err := s.NamespaceLabels(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return s.withCredentials(ctx, namespace, slices.DeleteFunc(hosts, func(h graph.Object) bool { return isForeign(h, namespace, labels) }))
}

// NamespaceLabels returns the labels of a Namespace, none if it does not exist. Package move checks the SSHHosts of
// other namespaces with them.
func (s *Endpoint) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	var ns corev1.Namespace
	err := s.Client.Get(ctx, client.ObjectKey{Name: name}, &ns)
	return ns.Labels, client.IgnoreNotFound(err)
}

// isForeign reports whether an SSHHost of another namespace has nothing to do with a namespace: it is labelled to move,
// but nothing uses it, and it is not offered to the namespace.
func isForeign(host graph.Object, namespace string, labels map[string]string) bool {
	_, _, claimed := graph.MachineOf(host.Unstructured)
	return host.GetNamespace() != namespace && !claimed && isLabelled(host) && !IsOffered(host.Unstructured, labels)
}

// isLabelled reports whether a label on an SSHHost or on its CRD has it moved without a machine.
func isLabelled(host graph.Object) bool {
	_, alone := host.GetLabels()[graph.MoveLabel]
	_, hierarchy := host.GetLabels()[graph.MoveHierarchyLabel]
	return alone || hierarchy || host.Marked || host.MarkedHierarchy
}

// IsOffered reports whether SSHMachines of another namespace may claim an SSHHost, by the labels of the Namespace. A
// labelled SSHHost of another namespace moves only if it is offered to the moved namespace.
func IsOffered(host *unstructured.Unstructured, namespace map[string]string) bool {
	fields, offered, _ := unstructured.NestedMap(host.UnstructuredContent(), "spec", "offeredTo")
	var selector metav1.LabelSelector
	if !offered || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) != nil {
		return false
	}
	matches, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && matches.Matches(labels.Set(namespace))
}

// withCredentials adds the Secrets of the SSHHosts in other namespaces that may move.
func (s *Endpoint) withCredentials(ctx context.Context, namespace string, hosts []graph.Object) ([]graph.Object, error) {
	out := slices.Clone(hosts)
	seen := map[graph.ID]bool{}
	for _, h := range hosts {
		machine, _, claimed := graph.MachineOf(h.Unstructured)
		if h.GetNamespace() == namespace || claimed && machine.Namespace != namespace || !claimed && !isLabelled(h) {
			continue
		}
		for _, id := range graph.CredentialsOf(h.Unstructured) {
			if seen[id] {
				continue
			}
			seen[id] = true
			secret, err := s.Get(ctx, id, "v1")
			if err != nil {
				return nil, err
			}
			if secret != nil {
				out = append(out, graph.Object{Unstructured: secret})
			}
		}
	}
	return out, nil
}

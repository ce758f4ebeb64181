package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

func localMachine() schema.GroupVersionKind { return infrav1.GroupVersion.WithKind("LocalMachine") }

func hostedControlPlane() schema.GroupVersionKind {
	return hostedv1.GroupVersion.WithKind("HostedControlPlane")
}

// values of annotations that make something fail.
type values map[string][]string

func nodeFaults() values {
	return values{infrav1.NeverBootsAnnotation: {"true"}, infrav1.NotReadyAfterAnnotation: {"0s", "5s"}}
}

func apiFaults() values {
	return values{hostedv1.APIDownAnnotation: {"5s", "30s", "always"}, hostedv1.APISlowAnnotation: {"100ms", "2s"}}
}

func machineFaults() values {
	return values{infrav1.ControlPlaneFaultsAnnotation: {
		"etcd-down", "etcd-delay=1s", "etcd-alarm=NOSPACE", "pod-down=kube-scheduler", "pod-down=kube-apiserver", "etcd-learner,etcd-delay=200ms",
	}}
}

func (s *soak) failNode(ctx context.Context, cluster int) error {
	o, err := s.anyOf(ctx, localMachine(), cluster, false)
	return s.fail(ctx, o, err, nodeFaults())
}

// failAPI makes a control plane fail: the one that is hosted, or one of its Machines.
func (s *soak) failAPI(ctx context.Context, cluster int) error {
	if s.template.OnMachines {
		o, err := s.anyOf(ctx, localMachine(), cluster, true)
		return s.fail(ctx, o, err, machineFaults())
	}
	o, err := s.anyOf(ctx, hostedControlPlane(), cluster, false)
	return s.fail(ctx, o, err, apiFaults())
}

// fail makes an object fail, or takes its faults back; nil: there is none.
func (s *soak) fail(ctx context.Context, o *unstructured.Unstructured, err error, all values) error {
	if o == nil || err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all))
	if s.dice.IntN(2) == 0 {
		return withoutFaults(ctx, s.client, o, names)
	}
	name := names[s.dice.IntN(len(names))]
	value := all[name][s.dice.IntN(len(all[name]))]
	return s.patch(ctx, o, `{"metadata":{"annotations":{%q:%q}}}`, name, value)
}

func withoutFaults(ctx context.Context, c client.Client, o client.Object, names []string) error {
	var none []string
	for _, name := range names {
		if _, ok := o.GetAnnotations()[name]; ok {
			none = append(none, fmt.Sprintf("%q:null", name))
		}
	}
	if len(none) == 0 {
		return nil
	}
	return c.Patch(ctx, o, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%s}}}`, strings.Join(none, ","))))
}

// heal takes back every fault.
func (s *soak) heal(ctx context.Context) error {
	s.liar.lie(false)
	return s.healIn(ctx, s.client)
}

// healIn takes back the faults of the objects of a management cluster.
func (s *soak) healIn(ctx context.Context, c client.Client) error {
	nodes := nodeFaults()
	maps.Copy(nodes, machineFaults())
	for gvk, all := range map[schema.GroupVersionKind]values{localMachine(): nodes, hostedControlPlane(): apiFaults()} {
		objects, err := listOf(ctx, c, gvk, client.InNamespace(s.template.Namespace))
		if err != nil {
			return err
		}
		for i := range objects {
			if err := withoutFaults(ctx, c, &objects[i], slices.Sorted(maps.Keys(all))); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

func localMachine() schema.GroupVersionKind { return infrav1.GroupVersion.WithKind("LocalMachine") }

func hostedControlPlane() schema.GroupVersionKind {
	return hostedv1.GroupVersion.WithKind("HostedControlPlane")
}

// faults are the annotations that make something fail, by kind, with the values that are used.
func faults() map[schema.GroupVersionKind]map[string][]string {
	return map[schema.GroupVersionKind]map[string][]string{
		localMachine(): {
			infrav1.NeverBootsAnnotation: {"true"}, infrav1.NotReadyAfterAnnotation: {"0s", "5s"},
		},
		hostedControlPlane(): {
			hostedv1.APIDownAnnotation: {"5s", "30s", "always"}, hostedv1.APISlowAnnotation: {"100ms", "2s"},
		},
	}
}

func (s *soak) failNode(ctx context.Context, cluster int) error {
	return s.fail(ctx, localMachine(), cluster)
}

func (s *soak) failAPI(ctx context.Context, cluster int) error {
	return s.fail(ctx, hostedControlPlane(), cluster)
}

// fail makes an object of the cluster fail, or takes its faults back.
func (s *soak) fail(ctx context.Context, gvk schema.GroupVersionKind, cluster int) error {
	o, err := s.anyOf(ctx, gvk, cluster)
	if o == nil {
		return err
	}
	all := faults()[gvk]
	names := slices.Sorted(maps.Keys(all))
	if s.dice.IntN(2) == 0 {
		return s.withoutFaults(ctx, o, names)
	}
	name := names[s.dice.IntN(len(names))]
	value := all[name][s.dice.IntN(len(all[name]))]
	return s.patch(ctx, o, `{"metadata":{"annotations":{%q:%q}}}`, name, value)
}

func (s *soak) withoutFaults(ctx context.Context, o client.Object, names []string) error {
	var none []string
	for _, name := range names {
		if _, ok := o.GetAnnotations()[name]; ok {
			none = append(none, fmt.Sprintf("%q:null", name))
		}
	}
	if len(none) == 0 {
		return nil
	}
	return s.patch(ctx, o, `{"metadata":{"annotations":{%s}}}`, strings.Join(none, ","))
}

// heal takes back every fault.
func (s *soak) heal(ctx context.Context) error {
	for gvk, all := range faults() {
		objects, err := s.list(ctx, gvk)
		if err != nil {
			return err
		}
		for i := range objects {
			if err := s.withoutFaults(ctx, &objects[i], slices.Sorted(maps.Keys(all))); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// known waits until the management cluster's garbage collector knows the kinds of Cluster API. It looks for new kinds every
// 30 s, and asks, ever later, for each owner that it has heard of before it knew the owner's kind: requests of an installation
// that is younger than a minute or two, not of its clusters.
//
// Only the garbage collector ends a deletion in the foreground, and only of a kind that it knows.
func (s *stage) known(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	s.say("waiting until its garbage collector knows the kinds …")
	rule := &clusterv1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.template.Namespace, Name: "known"},
		Spec: clusterv1.MachineDrainRuleSpec{
			Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip},
		},
	}
	if err := s.client.Create(ctx, rule); err != nil {
		return fmt.Errorf("creating an object to collect: %w", err)
	}
	if err := s.client.Delete(ctx, rule, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return fmt.Errorf("deleting an object to collect: %w", err)
	}
	err := s.of("machinedrainrules").Until(ctx, func(all []*unstructured.Unstructured) bool { return len(all) == 0 })
	if err != nil {
		return fmt.Errorf("the garbage collector of the management cluster does not end a deletion: %w", err)
	}
	return nil
}

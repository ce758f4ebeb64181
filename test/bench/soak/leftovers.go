package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/template"
)

// searched are the kinds in which something may be left over.
func searched() []schema.GroupVersionKind {
	local := schema.GroupVersion{Group: "infrastructure.slipway.dev", Version: "v1alpha1"}
	kubeadm := schema.GroupVersion{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2"}
	hosted := schema.GroupVersion{Group: "controlplane.slipway.dev", Version: "v1alpha1"}
	return []schema.GroupVersionKind{
		follow.Kind("Cluster"), follow.Kind("MachineDeployment"), follow.Kind("MachineSet"), follow.Kind("Machine"),
		local.WithKind("LocalCluster"), local.WithKind("LocalMachineTemplate"), local.WithKind("LocalMachine"),
		kubeadm.WithKind("KubeadmConfigTemplate"), kubeadm.WithKind("KubeadmConfig"), hosted.WithKind("HostedControlPlane"),
		{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane"}, follow.Kind("MachineHealthCheck"),
		follow.Kind("ClusterClass"), local.WithKind("LocalClusterTemplate"),
		{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlaneTemplate"},
		{Version: "v1", Kind: "Secret"},
	}
}

// leftovers fails if there is anything that should not be.
func (s *soak) leftovers(ctx context.Context) error {
	counts, owners := map[string]int{}, map[types.UID]bool{}
	var all []unstructured.Unstructured
	for _, gvk := range searched() {
		objects, err := s.list(ctx, gvk)
		if err != nil {
			return err
		}
		for _, o := range objects {
			counts[gvk.Kind]++
			owners[o.GetUID()] = true
		}
		all = append(all, objects...)
	}
	s.report.Objects = counts
	var problems []error
	for _, o := range all {
		if problem := leftover(o, owners); problem != "" {
			problems = append(problems, fmt.Errorf("%s %s %s", o.GetKind(), o.GetName(), problem))
		}
	}
	for _, kind := range []string{"LocalMachine", "KubeadmConfig"} {
		if counts[kind] != counts["Machine"] {
			problems = append(problems, fmt.Errorf("%d %ss stand against %d Machines", counts[kind], kind, counts["Machine"]))
		}
	}
	return errors.Join(append(problems, s.nodes(ctx), s.elsewhere(ctx))...)
}

// leftover says why an object should not be there: it is being deleted, or none of its owners exists.
func leftover(o unstructured.Unstructured, exists map[types.UID]bool) string {
	if o.GetDeletionTimestamp() != nil {
		return fmt.Sprintf("is being deleted and does not go: finalizers %v", o.GetFinalizers())
	}
	refs := o.GetOwnerReferences()
	if len(refs) == 0 {
		return ""
	}
	for _, ref := range refs {
		if exists[ref.UID] {
			return ""
		}
	}
	return fmt.Sprintf("belongs to %s %s, which is gone", refs[0].Kind, refs[0].Name)
}

// nodes compares the Nodes of every cluster with its Machines.
func (s *soak) nodes(ctx context.Context) error {
	var problems []error
	for n := range s.clusters {
		name := template.Cluster(n)
		machines, err := s.list(ctx, follow.Kind("Machine"), client.MatchingLabels{"cluster.x-k8s.io/cluster-name": name})
		if err != nil {
			return err
		}
		var want, have []string
		for _, m := range machines {
			node, _, _ := unstructured.NestedString(m.Object, "status", "nodeRef", "name")
			want = append(want, node)
		}
		config, err := follow.Workload(ctx, s.pair.Config, types.NamespacedName{Namespace: s.template.Namespace, Name: name})
		if err != nil {
			return err
		}
		calls := connrotation.NewDialer((&net.Dialer{}).DialContext)
		config.Dial = calls.DialContext
		err = follow.Objects{Config: config, Resource: follow.Nodes()}.Until(ctx, func(nodes []*unstructured.Unstructured) bool {
			for _, o := range nodes {
				have = append(have, o.GetName())
			}
			return true
		})
		calls.CloseAll() // the manager serves this API: it would seem to hold them
		if err != nil {
			return fmt.Errorf("nodes of %s: %w", name, err)
		}
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(want, have) {
			problems = append(problems, fmt.Errorf("cluster %s has the Nodes %v, its Machines say %v", name, have, want))
		}
	}
	return errors.Join(problems...)
}

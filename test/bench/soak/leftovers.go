package soak

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
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// searchedKinds are the kinds of possible leftovers.
func searchedKinds() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{{Version: "v1", Kind: "Secret"}}
	for _, g := range []struct {
		group schema.GroupVersion
		kinds []string
	}{
		{clusterv1.GroupVersion, []string{"Cluster", "MachineDeployment", "MachineSet", "Machine", "MachineHealthCheck", "ClusterClass"}},
		{infrav1.GroupVersion, []string{"LocalCluster", "LocalMachineTemplate", "LocalMachine", "LocalClusterTemplate"}},
		{schema.GroupVersion{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2"}, []string{"KubeadmConfigTemplate", "KubeadmConfig"}},
		{schema.GroupVersion{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2"}, []string{"KubeadmControlPlane", "KubeadmControlPlaneTemplate"}},
		{hostedv1.GroupVersion, []string{"HostedControlPlane"}},
	} {
		for _, kind := range g.kinds {
			kinds = append(kinds, g.group.WithKind(kind))
		}
	}
	return kinds
}

// checkLeftovers returns an error for each object that should not exist.
func (s *soak) checkLeftovers(ctx context.Context) error {
	s.logf("every cluster is ready; searching for leftovers …")
	s.report.Lies = s.extension.counts()
	counts, existing := map[string]int{}, map[types.UID]bool{}
	var all []unstructured.Unstructured
	for _, kind := range searchedKinds() {
		objects, err := harness.List(ctx, s.Client, kind, client.InNamespace(s.Namespace))
		if err != nil {
			return err
		}
		for _, o := range objects {
			counts[kind.Kind]++
			existing[o.GetUID()] = true
		}
		all = append(all, objects...)
	}
	s.report.Objects = counts
	var problems []error
	for _, o := range all {
		if problem := leftover(o, existing); problem != "" {
			problems = append(problems, fmt.Errorf("%s %s %s", o.GetKind(), o.GetName(), problem))
		}
	}
	for _, kind := range []string{"LocalMachine", "KubeadmConfig"} {
		if counts[kind] != counts["Machine"] {
			problems = append(problems, fmt.Errorf("there are %d %ss and %d Machines", counts[kind], kind, counts["Machine"]))
		}
	}
	for n := range s.clusters {
		problems = append(problems, s.checkNodes(ctx, n))
	}
	return errors.Join(append(problems, s.checkOther(ctx))...)
}

// leftover describes why an object should not exist: it is being deleted, or none of its owners exists.
func leftover(o unstructured.Unstructured, existing map[types.UID]bool) string {
	if o.GetDeletionTimestamp() != nil {
		return fmt.Sprintf("is being deleted but still exists: finalizers %v", o.GetFinalizers())
	}
	refs := o.GetOwnerReferences()
	for _, ref := range refs {
		if existing[ref.UID] {
			return ""
		}
	}
	if len(refs) == 0 {
		return ""
	}
	return fmt.Sprintf("has the owner %s %s, which is gone", refs[0].Kind, refs[0].Name)
}

// checkNodes compares the Nodes of a cluster with its Machines.
func (s *soak) checkNodes(ctx context.Context, cluster int) error {
	name := harness.ClusterName(cluster)
	machines, err := harness.List(ctx, s.Client, clusterv1.GroupVersion.WithKind("Machine"), client.InNamespace(s.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: name})
	if err != nil {
		return err
	}
	var expected, actual []string
	for _, m := range machines {
		node, _, _ := unstructured.NestedString(m.Object, "status", "nodeRef", "name")
		expected = append(expected, node)
	}
	config, err := s.Workload(ctx, cluster)
	if err != nil {
		return err
	}
	dialer := connrotation.NewDialer((&net.Dialer{}).DialContext)
	defer dialer.CloseAll() // the manager serves the workload API, and its open files are counted later
	config.Dial = dialer.DialContext
	err = harness.Nodes(config).Until(ctx, func(nodes []*unstructured.Unstructured) bool {
		for _, o := range nodes {
			actual = append(actual, o.GetName())
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list the Nodes of %s: %w", name, err)
	}
	slices.Sort(expected)
	slices.Sort(actual)
	if !slices.Equal(expected, actual) {
		return fmt.Errorf("cluster %s has the Nodes %v, but its Machines refer to %v", name, actual, expected)
	}
	return nil
}

// checkOther searches the other management cluster, in which only shared objects may exist.
func (s *soak) checkOther(ctx context.Context) error {
	c, err := client.New(s.other.Config, client.Options{})
	if err != nil {
		return err
	}
	var problems []error
	for _, kind := range []schema.GroupVersionKind{
		clusterv1.GroupVersion.WithKind("Cluster"), clusterv1.GroupVersion.WithKind("Machine"),
		clusterv1.GroupVersion.WithKind("MachineDeployment"), infrav1.GroupVersion.WithKind("LocalMachine"),
	} {
		objects, err := harness.List(ctx, c, kind, client.InNamespace(s.Namespace))
		problems = append(problems, err)
		for _, o := range objects {
			problems = append(problems, fmt.Errorf("%s %s is left in the other management cluster", o.GetKind(), o.GetName()))
		}
	}
	return errors.Join(problems...)
}

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// atOnce is how many clusters are created at once.
const atOnce = 32

var (
	core      = schema.GroupVersion{Group: "cluster.x-k8s.io", Version: "v1beta2"}
	bootstrap = schema.GroupVersion{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2"}
	local     = schema.GroupVersion{Group: "infrastructure.slipway.dev", Version: "v1alpha1"}
	hosted    = schema.GroupVersion{Group: "controlplane.slipway.dev", Version: "v1alpha1"}
	secrets   = schema.GroupVersion{Version: "v1"}
)

// writer creates clusters as their controllers would have left them: nothing controls them.
type writer struct {
	client    client.Client
	namespace string
}

func (w writer) create(ctx context.Context, kind schema.GroupVersionKind, name string, owner *unstructured.Unstructured, content map[string]any) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(w.namespace)
	o.SetName(name)
	if owner != nil {
		unstructuredOwner(o, owner)
	}
	if err := w.client.Create(ctx, o); err != nil {
		return nil, fmt.Errorf("create %s %s: %w", kind.Kind, name, err)
	}
	return o, nil
}

func unstructuredOwner(o, owner *unstructured.Unstructured) {
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{
		"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(), "name": owner.GetName(), "uid": string(owner.GetUID()), "controller": true,
	}}, "metadata", "ownerReferences")
}

func ref(version schema.GroupVersion, kind, name string) map[string]any {
	return map[string]any{"apiGroup": version.Group, "kind": kind, "name": name}
}

func simulated() map[string]any {
	return map[string]any{"backend": map[string]any{"simulated": map[string]any{}}}
}

func cloudConfig() map[string]any { return map[string]any{"format": "cloud-config"} }

// begin creates the namespace of the clusters.
func (w writer) begin(ctx context.Context) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(secrets.WithKind("Namespace"))
	o.SetName(w.namespace)
	return w.client.Create(ctx, o)
}

// clusters creates several clusters.
func (w writer) clusters(ctx context.Context, count, machines int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n := range count {
		group.Go(func() error { return w.cluster(ctx, fmt.Sprintf("c%04d", n), machines) })
	}
	return group.Wait()
}

// cluster creates one, with its Secrets, a MachineSet and Machines.
func (w writer) cluster(ctx context.Context, name string, machines int) error {
	cluster, err := w.create(ctx, core.WithKind("Cluster"), name, nil, map[string]any{"spec": map[string]any{
		"controlPlaneRef": ref(hosted, "HostedControlPlane", name), "infrastructureRef": ref(local, "LocalCluster", name),
	}})
	if err != nil {
		return err
	}
	if _, err := w.create(ctx, local.WithKind("LocalCluster"), name, cluster, map[string]any{"spec": simulated()}); err != nil {
		return err
	}
	plane := simulated()
	plane["version"] = "v1.36.3"
	if _, err := w.create(ctx, hosted.WithKind("HostedControlPlane"), name, cluster, map[string]any{"spec": plane}); err != nil {
		return err
	}
	for _, purpose := range []string{"ca", "etcd", "proxy", "sa", "kubeconfig"} {
		if _, err := w.create(ctx, secrets.WithKind("Secret"), name+"-"+purpose, cluster, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"cluster.x-k8s.io/cluster-name": name}},
			"type":     "cluster.x-k8s.io/secret", "stringData": map[string]any{"value": strings.Repeat(rand.Text(), 60)},
		}); err != nil {
			return err
		}
	}
	return w.workers(ctx, cluster, machines)
}

// workers creates a MachineDeployment with all that is below it.
func (w writer) workers(ctx context.Context, cluster *unstructured.Unstructured, machines int) error {
	name := cluster.GetName() + "-workers"
	labels := map[string]any{"cluster.x-k8s.io/cluster-name": cluster.GetName(), "cluster.x-k8s.io/deployment-name": name}
	machine := func(n string) map[string]any {
		return map[string]any{
			"clusterName": cluster.GetName(), "version": "v1.36.3", "infrastructureRef": ref(local, "LocalMachineTemplate", n),
			"bootstrap": map[string]any{"configRef": ref(bootstrap, "KubeadmConfigTemplate", n)},
		}
	}
	set := func() map[string]any {
		return map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{
				"clusterName": cluster.GetName(), "replicas": int64(machines), "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": machine(name)},
			},
		}
	}
	deployment, err := w.create(ctx, core.WithKind("MachineDeployment"), name, cluster, set())
	if err != nil {
		return err
	}
	owner, err := w.create(ctx, core.WithKind("MachineSet"), name+"-a", deployment, set())
	if err != nil {
		return err
	}
	if _, err := w.create(ctx, local.WithKind("LocalMachineTemplate"), name, cluster, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": simulated()}}}); err != nil {
		return err
	}
	if _, err := w.create(ctx, bootstrap.WithKind("KubeadmConfigTemplate"), name, cluster, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": cloudConfig()}}}); err != nil {
		return err
	}
	for n := range machines {
		if err := w.machine(ctx, owner, fmt.Sprintf("%s-%04d", name, n), labels, cluster.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// machine creates a Machine with its bootstrap config and infrastructure.
func (w writer) machine(ctx context.Context, owner *unstructured.Unstructured, name string, labels map[string]any, cluster string) error {
	machine, err := w.create(ctx, core.WithKind("Machine"), name, owner, map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec": map[string]any{
			"clusterName": cluster, "version": "v1.36.3", "infrastructureRef": ref(local, "LocalMachine", name),
			"bootstrap": map[string]any{"configRef": ref(bootstrap, "KubeadmConfig", name)},
		},
	})
	if err != nil {
		return err
	}
	if _, err := w.create(ctx, local.WithKind("LocalMachine"), name, machine, map[string]any{"metadata": map[string]any{"labels": labels}, "spec": simulated()}); err != nil {
		return err
	}
	_, err = w.create(ctx, bootstrap.WithKind("KubeadmConfig"), name, machine, map[string]any{"metadata": map[string]any{"labels": labels}, "spec": cloudConfig()})
	return err
}

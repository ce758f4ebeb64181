package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	leastNodes = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
	mostNodes  = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
)

// TestAutoscaler sends the requests of the cluster autoscaler 1.36 with its provider clusterapi, with the rights of
// docs/cluster-autoscaler.yaml: its informers on both sides, the capacity of a group without a node, scaling from zero, the
// removal of one chosen node, and scaling back to zero.
func TestAutoscaler(t *testing.T) { // AS-01, IM-10
	in := newInstallation(t)
	in.up()
	in.kubectl("apply", "-f", "../../docs/cluster-autoscaler.yaml")
	in.kubectl("create", "serviceaccount", "autoscaler")
	in.kubectl("create", "rolebinding", "autoscaler", "--clusterrole=cluster-autoscaler", "--serviceaccount=default:autoscaler")
	in.run("create", "cluster", "many", "--class", "simulated", "--workers", "1")
	in.run("create", "cluster", "real", "--workers", "1", "--subnet", freeNetwork(t)+"0.0/16")
	for _, name := range []string{"many", "real"} {
		in.kubectl("patch", "cluster", name, "--type", "json", "-p", fmt.Sprintf(`[
			{"op": "remove", "path": "/spec/topology/workers/machineDeployments/0/replicas"},
			{"op": "add", "path": "/spec/topology/workers/machineDeployments/0/metadata", "value": {"annotations": {%q: "0", %q: "3"}}},
			{"op": "add", "path": "/spec/topology/workers/machinePools", "value": [
				{"class": "default-worker", "name": "pool", "metadata": {"annotations": {%[1]q: "0", %[2]q: "3"}}}]}]`, leastNodes, mostNodes))
	}
	a := newAutoscaler(t, in)
	for name, most := range map[string]int32{"many": 3, "real": 1} {
		t.Run(name, func(t *testing.T) {
			a := a.with(t)
			a.awaitInformers(in.workload(name))
			for _, resource := range []string{"machinedeployments", "machinepools"} {
				a.scaleThereAndBack(name, resource, most)
			}
		})
	}
}

// autoscaler is the part of a cluster autoscaler that talks to the management cluster.
type autoscaler struct {
	*testing.T
	objects dynamic.Interface
	scales  scale.ScalesGetter
	groups  dynamicinformer.DynamicSharedInformerFactory
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

func (a autoscaler) with(t *testing.T) autoscaler { a.T = t; return a }

func (a autoscaler) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// newAutoscaler connects with the token of the service account, and starts the informers of the management cluster.
func newAutoscaler(t *testing.T, in *installation) autoscaler {
	t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", in.dataDir+"/kubeconfig")
	a := autoscaler{T: t}
	a.must(err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = strings.TrimSpace(in.kubectl("create", "token", "autoscaler"))
	a.objects, err = dynamic.NewForConfig(config)
	a.must(err)
	found, err := discovery.NewDiscoveryClientForConfig(config)
	a.must(err)
	cached := memory.NewMemCacheClient(found)
	a.mapper = restmapper.NewDeferredDiscoveryRESTMapper(cached)
	a.scales, err = scale.NewForConfig(config, a.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(cached))
	a.must(err)
	a.groups = dynamicinformer.NewFilteredDynamicSharedInformerFactory(a.objects, 0, "default", nil)
	for _, r := range []string{"machinedeployments", "machinesets", "machinepools", "machines"} {
		a.groups.ForResource(clusterv1.GroupVersion.WithResource(r))
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); a.groups.Shutdown() })
	a.groups.Start(ctx.Done())
	a.synced(func(stop <-chan struct{}) []string {
		var missing []string
		for r, ok := range a.groups.WaitForCacheSync(stop) {
			if !ok {
				missing = append(missing, r.String())
			}
		}
		return missing
	})
	return a
}

// synced fails the test when caches do not sync.
func (a autoscaler) synced(wait func(<-chan struct{}) []string) {
	a.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	if missing := wait(ctx.Done()); len(missing) > 0 {
		a.Fatalf("these caches did not sync: %v", missing)
	}
}

// awaitInformers starts the informers of the workload cluster, before whose sync an autoscaler does nothing.
func (a autoscaler) awaitInformers(w workload) {
	a.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	a.must(err)
	api, err := kubernetes.NewForConfig(config)
	a.must(err)
	f := informers.NewSharedInformerFactory(api, 0)
	for _, informer := range []interface {
		Informer() cache.SharedIndexInformer
	}{
		f.Core().V1().Nodes(), f.Core().V1().Pods(), f.Core().V1().Namespaces(), f.Core().V1().Services(), f.Core().V1().ReplicationControllers(),
		f.Core().V1().PersistentVolumes(), f.Core().V1().PersistentVolumeClaims(), f.Apps().V1().DaemonSets(), f.Apps().V1().ReplicaSets(),
		f.Apps().V1().StatefulSets(), f.Batch().V1().Jobs(), f.Policy().V1().PodDisruptionBudgets(), f.Storage().V1().StorageClasses(),
		f.Storage().V1().CSINodes(), f.Storage().V1().CSIDrivers(), f.Storage().V1().CSIStorageCapacities(), f.Storage().V1().VolumeAttachments(),
		f.Resource().V1().DeviceClasses(), f.Resource().V1().ResourceClaims(), f.Resource().V1().ResourceSlices(),
	} {
		informer.Informer()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer f.Shutdown()
	defer cancel()
	f.Start(ctx.Done())
	a.synced(func(stop <-chan struct{}) []string {
		var missing []string
		for kind, ok := range f.WaitForCacheSync(stop) {
			if !ok {
				missing = append(missing, kind.String())
			}
		}
		return missing
	})
}

// scaleThereAndBack scales the group of a cluster from nothing to most nodes, removes one that it names, and then all.
func (a autoscaler) scaleThereAndBack(cluster, resource string, most int32) {
	a.Helper()
	group := a.group(cluster, resource)
	a.scaleTo(resource, group.GetName(), 0)
	a.hasNodes(cluster, resource, group.GetName(), 0)
	a.hasCapacity(group)
	a.scaleTo(resource, group.GetName(), most)
	nodes := a.hasNodes(cluster, resource, group.GetName(), most)

	victim := nodes[len(nodes)/2]
	machine := a.machine(victim)
	annotations := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, clusterv1.DeleteMachineAnnotation, strconv.FormatInt(time.Now().Unix(), 10))
	_, err := a.objects.Resource(clusterv1.GroupVersion.WithResource("machines")).Namespace("default").
		Patch(a.Context(), machine, "application/merge-patch+json", []byte(annotations), metav1.PatchOptions{})
	a.must(err)
	a.scaleTo(resource, group.GetName(), most-1)
	for _, id := range a.hasNodes(cluster, resource, group.GetName(), most-1) {
		if id == victim {
			a.Errorf("%s %s kept Machine %s, which was chosen for deletion", resource, group.GetName(), machine)
		}
	}
	a.scaleTo(resource, group.GetName(), 0)
	a.hasNodes(cluster, resource, group.GetName(), 0)
}

// group finds the one group of a cluster that has the annotations of the range.
func (a autoscaler) group(cluster, resource string) *unstructured.Unstructured {
	a.Helper()
	var group *unstructured.Unstructured
	eventually(a.T, long, "a group among the "+resource, func() error {
		list, err := a.groups.ForResource(clusterv1.GroupVersion.WithResource(resource)).Lister().List(labels.SelectorFromSet(labels.Set{clusterv1.ClusterNameLabel: cluster}))
		if err != nil {
			return err
		}
		for _, o := range list {
			if u := o.(*unstructured.Unstructured); u.GetAnnotations()[mostNodes] == "3" && u.GetAnnotations()[leastNodes] == "0" {
				group = u
				return nil
			}
		}
		return fmt.Errorf("none of %d has the annotations", len(list))
	})
	return group
}

// scaleTo reads and updates the subresource scale.
func (a autoscaler) scaleTo(resource, name string, replicas int32) {
	a.Helper()
	of := schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: resource}
	eventually(a.T, short, "scale of "+name, func() error {
		now, err := a.scales.Scales("default").Get(a.Context(), of, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Spec.Replicas = replicas
		_, err = a.scales.Scales("default").Update(a.Context(), of, now, metav1.UpdateOptions{})
		return err
	})
}

// hasNodes waits until the group has so many nodes, and returns their provider IDs. The number stays: nothing sets it back.
func (a autoscaler) hasNodes(cluster, resource, name string, want int32) []string {
	a.Helper()
	label := map[string]string{"machinedeployments": clusterv1.MachineDeploymentNameLabel, "machinepools": clusterv1.MachinePoolNameLabel}[resource]
	var ids []string
	eventually(a.T, long, fmt.Sprintf("%d nodes of %s", want, name), func() error {
		ids = nil
		list, err := a.groups.ForResource(clusterv1.GroupVersion.WithResource("machines")).Lister().
			List(labels.SelectorFromSet(labels.Set{clusterv1.ClusterNameLabel: cluster, label: name}))
		if err != nil {
			return err
		}
		for _, o := range list {
			u := o.(*unstructured.Unstructured)
			id, _, _ := unstructured.NestedString(u.Object, "spec", "providerID")
			node, _, _ := unstructured.NestedString(u.Object, "status", "nodeRef", "name")
			if id != "" && node != "" {
				ids = append(ids, id)
			}
		}
		if len(ids) != int(want) || len(list) != int(want) {
			return fmt.Errorf("%d Machines, %d of them with a node", len(list), len(ids))
		}
		return nil
	})
	return ids
}

// machine is the name of the Machine with a provider ID.
func (a autoscaler) machine(id string) string {
	a.Helper()
	list, err := a.groups.ForResource(clusterv1.GroupVersion.WithResource("machines")).Lister().List(labels.Everything())
	a.must(err)
	for _, o := range list {
		u := o.(*unstructured.Unstructured)
		if have, _, _ := unstructured.NestedString(u.Object, "spec", "providerID"); have == id {
			return u.GetName()
		}
	}
	a.Fatalf("no Machine has provider ID %s", id)
	return ""
}

// hasCapacity checks what an autoscaler reads to know a node of a group that has none.
func (a autoscaler) hasCapacity(group *unstructured.Unstructured) {
	a.Helper()
	reference, _, err := unstructured.NestedStringMap(group.Object, "spec", "template", "spec", "infrastructureRef")
	a.must(err)
	mapping, err := a.mapper.RESTMapping(schema.GroupKind{Group: reference["apiGroup"], Kind: reference["kind"]})
	a.must(err)
	eventually(a.T, short, "capacity of "+reference["name"], func() error {
		infra, err := a.objects.Resource(mapping.Resource).Namespace("default").Get(a.Context(), reference["name"], metav1.GetOptions{})
		if err != nil {
			return err
		}
		capacity, _, err := unstructured.NestedStringMap(infra.Object, "status", "capacity")
		if err != nil {
			return err
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage} {
			if q, err := resource.ParseQuantity(capacity[string(name)]); err != nil || q.IsZero() {
				return fmt.Errorf("%s is %q", name, capacity[string(name)])
			}
		}
		return nil
	})
}

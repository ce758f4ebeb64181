package follow

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/test/bench/settle"
)

// Objects says where to look: in which cluster, for what. Without a namespace: everywhere.
type Objects struct {
	Config    *rest.Config
	Resource  schema.GroupVersionResource
	Namespace string
}

// pauses is how much longer than a look at all objects it is until the next one: benchmarks share the machine with what they
// measure.
const pauses = 20

// Until watches objects until enough says of all of them that it has seen enough. It asks when one has changed, and not more
// often than it can answer in a twentieth of the time.
func (o Objects) Until(ctx context.Context, enough func([]*unstructured.Unstructured) bool) error {
	client, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return err
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, o.Resource, o.Namespace, 0, cache.Indexers{}, nil).Informer()
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); informer.Run(ctx.Done()) }()
	defer func() { cancel(); <-done }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("list %s: %w", o.Resource.Resource, ctx.Err())
	}
	for {
		began := time.Now()
		var all []*unstructured.Unstructured
		for _, one := range informer.GetStore().List() {
			all = append(all, one.(*unstructured.Unstructured))
		}
		if enough(all) {
			return nil
		}
		if err := settle.Pause(ctx, pauses*time.Since(began)); err != nil {
			return fmt.Errorf("watch %s: %w", o.Resource.Resource, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("watch %s: %w", o.Resource.Resource, ctx.Err())
		}
	}
}

// Workload returns how to reach a workload cluster: as its kubeconfig Secret says.
func Workload(ctx context.Context, config *rest.Config, cluster types.NamespacedName) (*rest.Config, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secret, err := client.Resource(secrets).Namespace(cluster.Namespace).Get(ctx, cluster.Name+"-kubeconfig", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get the kubeconfig of cluster %s: %w", cluster.Name, err)
	}
	text, found, err := unstructured.NestedString(secret.Object, "data", "value")
	if err != nil || !found {
		return nil, errors.Join(fmt.Errorf("secret %s has no key value", secret.GetName()), err)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of cluster %s: %w", cluster.Name, err)
	}
	return clientcmd.RESTConfigFromKubeConfig(data)
}

// Clusters are the Clusters of Cluster API.
func Clusters() schema.GroupVersionResource { return Core("clusters") }

// MachinePools of Cluster API.
func MachinePools() schema.GroupVersionResource { return Core("machinepools") }

// MachineDeployments of Cluster API.
func MachineDeployments() schema.GroupVersionResource { return Core("machinedeployments") }

// Nodes of a workload cluster.
func Nodes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

// Kind is one of Cluster API's core group.
func Kind(name string) schema.GroupVersionKind { return Core("").GroupVersion().WithKind(name) }

// Core is a kind of Cluster API's core group, by its plural.
func Core(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: plural}
}

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/test/bench/result"
)

// journal notes when things happen, each the first time only.
type journal struct {
	began time.Time
	mu    sync.Mutex
	steps []result.Step
}

// note notes that something is so by now.
func (j *journal) note(step string) { j.noteAt(step, time.Now()) }

func (j *journal) noteAt(step string, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.ContainsFunc(j.steps, func(s result.Step) bool { return s.Name == step }) {
		j.steps = append(j.steps, result.Step{Name: step, After: at.Sub(j.began)})
	}
}

// inOrder are the steps in the order of time.
func (j *journal) inOrder() []result.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(j.steps), func(a, b result.Step) int { return int(a.After - b.After) })
}

// after is when a step was noted.
func (j *journal) after(step string) (time.Duration, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.steps {
		if s.Name == step {
			return s.After, nil
		}
	}
	return 0, fmt.Errorf("step %q did not happen", step)
}

// objects says where to look: in which cluster, for what. Without a namespace: everywhere.
type objects struct {
	config    *rest.Config
	resource  schema.GroupVersionResource
	namespace string
}

// follow watches objects until enough says of all of them that it has seen enough.
func (o objects) follow(ctx context.Context, enough func([]*unstructured.Unstructured) bool) error {
	client, err := dynamic.NewForConfig(o.config)
	if err != nil {
		return err
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, o.resource, o.namespace, 0, cache.Indexers{}, nil).Informer()
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
		return fmt.Errorf("list %s: %w", o.resource.Resource, ctx.Err())
	}
	for {
		var all []*unstructured.Unstructured
		for _, one := range informer.GetStore().List() {
			all = append(all, one.(*unstructured.Unstructured))
		}
		if enough(all) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("watch %s: %w", o.resource.Resource, ctx.Err())
		}
	}
}

// workload returns how to reach a workload cluster: as its kubeconfig Secret says.
func workload(ctx context.Context, config *rest.Config, s subject) (*rest.Config, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secret, err := client.Resource(secrets).Namespace(s.Namespace).Get(ctx, s.Cluster+"-kubeconfig", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get the kubeconfig of cluster %s: %w", s.Cluster, err)
	}
	text, found, err := unstructured.NestedString(secret.Object, "data", "value")
	if err != nil || !found {
		return nil, errors.Join(fmt.Errorf("secret %s has no key value", secret.GetName()), err)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of cluster %s: %w", s.Cluster, err)
	}
	return clientcmd.RESTConfigFromKubeConfig(data)
}

// kinds of objects that are followed.
func clusters() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "clusters"}
}

func pools() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machinepools"}
}

func nodes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
}

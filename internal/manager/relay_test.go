package manager

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// sources is a cache with one informer.
type sources struct {
	cache.Informers
	of toolscache.SharedIndexInformer
}

func (s sources) GetInformer(ctx context.Context, _ client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if !toolscache.WaitForCacheSync(ctx.Done(), s.of.HasSynced) {
		return nil, ctx.Err()
	}
	return s.of, nil
}

func localMachine(name, id string) *infrav1.LocalMachine {
	m := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"a": "b"}}}
	m.Spec.ProviderID = id
	return m
}

// told is what an informer tells: of what kind (none for Go types), of which object, with which provider ID.
func told(t *testing.T, i toolscache.SharedIndexInformer) <-chan string {
	t.Helper()
	events := make(chan string, 100)
	tell := func(what string, o any) {
		if m, ok := o.(*infrav1.LocalMachine); ok {
			events <- fmt.Sprintf("%s %s %s", what, m.Name, m.Spec.ProviderID)
			return
		}
		u := o.(*unstructured.Unstructured)
		id, _, _ := unstructured.NestedString(u.Object, "spec", "providerID")
		events <- fmt.Sprintf("%s %s %s %s", what, u.GroupVersionKind().Kind, u.GetName(), id)
	}
	_, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell("add", o) },
		UpdateFunc: func(_, o any) { tell("update", o) },
		DeleteFunc: func(o any) { tell("delete", o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func await(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	left := map[string]bool{}
	for _, w := range want {
		left[w] = true
	}
	limit := time.After(20 * time.Second)
	for len(left) > 0 {
		select {
		case e := <-events:
			if !left[e] {
				t.Fatalf("told %q, want one of %v", e, left)
			}
			delete(left, e)
		case <-limit:
			t.Fatalf("was not told %v", left)
		}
	}
}

func testRelay(t *testing.T) *relay {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := infrav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r, err := newRelay(scheme, &infrav1.LocalMachine{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// source is an informer with Go types, which does not run yet, and the server that it asks, with one LocalMachine.
func source(t *testing.T) (context.Context, *fcache.FakeControllerSource, toolscache.SharedIndexInformer) {
	t.Helper()
	server := fcache.NewFakeControllerSource()
	server.Add(localMachine("first", "1"))
	return t.Context(), server, toolscache.NewSharedIndexInformer(server, &infrav1.LocalMachine{}, 0, toolscache.Indexers{})
}

func nothing() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(infrav1.GroupVersion.WithKind("LocalMachine"))
	return u
}

func TestRelay(t *testing.T) {
	ctx, server, typed := source(t)
	r := testRelay(t)
	loose := r.wrap(toolscache.NewSharedIndexInformer)(nil, nothing(), 0, toolscache.Indexers{})
	events := told(t, loose)
	go loose.Run(ctx.Done()) // before there is anything to feed from
	go typed.Run(ctx.Done())
	r.setSource(sources{of: typed})
	await(t, events, "add LocalMachine first 1")

	server.Add(localMachine("second", "2"))
	await(t, events, "add LocalMachine second 2")
	server.Modify(localMachine("first", "3"))
	await(t, events, "update LocalMachine first 3")
	server.Delete(localMachine("second", "2"))
	await(t, events, "delete LocalMachine second 2")

	o, _, err := typed.GetStore().GetByKey("default/first") // it is as if it had been read from the API server
	if err != nil {
		t.Fatal(err)
	}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(want, map[string]any{"apiVersion": infrav1.GroupVersion.String(), "kind": "LocalMachine"})
	have, _, err := loose.GetStore().GetByKey("default/first")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have.(*unstructured.Unstructured).Object); diff != "" {
		t.Error(diff)
	}
}

// An informer that begins again has what is there, and lets go of what it heard before.
func TestRelayAgain(t *testing.T) {
	ctx, server, typed := source(t)
	changes := told(t, typed)
	go typed.Run(ctx.Done())
	await(t, changes, "add first 1")
	r := testRelay(t)
	r.setSource(sources{of: typed})
	for round := 1; round <= 3; round++ {
		one, stop := context.WithCancel(ctx)
		loose := r.wrap(toolscache.NewSharedIndexInformer)(nil, nothing(), 0, toolscache.Indexers{})
		events, ended := told(t, loose), make(chan struct{})
		go func() { loose.Run(one.Done()); close(ended) }()
		await(t, events, fmt.Sprintf("add LocalMachine first %d", round))
		stop()
		<-ended
		server.Modify(localMachine("first", strconv.Itoa(round+1))) // no one takes it
		await(t, changes, fmt.Sprintf("update first %d", round+1))
	}
}

// An informer waits for those that it tells when it ends. Who listed and did not come to watch does not hold it up.
func TestListedAndNotWatched(t *testing.T) {
	_, server, typed := source(t)
	changes := told(t, typed)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan struct{})
	go func() { typed.Run(ctx.Done()); close(ended) }()
	await(t, changes, "add first 1")
	r := testRelay(t)
	r.setSource(sources{of: typed})
	var lw toolscache.ListerWatcher
	r.wrap(func(of toolscache.ListerWatcher, _ runtime.Object, _ time.Duration, _ toolscache.Indexers) toolscache.SharedIndexInformer {
		lw = of
		return nil
	})(nil, nothing(), 0, nil)
	if _, err := toolscache.ToListerWatcherWithContext(lw).ListWithContext(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	server.Modify(localMachine("first", "2"))
	await(t, changes, "update first 2")
	end()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the informer waits for somebody who does not come")
	}
}

// Other kinds, and other forms of them, come from the API server.
func TestOthers(t *testing.T) {
	r := testRelay(t)
	other := nothing()
	other.SetKind("LocalMachineTemplate")
	for _, o := range []runtime.Object{other, &infrav1.LocalMachine{}, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
		APIVersion: infrav1.GroupVersion.String(), Kind: "LocalMachine",
	}}} {
		server := fcache.NewFakeControllerSource()
		r.wrap(func(lw toolscache.ListerWatcher, _ runtime.Object, _ time.Duration, _ toolscache.Indexers) toolscache.SharedIndexInformer {
			if lw != toolscache.ListerWatcher(server) {
				t.Errorf("%T does not come from the API server", o)
			}
			return nil
		})(server, o, 0, nil)
	}
}

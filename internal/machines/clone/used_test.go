package clone

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// slow is an API whose lists of MachineSets wait for a word, and are counted.
type slow struct {
	client.Reader
	began chan struct{}
	words chan error
	lists int
}

func (s *slow) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*clusterv1.MachineSetList); ok {
		s.lists++ // one at a time
		s.began <- struct{}{}
		if err := <-s.words; err != nil {
			return err
		}
	}
	return s.Reader.List(ctx, list, opts...)
}

func templateRef(name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooTemplate", Name: name}
}

func owner(name string, change func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	set.Spec.Template.Spec.InfrastructureRef, set.Spec.Template.Spec.Bootstrap.ConfigRef = templateRef(name), templateRef("shared")
	if change != nil {
		change(set)
	}
	return set
}

func newUsage(t *testing.T) (*Usage, *slow) {
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md", UID: "md"}}
	md.Spec.Template.Spec.InfrastructureRef = templateRef("of-md")
	api := &slow{began: make(chan struct{}), words: make(chan error), Reader: fake.NewClientBuilder().WithScheme(s).WithObjects(md,
		owner("a", nil), owner("b", nil), owner("elsewhere", func(set *clusterv1.MachineSet) { set.Namespace = "other" }),
		owner("leaves", func(set *clusterv1.MachineSet) { set.DeletionTimestamp, set.Finalizers = &now, []string{"f/f"} })).Build()}
	return NewUsage(api), api
}

// Those that ask while a list is read share the next one, which knows what was written before they asked; each is left out of its answer.
func TestUsage(t *testing.T) {
	u, api := newUsage(t)
	answers := make([]Used, 9)
	var wg sync.WaitGroup
	ask := func(i int, name string) {
		wg.Go(func() {
			var err error
			if answers[i], err = u.Read(t.Context(), owner(name, nil)); err != nil {
				t.Error(err)
			}
		})
	}
	ask(0, "a")
	<-api.began
	for i := 1; i < len(answers); i++ {
		ask(i, "b")
	}
	for waiting := 0; waiting < len(answers); goruntime.Gosched() {
		u.mu.Lock()
		waiting = u.namespaces["ns"].waiting
		u.mu.Unlock()
	}
	api.words <- nil
	<-api.began
	api.words <- nil
	wg.Wait()
	if len(u.namespaces) > 0 {
		t.Errorf("what is not needed any more is kept: %v", u.namespaces)
	}
	if api.lists != 2 {
		t.Errorf("%d lists for one that asked, and %d while it was read", api.lists, len(answers)-1)
	}
	want := func(names ...string) Used {
		out := Used{{}: true, templateRef("of-md"): true}
		for _, name := range names {
			out[templateRef(name)] = true
		}
		return out
	}
	for i, got := range answers {
		expected := want("a", "shared")
		if i == 0 {
			expected = want("b", "shared")
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("answer %d (-want +got):\n%s", i, diff)
		}
	}
}

// A list that fails is the failure of the one that read it; the next reads again.
func TestUsageFails(t *testing.T) {
	u, api := newUsage(t)
	boom, failed := errors.New("boom"), make(chan error)
	read := func() { _, err := u.Read(t.Context(), owner("a", nil)); failed <- err }
	for _, want := range []error{boom, nil} {
		go read()
		<-api.began
		api.words <- want
		if err := <-failed; !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

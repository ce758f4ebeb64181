package kube

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"testing"
)

// slow reads what waits for a word, and counts.
type slow struct {
	began chan string
	words chan error
	reads int
}

func (s *slow) read(_ context.Context, namespace string) (int, error) {
	s.reads++ // one at a time
	n := s.reads
	s.began <- namespace
	return n, <-s.words
}

func newSlow() (*SharedRead[int], *slow) {
	s := &slow{began: make(chan string), words: make(chan error)}
	return NewSharedRead(s.read), s
}

// Those that come while it is read share the next reading, which knows what was written before they came.
func TestShared(t *testing.T) {
	r, api := newSlow()
	answers := make([]int, 9)
	var wg sync.WaitGroup
	ask := func(i int) {
		wg.Go(func() {
			var err error
			if answers[i], err = r.Get(t.Context(), "ns"); err != nil {
				t.Error(err)
			}
		})
	}
	ask(0)
	<-api.began
	for i := 1; i < len(answers); i++ {
		ask(i)
	}
	for waiting := 0; waiting < len(answers); goruntime.Gosched() {
		r.mu.Lock()
		waiting = r.namespaces["ns"].waiting
		r.mu.Unlock()
	}
	api.words <- nil
	<-api.began
	api.words <- nil
	wg.Wait()
	for i, got := range answers {
		if want := min(i, 1) + 1; got != want {
			t.Errorf("caller %d has reading %d, want %d", i, got, want)
		}
	}
	if api.reads != 2 {
		t.Errorf("%d readings for one caller, and %d while it was read", api.reads, len(answers)-1)
	}
	if len(r.namespaces) > 0 {
		t.Errorf("what is not needed any more is kept: %v", r.namespaces)
	}
}

// A reading that fails is the failure of the one that read; the next reads again. One that may not wait any longer leaves.
func TestFails(t *testing.T) {
	r, api := newSlow()
	boom, failed := errors.New("boom"), make(chan error)
	of := func(ctx context.Context) { _, err := r.Get(ctx, "ns"); failed <- err }
	for _, want := range []error{boom, nil} {
		go of(t.Context())
		<-api.began
		if want != nil {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			go of(ended)
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want that its time is over", err)
			}
		}
		api.words <- want
		if err := <-failed; !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if len(r.namespaces) > 0 {
		t.Errorf("what is not needed any more is kept: %v", r.namespaces)
	}
}

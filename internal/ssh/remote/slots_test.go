package remote

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// calls is a world of calls to hosts that last for some time each.
type calls struct {
	*slots
	began []string
}

// start begins a call of a namespace. It ends after a time.
func (c *calls) start(t *testing.T, namespace string, number int, takes time.Duration) {
	go func() {
		if err := c.acquire(t.Context(), namespace); err != nil {
			t.Error(err)
			return
		}
		c.mu.Lock()
		c.began = append(c.began, fmt.Sprintf("%s%d", namespace, number))
		c.mu.Unlock()
		time.Sleep(takes) // of the fake clock
		c.release(namespace)
	}()
	synctest.Wait()
}

// TestSlotsAreShared checks that slow hosts of one namespace leave slots to others, and that namespaces that wait take turns.
func TestSlotsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{slots: newSlots(4)}
		for i := range 6 {
			c.start(t, "slow", i, time.Hour)
		}
		if got := strings.Join(c.began, " "); got != "slow0 slow1 slow2" {
			t.Fatalf("the slow namespace has %s", got)
		}
		for i := range 3 {
			c.start(t, "a", i, time.Second)
		}
		for i := range 3 {
			c.start(t, "b", i, time.Second)
		}
		if got := strings.Join(c.began[3:], " "); got != "a0" {
			t.Fatalf("the others have %s, want the slot that is left", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff("a1 b0 a2 b1 b2", strings.Join(c.began[4:], " ")); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if got := strings.Join(c.began[9:], " "); got != "slow3 slow4 slow5" {
			t.Errorf("the slow calls that waited: %s", got)
		}
		if c.inUse != 0 || len(c.taken) != 0 || len(c.waiting) != 0 || len(c.turns) != 0 {
			t.Errorf("left over: %+v", c.slots)
		}
	})
}

// TestSlotsOfCommands checks that a program with a single user has all slots.
func TestSlotsOfCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{slots: newSlots(4)}
		for i := range 5 {
			c.start(t, "", i, time.Hour)
		}
		if got := strings.Join(c.began, " "); got != "0 1 2 3" {
			t.Errorf("calls %s", got)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
	})
}

// TestSlotsCanceled checks that a call that no longer waits takes no slot.
func TestSlotsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		if err := s.acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.acquire(ctx, "a"); err == nil {
			t.Error("a slot is taken twice")
		}
		s.release("a")
		if err := s.acquire(t.Context(), "b"); err != nil || s.inUse != 1 || len(s.turns) != 0 {
			t.Errorf("after the release: %v, %+v", err, s)
		}
	})
}

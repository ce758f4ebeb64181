package backend_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// One that fails is not counted, and keeps no other from being removed; the first eight are under way at once.
func TestRemove(t *testing.T) {
	const things = 12
	var (
		counted  []int
		underWay atomic.Int32
		eight    = make(chan struct{})
	)
	var all []func() error
	for i := range things {
		all = append(all, func() error {
			if underWay.Add(1) == 8 {
				close(eight)
			}
			<-eight
			if i == 3 {
				return errors.New("it is in use")
			}
			return nil
		})
	}
	err := backend.Remove([][]func() error{all}, func(gone, of int) {
		if of != things {
			t.Errorf("of %d", of)
		}
		counted = append(counted, gone)
	})
	if len(counted) != things-1 || counted[things-2] != things-1 {
		t.Errorf("counted %v", counted)
	}
	if got := fmt.Sprint(err); got != "it is in use" {
		t.Errorf("errors: %s", got)
	}
}

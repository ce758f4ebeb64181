package fault_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
)

// A panic in a goroutine of a reconciliation is an error of that reconciliation, not the end of the manager.
func TestGroupReturnsPanics(t *testing.T) {
	g, ctx := fault.NewGroup(t.Context())
	g.SetLimit(1)
	g.Go(func() error { var empty []int; _ = empty[len(empty)]; return nil })
	g.Go(func() error { <-ctx.Done(); return errors.New("ended by the panic") })
	err := g.Wait()
	f := fault.As(err)
	if f == nil || f.Kind != fault.Bug || f.Reason != "Panic" || !strings.Contains(f.Message, "index out of range") {
		t.Fatalf("got %v", err)
	}
	if len(f.Details) != 2 || !strings.Contains(f.Details[1].(string), "group_test.go") {
		t.Errorf("the details have no stack of the panic: %v", f.Details)
	}
}

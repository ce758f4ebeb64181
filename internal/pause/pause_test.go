package pause

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	signal := make(chan struct{}, 1)
	signal <- struct{}{}
	if err := Wait(t.Context(), time.Hour, signal); err != nil || len(signal) > 0 {
		t.Errorf("a signal: %v", err)
	}
	if err := Wait(t.Context(), 0, signal); err != nil {
		t.Errorf("the end of the time: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := errors.Join(Wait(ended, time.Hour, signal), Sleep(ended, time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the context: %v", err)
	}
}

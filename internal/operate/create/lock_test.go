package create_test

import (
	"context"
	"errors"
	"testing"

	"github.com/slipwayhq/slipway/internal/operate/create"
)

func TestLock(t *testing.T) {
	dir := t.TempDir()
	release, err := create.Lock(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := create.Lock(given, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("two have the lock: %v", err)
	}
	second := make(chan error)
	go func() {
		release, err := create.Lock(context.WithoutCancel(given), dir)
		if err == nil {
			release()
		}
		second <- err
	}()
	release()
	if err := <-second; err != nil {
		t.Error(err)
	}
	if release, err := create.Lock(given, ""); err != nil {
		t.Errorf("without a data directory: %v", err)
	} else {
		release()
	}
	if _, err := create.Lock(t.Context(), dir+"/none"); err == nil {
		t.Error("a data directory that is not there")
	}
}

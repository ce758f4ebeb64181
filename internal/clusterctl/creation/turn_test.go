package creation_test

import (
	"context"
	"errors"
	"testing"

	"github.com/slipwayhq/slipway/internal/clusterctl/creation"
)

func TestTurn(t *testing.T) {
	dir := t.TempDir()
	end, err := creation.Turn(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := creation.Turn(given, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("two have the turn: %v", err)
	}
	second := make(chan error)
	go func() {
		end, err := creation.Turn(context.WithoutCancel(given), dir)
		if err == nil {
			end()
		}
		second <- err
	}()
	end()
	if err := <-second; err != nil {
		t.Error(err)
	}
	if end, err := creation.Turn(given, ""); err != nil {
		t.Errorf("without a data directory: %v", err)
	} else {
		end()
	}
	if _, err := creation.Turn(t.Context(), dir+"/none"); err == nil {
		t.Error("a data directory that is not there")
	}
}

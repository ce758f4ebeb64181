package pause

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second, 1 << 40: 10 * time.Second,
	} {
		if got := Backoff(failures, time.Second, 10*time.Second); got != want {
			t.Errorf("%d failures: got %s, want %s", failures, got, want)
		}
	}
}

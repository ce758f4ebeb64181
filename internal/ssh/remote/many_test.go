package remote_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// TestManyHosts copies a bundle to 50 hosts at a time. The memory includes that of the hosts, which are in this process.
func TestManyHosts(t *testing.T) {
	const hosts, most = 50, 200 << 20
	b := testBundle(t, 5<<20)
	pool := newPool(t, remote.Limits{Hosts: hosts})
	var copying sync.WaitGroup
	var mu sync.Mutex
	var peak uint64
	for range hosts {
		s := sshtest.Start(t)
		runLocally(t, s, "bundle-begin", "bundle-finish")
		copying.Go(func() {
			h, err := pool.Connect(t.Context(), s.Target())
			if err == nil {
				err = h.InstallBundle(t.Context(), b, func(int64, int64) {
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					mu.Lock()
					defer mu.Unlock()
					peak = max(peak, m.HeapInuse+m.StackInuse)
				})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	copying.Wait()
	t.Logf("at most %d MB", peak>>20)
	if peak > most {
		t.Errorf("copying to %d hosts at a time took %d MB, at most %d", hosts, peak>>20, most>>20)
	}
}

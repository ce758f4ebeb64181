package heap

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

const mib = 1 << 20

func TestPercent(t *testing.T) {
	tests := map[string]struct {
		reason   string
		headroom Headroom
		live     int64
		want     int
	}{
		"small heap":    {"it may grow by the room", Management(), 96 * mib, 200},
		"large heap":    {"a collection takes long", Manager(), 256 * mib, 150},
		"much stored":   {"a write costs the same, a collection more", Management(), 1024 * mib, 200},
		"between":       {"it may grow by a quarter of itself, which is more", Manager(), 255 * mib, 25},
		"empty heap":    {"nothing is divided by zero", Headroom{rest: 25, bytes: 100, large: 1}, 0, 10000},
		"heap of room":  {"it may double", Manager(), 40 * mib, 100},
		"control plane": {"many share the memory", Workload(), 127 * mib, 50},
		"large one":     {"it has much to do", Workload(), 200 * mib, 50},
	}
	for name, tc := range tests {
		if got := percent(tc.headroom, tc.live); got != tc.want {
			t.Errorf("%s: %s: want %d, got %d", name, tc.reason, tc.want, got)
		}
	}
}

// The heap grows while much is allocated, however large it is, and is small again afterwards.
func TestCollector(t *testing.T) {
	before := debug.SetGCPercent(gcWhileRunning)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for name, live := range map[string]int64{"small": 96 * mib, "large": 2048 * mib} {
		now := sample{at: time.Unix(1e9, 0), live: live}
		c := &collector{headroom: Management(), last: now, percent: gcWhileRunning}
		c.idle = time.AfterFunc(time.Hour, func() {})
		t.Cleanup(func() { c.idle.Stop() })
		for _, step := range []struct {
			what   string
			see    func(sample)
			later  time.Duration
			allocs int64
			want   int
		}{
			{"a collection now and then", c.collected, time.Minute, 48 * mib, 50},
			{"much allocated before one", c.collected, time.Second, 48 * mib, 200},
			{"little before one, with the room", c.collected, 50 * time.Second, 192 * mib, 200},
			{"none for long, and much to do", c.checkIdle, 10 * time.Second, 81 * mib, 200},
			{"and still", c.checkIdle, 10 * time.Second, 81 * mib, 200},
			{"little to do", c.checkIdle, 10 * time.Second, 5 * mib, 50},
		} {
			now.at, now.allocated = now.at.Add(step.later), now.allocated+step.allocs
			step.see(now)
			if have := set(t); have != step.want {
				t.Errorf("%s heap: %s: want %d percent, got %d", name, step.what, step.want, have)
			}
		}
	}
}

func TestLook(t *testing.T) {
	first := readSample()
	kept := make([]byte, 64*mib)
	runtime.GC()
	then := readSample()
	runtime.KeepAlive(kept)
	if then.allocated-first.allocated < 64*mib || then.live < 64*mib {
		t.Errorf("after allocating 64 MiB: from %+v to %+v", first, then)
	}
}

// set is the percent that the runtime was told last.
func set(t *testing.T) int {
	t.Helper()
	percent := debug.SetGCPercent(gcWhileRunning)
	debug.SetGCPercent(percent)
	return percent
}

func TestGOGCIsLeftAlone(t *testing.T) {
	before := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "77")
	limit := debug.SetMemoryLimit(-1)
	same := func(after string) {
		t.Helper()
		if have, room := set(t), debug.SetMemoryLimit(-1); have != 77 || room != limit {
			t.Errorf("after %s: want the user's 77 percent and no other limit, got %d and %d", after, have, room)
		}
	}
	started := TuneForStartup(StartManagementMemory)
	same("Starting")
	started()
	same("the start")
	Collect(Manager())
	same("Collect")
	LowMemory()
	same("Spare")
}

func TestSpare(t *testing.T) {
	before := debug.SetGCPercent(gcWhileRunning)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "")
	if LowMemory(); set(t) != gcSparing {
		t.Errorf("collects at %d percent", set(t))
	}
}

func TestMemoryLimitIsKept(t *testing.T) {
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(-1)
	debug.SetGCPercent(percent)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	t.Setenv("GOGC", "")
	tests := map[string]struct {
		reason       string
		theirs, want int64
	}{
		"none":    {"the start has its own", math.MaxInt64, 640 * mib},
		"smaller": {"a start does not take more than the process may", 100 * mib, 100 * mib},
		"larger":  {"a start does not take all that the process may", 4096 * mib, 640 * mib},
	}
	for name, tc := range tests {
		debug.SetMemoryLimit(tc.theirs)
		started := TuneForStartup(640 * mib)
		if got := debug.SetMemoryLimit(-1); got != tc.want {
			t.Errorf("%s: while starting: %s: want %d, got %d", name, tc.reason, tc.want, got)
		}
		started()
		if got := debug.SetMemoryLimit(-1); got != tc.theirs {
			t.Errorf("%s: afterwards: want the limit from before, %d, got %d", name, tc.theirs, got)
		}
	}
}

// A control plane at rest keeps less garbage than one with much to do.
func TestRest(t *testing.T) {
	before := debug.SetGCPercent(gcWhileRunning)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	now := sample{at: time.Unix(1e9, 0), live: 120 * mib}
	c := &collector{headroom: Workload(), last: now, percent: gcSparing}
	c.idle = time.AfterFunc(time.Hour, func() {})
	t.Cleanup(func() { c.idle.Stop() })
	for _, step := range []struct {
		see    func(sample)
		allocs int64
		want   int
	}{{c.collected, 200 * mib, 53}, {c.checkIdle, mib, gcSparing}} {
		now.at, now.allocated = now.at.Add(10*time.Second), now.allocated+step.allocs
		step.see(now)
		if have := set(t); have != step.want {
			t.Errorf("after %d MiB: want %d percent, got %d", step.allocs/mib, step.want, have)
		}
	}
}

package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestNext(t *testing.T) { // RC-01, RC-02, RC-03
	a, b := fingerprint{kubeconfig: [32]byte{1}}, fingerprint{kubeconfig: [32]byte{2}}
	up := connectionState{connected: true, due: t0.Add(time.Second), tried: a}
	down := connectionState{due: t0.Add(time.Second), tried: a}
	cases := map[string]struct {
		reason string
		s      connectionState
		f      observation
		want   step
	}{
		"no infrastructure":       {"RC-01: nothing to connect to before it is provisioned", connectionState{}, observation{secretFound: true, print: a}, stepWait},
		"no secret":               {"RC-01: nothing to connect with", connectionState{}, observation{provisioned: true}, stepWait},
		"first":                   {"RC-01: connect at once", connectionState{}, observation{provisioned: true, secretFound: true, print: a}, stepConnect},
		"retry not due":           {"RC-01: an attempt just failed", down, observation{provisioned: true, secretFound: true, print: a}, stepWait},
		"retry due":               {"RC-01: the backoff is over", down, observation{now: t0.Add(time.Second), provisioned: true, secretFound: true, print: a}, stepConnect},
		"new secret while down":   {"RC-03: a new kubeconfig is worth an attempt at once", down, observation{provisioned: true, secretFound: true, print: b}, stepConnect},
		"connected, not due":      {"RC-02: between two probes nothing is done", up, observation{provisioned: true}, stepWait},
		"connected, due":          {"RC-02: probe every interval", up, observation{now: t0.Add(time.Second), provisioned: true}, stepProbe},
		"rotated":                 {"RC-03: a new kubeconfig makes a new connection", up, observation{secretRead: true, secretFound: true, print: b}, stepConnect},
		"same content":            {"RC-03: a Secret that was only relabelled changes nothing", up, observation{secretRead: true, secretFound: true, print: a}, stepWait},
		"secret gone":             {"the credentials in use are still good", up, observation{secretRead: true, print: b}, stepWait},
		"cache does not fill":     {"RC-01: a cache that does not sync in time ends the connection", up, observation{stalled: true}, stepDisconnect},
		"endpoint while down":     {"the endpoint was just set: try at once", down, observation{provisioned: true, secretFound: true, print: fingerprint{kubeconfig: a.kubeconfig, initialized: true}}, stepConnect},
		"unprovisioned connected": {"provisioned never reverts; a connection is kept", up, observation{}, stepWait},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.f.now.IsZero() {
				tc.f.now = t0
			}
			if got := decide(tc.s, tc.f); got != tc.want {
				t.Errorf("%s: next = %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestFailuresEndAConnection(t *testing.T) { // RC-02
	timing := Timing{}.withDefaults()
	s := connectionState{}.succeeded(t0, timing)
	now := t0
	for i := 1; i <= 5; i++ {
		now = now.Add(10 * time.Second)
		s = s.failed(now, "no answer", false, timing)
		if s.connected != (i < 5) {
			t.Fatalf("after %d failures connected = %v", i, s.connected)
		}
	}
	want := connectionState{since: now, lastSuccess: t0, failures: 5, problem: "no answer", downSince: now, due: now.Add(250 * time.Millisecond)}
	if diff := cmp.Diff(want, s, cmp.AllowUnexported(connectionState{}, fingerprint{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (connectionState{connected: true}).failed(now, "refused", true, timing); got.connected {
		t.Error("refused credentials end a connection at once")
	}
	back := s.succeeded(now.Add(time.Second), timing)
	if !back.connected || back.failures != 0 || !back.downSince.IsZero() || back.problem != "" {
		t.Errorf("an answer does not clear the failures: %+v", back)
	}
}

func TestProbesComeTogether(t *testing.T) { // RC-02
	const interval = 10 * time.Second
	moments := map[time.Time]bool{}
	for n := range 100 {
		now := t0.Add(time.Duration(n) * 37 * time.Millisecond)
		due := connectionState{}.succeeded(now, Timing{ProbeInterval: interval}).due
		if after := due.Sub(now); after > interval || after <= interval-interval/20 {
			t.Errorf("a probe follows after %v", after)
		}
		moments[due] = true
		// It takes a while until a probe that is due was answered.
		if again := alignedTime(due.Add(80*time.Millisecond), interval).Sub(due); again != interval {
			t.Errorf("the one after it follows %v later", again)
		}
	}
	if len(moments) > 8 { // of 3.7 s
		t.Errorf("probes of 100 clusters come at %d moments", len(moments))
	}
	if now := time.Now(); alignedTime(now, interval).Round(0) == alignedTime(now, interval) {
		t.Error("who sets the clock moves the probe")
	}
}

func TestBackoff(t *testing.T) { // RC-01
	timing := Timing{}.withDefaults()
	for down, want := range map[time.Duration]time.Duration{
		0:                timing.RetryMin,
		8 * time.Second:  time.Second,
		80 * time.Second: 10 * time.Second,
		time.Hour:        30 * time.Second,
	} {
		if got := backoff(down, timing); got != want {
			t.Errorf("backoff after %s = %s, want %s", down, got, want)
		}
	}
}

func TestRecheck(t *testing.T) { // RC-01, RC-02
	timing := Timing{}.withDefaults()
	for name, tc := range map[string]struct {
		s    connectionState
		f    observation
		want time.Duration
	}{
		"not provisioned: a watch wakes us":        {connectionState{}, observation{now: t0}, 0},
		"no secret: looked for now and then":       {connectionState{}, observation{now: t0, provisioned: true, secretRead: true}, 30 * time.Second},
		"just lost: the Secret was not looked for": {connectionState{due: t0.Add(250 * time.Millisecond)}, observation{now: t0, provisioned: true}, 250 * time.Millisecond},
		"connected: the next probe":                {connectionState{connected: true, due: t0.Add(7 * time.Second)}, observation{now: t0}, 7 * time.Second},
		"overdue: at once":                         {connectionState{connected: true, due: t0}, observation{now: t0.Add(time.Second)}, time.Millisecond},
	} {
		if got := recheck(tc.s, tc.f, timing); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestGraceLeft(t *testing.T) { // RC-02; CL-23 and MA-20 build on it
	const grace = 50 * time.Second
	ago := func(d time.Duration) time.Time { return t0.Add(-d) }
	cases := map[string]struct {
		reason  string
		h       Health
		wasGood bool
		want    time.Duration
	}{
		"answers":         {"nothing to be patient about", Health{LastProbeSuccess: ago(5 * time.Second)}, true, 0},
		"fails":           {"the rest of the grace", Health{LastProbeSuccess: ago(20 * time.Second), ConsecutiveFailures: 2}, true, 30 * time.Second},
		"fails for long":  {"over", Health{LastProbeSuccess: ago(time.Minute), ConsecutiveFailures: 5}, true, 0},
		"never connected": {"there is nothing to lose", Health{Since: ago(time.Second)}, false, 0},
		"restart":         {"counted from the start of the process", Health{Since: ago(10 * time.Second)}, true, 40 * time.Second},
		"not seen yet":    {"the process has just begun", Health{}, true, grace},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.h.GraceLeft(t0, grace, tc.wasGood); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

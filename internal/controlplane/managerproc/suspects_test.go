package managerproc

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSuspects(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := suspects{}
	a, b := Subject{Kind: "A", Name: "a", UID: "1"}, Subject{Kind: "B", Name: "b"}
	if aside := s.crashed([]Subject{a, b}, now); len(aside) != 0 {
		t.Errorf("set aside after one crash: %v", aside)
	}
	again := a
	again.UID = "2" // created again under its name
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour}
	for i, d := range want {
		if diff := cmp.Diff([]Quarantined{{Subject: again, Until: now.Add(d), Failures: i + 2}}, s.crashed([]Subject{again}, now)); diff != "" {
			t.Error(diff)
		}
	}
	if aside := s.forget(now.Add(30 * time.Minute)); len(aside) != 1 || aside[0].Subject != again {
		t.Errorf("set aside: %v", aside)
	}
	if aside := s.forget(now.Add(time.Hour + time.Minute)); len(aside) != 0 || len(s) != 1 {
		t.Errorf("set aside %v, remembered %v: b is forgotten, and a has an hour to show that it is harmless", aside, s)
	}
	if s.forget(now.Add(3 * time.Hour)); len(s) != 0 {
		t.Errorf("remembered: %v", s)
	}
}

func TestRecord(t *testing.T) {
	r, err := newRecord()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	now := time.Unix(1e9, 0)
	a, b, c := Subject{"", "v1", "A", "n", "a", "u"}, Subject{"", "v1", "B", "", "b", "u"}, Subject{"", "v1", "C", "n", "c", "u"}
	r.Begin(a, now.Add(2))
	other := r.Begin(c, now)
	r.Begin(b, now.Add(1))
	r.Begin(b, now.Add(3)) // by another controller
	other.End()
	if diff := cmp.Diff([]Subject{b, a}, r.Suspects()); diff != "" {
		t.Error(diff)
	}
	var all []Entry
	for range 2 * slots {
		all = append(all, r.Begin(c, now))
	}
	for _, e := range all {
		e.End()
	}
	if diff := cmp.Diff([]Subject{b, a}, r.Suspects()); diff != "" {
		t.Errorf("after more than there is room for: %s", diff)
	}
	long := Subject{Name: string(make([]byte, slotSize))}
	r.Begin(long, now).End()

	// What is being decoded is blamed before what is reconciled beside it, where it took much.
	x, y := Subject{Work: Decoding, Kind: "Cluster", Name: "x"}, Subject{Work: Decoding, Kind: "Cluster", Name: "y"}
	r.Begin(y, now).Weigh(20)
	heavy := r.Begin(x, now)
	heavy.Weigh(100)
	if diff := cmp.Diff([]Subject{x}, r.Suspects()); diff != "" {
		t.Error(diff)
	}
	heavy.End()
	if diff := cmp.Diff([]Subject{y}, r.Suspects()); diff != "" {
		t.Error(diff)
	}
}

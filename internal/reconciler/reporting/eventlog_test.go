package reporting

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The recorder makes a series of events that regard the same version of an object: those that say the same do.
func TestRepeatedEventsRegardOneVersion(t *testing.T) {
	var n eventVersions
	at := time.Unix(1e9, 0)
	o := func(uid types.UID, version string) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		m.UID, m.ResourceVersion = uid, version
		return m
	}
	for i, step := range []struct {
		reason       string
		after        time.Duration
		uid, version string
		text, want   string
	}{
		{"the first", 0, "a", "1", "quota", "1"},
		{"the status was written meanwhile", time.Minute, "a", "2", "quota", "1"},
		{"another text is another event", 0, "a", "2", "created m1", "2"},
		{"and has a series of its own", time.Minute, "a", "3", "created m1", "2"},
		{"both go on", 0, "a", "4", "quota", "1"},
		{"another object", 0, "b", "9", "quota", "9"},
		{"the recorder has ended the series", 7 * time.Minute, "a", "5", "quota", "5"},
	} {
		at = at.Add(step.after)
		m := o(types.UID(step.uid), step.version)
		if got := n.regarding(m, step.text, at).GetResourceVersion(); got != step.want || m.ResourceVersion != step.version {
			t.Errorf("step %d, %s: regards version %s, want %s; the object has %s", i, step.reason, got, step.want, m.ResourceVersion)
		}
	}
	for i := range maxNotes + 10 {
		n.regarding(o("c", "1"), fmt.Sprint(i), at)
	}
	if len(n.of) > maxNotes {
		t.Errorf("%d events are remembered", len(n.of))
	}
}

package hook

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// RT-14: an answer that blocks never becomes one that does not because its time ends while it is looked up.
func TestKeptAnswerEndsWhileItIsRead(t *testing.T) {
	begin := time.Unix(0, 0)
	readings := []time.Time{begin, begin.Add(30*time.Second - 1), begin.Add(31 * time.Second)}
	a := newAnswers(func() time.Time {
		now := readings[0]
		if len(readings) > 1 {
			readings = readings[1:]
		}
		return now
	})
	body, err := json.Marshal(answered("not yet", 30))
	if err != nil {
		t.Fatal(err)
	}
	h, _ := hooks.Default().Hook(hooks.ID{Name: create, Version: "v1alpha1"})
	a.put("key", body, 30*time.Second)
	if r, ok := a.get("key", h).(hooks.RetryResponse); !ok || r.GetRetryAfterSeconds() != 1 {
		t.Errorf("a nanosecond before its end: %+v, want an answer that blocks for a second", r)
	}
	if r := a.get("key", h); r != nil {
		t.Errorf("after its end: %+v", r)
	}
}

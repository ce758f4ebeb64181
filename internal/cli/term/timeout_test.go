package term

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestWaitTimeout(t *testing.T) {
	for text, want := range map[string]struct{ always, optional bool }{
		"5m": {true, true}, "0": {false, true}, "0s": {false, true}, "-1s": {false, false}, "soon": {false, false},
	} {
		for name, valid := range map[string]bool{"always": want.always, "optional": want.optional} {
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			add := AddWaitTimeout
			if name == "optional" {
				add = AddOptionalWaitTimeout
			}
			got := add(set, time.Minute, "how long to wait")
			err := set.Parse([]string{"--wait-timeout=" + text})
			if (err == nil) != valid {
				t.Errorf("%s: %s: %v", name, text, err)
			}
			if parsed, _ := time.ParseDuration(text); err == nil && *got != parsed || err != nil && *got != time.Minute {
				t.Errorf("%s: %s is %v", name, text, *got)
			}
		}
	}
}

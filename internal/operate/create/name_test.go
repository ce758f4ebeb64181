package create_test

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/create"
)

func TestCheckName(t *testing.T) {
	cases := map[string]struct {
		reason, name, want string
	}{
		"plain":      {"letters, digits and dashes", "demo-1", ""},
		"upper case": {"names of the API are lower case", "Demo", "lowercase RFC 1123 label"},
		"dot":        {"the name becomes a label value and part of host names", "a.b", "must not contain dots"},
		"empty":      {"an empty argument comes from an empty variable", "", "cannot be the name"},
		"very long":  {"one limit is enough", strings.Repeat("a", 64), "of a cluster: must have at most 50 characters"},
		"long":       {"names made from it must fit too", strings.Repeat("a", 51), "at most 50 characters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := create.CheckName(tc.name)
			if tc.want == "" {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s: got %v, want an Invalid fault with %q", tc.reason, err, tc.want)
			}
		})
	}
}

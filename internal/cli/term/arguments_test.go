package term_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

func TestArguments(t *testing.T) {
	cases := map[string]struct{ reason, args, want string }{
		"right":   {"one argument is what the verb takes", "get thing a", ""},
		"none":    {"the missing argument is named", "get thing", `"slipway get thing" needs one argument, THING; see "slipway get thing --help"`},
		"many":    {"a space in a name is the usual reason", "get thing a b", `takes one argument, not a b`},
		"unknown": {"the verbs that exist are listed", "get nothing", `the subcommands of "slipway get" are: thing; see "slipway get --help"`},
		"alone":   {"a group alone prints its help", "get", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "slipway", SilenceErrors: true, SilenceUsage: true}
			get := &cobra.Command{Use: "get"}
			term.MarkGroup(get)
			get.AddCommand(&cobra.Command{Use: "thing THING", Args: term.ExactlyOneArgument("THING"), RunE: func(*cobra.Command, []string) error { return nil }})
			root.AddCommand(get)
			root.SetOut(&bytes.Buffer{})
			root.SetArgs(strings.Fields(tc.args))
			err := root.Execute()
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

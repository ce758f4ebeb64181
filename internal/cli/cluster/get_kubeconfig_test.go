package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

func TestFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		says string // empty: they are good
	}{
		"nothing":              {nil, ""},
		"a person":             {[]string{"--user=anna", "--role=view", "--valid=1h", "--merge"}, ""},
		"two places":           {[]string{"--merge", "--output-file=x"}, "--merge and --output-file are mutually exclusive"},
		"a role of no one":     {[]string{"--role=view"}, "require --user"},
		"an empty name":        {[]string{"--user="}, "require --user"},
		"a time of no one":     {[]string{"--valid=1h"}, "require --user"},
		"management":           {[]string{"--management", "--user=anna", "--group=team-a", "--valid=1h", "--output-file=x"}, ""},
		"management of no one": {[]string{"--management"}, "--management requires --user"},
		"management, role":     {[]string{"--management", "--user=anna", "--role=view"}, "--management requires --user"},
		"management, merged":   {[]string{"--management", "--user=anna", "--merge"}, "--management requires --user"},
		"a group of no one":    {[]string{"--group=g"}, "require --user"},
		"myself":               {[]string{"--merge", "--role=view", "--valid=1h"}, ""},
		"administrator":        {[]string{"--merge", "--admin"}, ""},
		"both":                 {[]string{"--admin", "--user=anna"}, "cannot be used with --user"},
		"a file by the way":    {[]string{"--user=anna", "--output-file=x"}, ""},
	} {
		f, set := &kubeconfigFlags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		f.add(set)
		if err := set.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		err := f.check(set)
		if tc.says == "" && err != nil || tc.says != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A key in a file that others may read is everybody's.
func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "k")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeKubeconfig(file, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "new" {
		t.Errorf("%s, %v", data, err)
	}
	if err := writeKubeconfig(filepath.Join(file, "below"), nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a file below a file: %v", err)
	}
}

// TestManagementArguments checks that --management is not combined with the name of a cluster, which would be ignored.
func TestManagementArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		flags, args []string
		valid       bool
	}{
		"management":          {[]string{"--management"}, nil, true},
		"management, cluster": {[]string{"--management"}, []string{"demo"}, false},
		"cluster":             {nil, []string{"demo"}, true},
		"neither":             {nil, nil, false},
	} {
		cmd := GetKubeconfigCommand(term.Env{})
		if err := cmd.ParseFlags(tc.flags); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Args(cmd, tc.args); (err == nil) != tc.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

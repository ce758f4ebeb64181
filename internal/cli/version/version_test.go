package version_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/version"
	"sigs.k8s.io/yaml"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := version.Command(env.Env{Out: &out})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestFormats(t *testing.T) {
	want := buildinfo.Get()
	for format, read := range map[string]func(string, *buildinfo.Info) error{
		"json": func(s string, i *buildinfo.Info) error { return json.Unmarshal([]byte(s), i) },
		"yaml": func(s string, i *buildinfo.Info) error { return yaml.Unmarshal([]byte(s), i) },
	} {
		out, err := run(t, "-o", format)
		if err != nil {
			t.Fatal(err)
		}
		var got buildinfo.Info
		if err := read(out, &got); err != nil || got != want {
			t.Errorf("%s: %+v, want %+v (%v)", format, got, want, err)
		}
	}
	if out, err := run(t, "-o", "short"); err != nil || out != want.Version+"\n" {
		t.Errorf("short: %q, %v", out, err)
	}
	if out, err := run(t); err != nil || !strings.Contains(out, "Kubernetes "+want.Kubernetes) {
		t.Errorf("text: %q, %v", out, err)
	}
	if _, err := run(t, "-o", "xml"); err == nil || !strings.Contains(err.Error(), "json, yaml, short") {
		t.Errorf("an unknown format: %v", err)
	}
}

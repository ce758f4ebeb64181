package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"sigs.k8s.io/yaml"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := cli.VersionCommand(term.Env{Out: &out})
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

// CX-15: a newer release is named.
func TestHint(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/github.com/slipwayhq/slipway/@v/list" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "v0.1.0\nv0.2.0\n")
	}))
	defer proxy.Close()
	cache := t.TempDir()
	e := term.Env{Now: time.Now, Getenv: func(name string) string {
		return map[string]string{"GOPROXY": proxy.URL, "XDG_CACHE_HOME": cache}[name]
	}}
	if got := cli.Hint(t.Context(), e, "v0.1.0"); got != "Release v0.2.0 of slipway is available; this is v0.1.0." {
		t.Error(got)
	}
	if got := cli.Hint(t.Context(), e, "v0.2.0"); got != "" {
		t.Error(got)
	}
}

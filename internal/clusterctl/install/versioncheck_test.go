package install_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
)

// proxy is a Go module proxy with the releases of one module; it counts how often it is asked.
func proxy(t *testing.T, releases string) (address string, asked *int) {
	t.Helper()
	asked = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/example.org/program/@v/list":
			*asked++
			_, _ = io.WriteString(w, releases)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// CX-15: the newest release is named where it is newer than this one, which is asked for once a day, and for releases alone.
func TestRelease(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason, current, releases string
		more                      map[string]string
		want                      string
		asked                     int
	}{
		"newer":          {"the newest counts, pre-releases aside", "v0.1.0", "v0.1.0\nv0.9.0\nv0.10.0\nv0.11.0-rc.1\n", nil, "v0.10.0", 1},
		"newest":         {"there is none newer", "v0.10.0", "v0.1.0\nv0.10.0\n", nil, "", 1},
		"candidate":      {"a candidate is older than its release", "v0.2.0-rc.1", "v0.2.0\n", nil, "v0.2.0", 1},
		"commit":         {"a commit after a release is not compared", "v0.1.0-5-gabcdef", "v0.2.0\n", nil, "", 0},
		"not stamped":    {"a build without a version", "v0.0.0-dev", "v0.2.0\n", nil, "", 0},
		"not released":   {"the proxy does not know the module", "v0.1.0", "", nil, "", 1},
		"disabled":       {"clusterctl's variable is respected", "v0.1.0", "v0.2.0\n", map[string]string{"CLUSTERCTL_DISABLE_VERSIONCHECK": "1"}, "", 0},
		"without proxy":  {"GOPROXY says that no proxy may be asked", "v0.1.0", "v0.2.0\n", map[string]string{"GOPROXY": "off"}, "", 0},
		"nowhere to ask": {"a proxy that does not answer is no error", "v0.1.0", "v0.2.0\n", map[string]string{"GOPROXY": "http://127.0.0.1:1"}, "", 0},
		"no home":        {"without a place for the answer it would be asked every time", "v0.1.0", "v0.2.0\n", map[string]string{"XDG_CACHE_HOME": ""}, "", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			address, asked := proxy(t, tc.releases)
			variables := map[string]string{"GOPROXY": address, "XDG_CACHE_HOME": t.TempDir()}
			for k, v := range tc.more {
				variables[k] = v
			}
			c := install.VersionCheck{Module: "example.org/program", Current: tc.current, Now: func() time.Time { return at }, Getenv: func(name string) string { return variables[name] }}
			for range 2 { // the second time from the file
				if got := c.Release(t.Context()); got != tc.want || *asked != tc.asked {
					t.Errorf("%s: %q, asked %d times, want %q, %d", tc.reason, got, *asked, tc.want, tc.asked)
				}
			}
			c.Now = func() time.Time { return at.Add(23 * time.Hour) }
			if c.Release(t.Context()); *asked != tc.asked {
				t.Errorf("asked again after 23 hours")
			}
			c.Now = func() time.Time { return at.Add(24 * time.Hour) }
			if c.Release(t.Context()); *asked != 2*tc.asked {
				t.Errorf("asked %d times in two days", *asked)
			}
		})
	}
}

// CX-15: a file that cannot be read, or is of the future, is as none.
func TestBrokenFile(t *testing.T) {
	address, asked := proxy(t, "v0.2.0\n")
	home := t.TempDir()
	path := filepath.Join(home, ".cache", "slipway", "newest-release.json")
	c := install.VersionCheck{Module: "example.org/program", Current: "v0.1.0", Now: time.Now, Getenv: func(name string) string {
		return map[string]string{"GOPROXY": address, "HOME": home}[name]
	}}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for n, text := range []string{"{", `{"checkedAt":"2999-01-01T00:00:00Z","newest":"v9.0.0"}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.Release(t.Context()); got != "v0.2.0" || *asked != n+1 {
			t.Errorf("%s: %q, asked %d times", text, got, *asked)
		}
	}
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), `"newest":"v0.2.0"`) {
		t.Errorf("%s, %v", data, err)
	}
}

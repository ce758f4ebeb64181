package repository_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

func environment(values map[string]string) repository.ConfigEnvironment {
	return repository.ConfigEnvironment{Lookup: func(name string) (string, bool) { v, ok := values[name]; return v, ok }}
}

func parse(t *testing.T, text string, values map[string]string) *repository.ConfigFile {
	t.Helper()
	f, err := repository.ParseConfig([]byte(text), "clusterctl.yaml", environment(values))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const full = `# comments are fine
providers:
- name: acme
  type: InfrastructureProvider
  url: ${BASE}/infrastructure-acme/latest/infrastructure-components.yaml
- name: kubeadm
  type: "BootstrapProvider"
  url: https://web.example/v1.0.0/bootstrap-components.yaml
cert-manager:
  version: v1.2.3
  timeout: 15m
  externallyProvisioned: true
overridesFolder: ${HOME}/overrides
images:
  all: {repository: mirror.example/all/}
  infrastructure-acme: {tag: v9}
  infrastructure-acme/proxy: {repository: other.example, name: shield, tag: v8}
AWS_REGION: eu-west-1
COUNT: 3
LATE: 0x1F
SWITCH: yes
EMPTY:
aws-b64: "s3cret"
`

// CX-20: everything that the file may say.
func TestFile(t *testing.T) {
	f := parse(t, full, map[string]string{"BASE": "/srv", "HOME": "/home/me", "AWS_REGION": "us-east-1", "ONLY_HERE": ""})
	if p, err := f.Provider(provider.Infrastructure, "acme"); err != nil || p.URL != "/srv/infrastructure-acme/latest/infrastructure-components.yaml" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := f.Provider(provider.Bootstrap, "kubeadm"); err != nil || p.URL != "https://web.example/v1.0.0/bootstrap-components.yaml" {
		t.Errorf("the file replaces a built-in provider: %+v, %v", p, err)
	}
	if got, want := len(f.Providers()), len(provider.Builtin())+1; got != want {
		t.Errorf("%d providers, want %d", got, want)
	}
	if f.OverridesFolder() != "/home/me/overrides" {
		t.Errorf("overrides in %s", f.OverridesFolder())
	}
	want := repository.CertManager{URL: "https://github.com/cert-manager/cert-manager/releases/v1.2.3/cert-manager.yaml", Version: "v1.2.3", Timeout: 15 * time.Minute, ExternallyProvisioned: true}
	if diff := cmp.Diff(want, f.CertManager); diff != "" {
		t.Error(diff)
	}
	for name, value := range map[string]string{
		"AWS_REGION": "us-east-1", "COUNT": "3", "LATE": "0x1F", "SWITCH": "yes", "EMPTY": "", "ONLY_HERE": "",
		"AWS_B64": "s3cret", "aws-b64": "s3cret", "count": "3",
	} {
		if got, ok := f.Variable(name); !ok || got != value {
			t.Errorf("%s is %q, %t, want %q", name, got, ok, value)
		}
	}
	if value, ok := f.Variable("NONE"); ok {
		t.Errorf("NONE is %q", value)
	}
	_, err := f.Provider("IPAMProvider", "acme")
	if fault.KindOf(err) != fault.Gone || !strings.Contains(err.Error(), "known providers: in-cluster, metal3, nutanix; add others to providers in clusterctl.yaml") {
		t.Error(err)
	}
}

// CX-20: a variable of the environment counts with its exact name, too, after the name that clusterctl looks up.
func TestExactNames(t *testing.T) {
	f := parse(t, "COUNT: 3\nOTHER: file\n", map[string]string{"myVar": "exact", "count": "lower", "UP": "upper", "up": "lower"})
	for name, want := range map[string]string{"myVar": "exact", "count": "lower", "COUNT": "3", "up": "upper", "other": "file"} {
		if got, ok := f.Variable(name); !ok || got != want {
			t.Errorf("%s is %q, %t, want %q", name, got, ok, want)
		}
	}
	if got, ok := f.Variable("MYVAR"); ok {
		t.Errorf("MYVAR is %q", got)
	}
}

// CX-20: without a file everything has its default.
func TestDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "{}", "providers:\nimages:\ncert-manager:\n"} {
		f := parse(t, text, map[string]string{"XDG_CONFIG_HOME": "/x"})
		if len(f.Providers()) != len(provider.Builtin()) || f.OverridesFolder() != "/x/cluster-api/overrides" || f.CertManager.Timeout != 10*time.Minute ||
			!strings.Contains(f.CertManager.URL, repository.DefaultCertManagerVersion) {
			t.Errorf("%q: %+v", text, f)
		}
		if image, err := f.AlterImage("x", "not a reference at all"); err != nil || image != "not a reference at all" {
			t.Errorf("without overrides images are not even read: %s, %v", image, err)
		}
	}
	if f := parse(t, "", map[string]string{"HOME": "/h"}); f.OverridesFolder() != "/h/.config/cluster-api/overrides" {
		t.Error(f.OverridesFolder())
	}
	if f := parse(t, "", nil); f.OverridesFolder() != "" {
		t.Error(f.OverridesFolder())
	}
}

// CX-21: the most specific override wins, field by field.
func TestImages(t *testing.T) {
	f := parse(t, full, nil)
	for image, want := range map[string][2]string{
		"registry.example/team/manager:v1":  {"infrastructure-acme", "mirror.example/all/manager:v9"},
		"registry.example/team/proxy:v1":    {"infrastructure-acme", "other.example/shield:v8"},
		"registry.example/team/webhook:v1":  {"cert-manager", "mirror.example/all/webhook:v1"},
		"registry.example/team/webhook":     {"cert-manager", "mirror.example/all/webhook"},
		"registry.example:5000/a/b/c/d:v1":  {"other", "mirror.example/all/d:v1"},
		"docker.io/library/busybox:1":       {"other", "mirror.example/all/busybox:1"},
		"registry.example/team/x@" + digest: {"other", "mirror.example/all/x@" + digest},
	} {
		if got, err := f.AlterImage(want[0], image); err != nil || got != want[1] {
			t.Errorf("%s of %s becomes %s, %v; want %s", image, want[0], got, err, want[1])
		}
	}
	_, err := f.AlterImage("other", "busybox")
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), `"busybox" of other`) {
		t.Error(err)
	}
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// CX-20: a mistake is said with its line, all at once, and no value of a variable is repeated.
func TestMistakes(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"no yaml":         {"a value is not repeated", "A: b\nPASSWORD: \"s3cret\n", "line"},
		"list":            {"a file is a mapping", "- a", "line 1: the file is not a mapping"},
		"providers":       {"the beginning of an entry is shown", "providers: {name: a}", "line 1: providers is not a list"},
		"provider":        {"the types that exist are listed", "A: b\nproviders:\n- {name: x, type: Infra, url: /x}", "line 3: provider x has the type \"Infra\"; use one of: CoreProvider"},
		"provider field":  {"a misspelt field", "providers:\n- {name: x, typ: y, url: /x}", "not typ"},
		"same provider":   {"which would count?", "providers:\n- &a {name: x, type: AddonProvider, url: /x}\n- *a", "line 2: provider addon-x is listed twice"},
		"provider url":    {"variables have a form", "providers:\n- {name: x, type: AddonProvider, url: '${A'}", "the url contains an invalid variable"},
		"cert-manager":    {"a misspelt field", "cert-manager:\n  vers: x", "line 2: cert-manager has the fields url, version"},
		"timeout":         {"a number has no unit", "cert-manager:\n  timeout: 10", "line 2: the timeout of cert-manager is \"10\""},
		"external":        {"true or false", "cert-manager: {externallyProvisioned: maybe}", "write true or false"},
		"images":          {"component, then fields", "images:\n  all: x", "line 2: images.all is not a mapping"},
		"image field":     {"a misspelt field", "images:\n  all:\n    repo: x", "line 3: an image has the fields repository"},
		"unknown list":    {"no variable has this form", "imagez:\n- a", "line 1: imagez is neither a variable"},
		"nested variable": {"no variable has this form", "A:\n  b: s3cret", "line 1: A is neither a variable"},
		"twice":           {"which would count?", "A: s3cret\nA: s3cret2", "line 2: A is set twice"},
		"twice by case":   {"names are the same in upper case", "A: s3cret\na: s3cret2", "line 2: a is set twice"},
		"text":            {"one value", "overridesFolder: [a]", "overridesFolder is not a string"},
		"overrides":       {"variables have a form", "overridesFolder: ${A", "overridesFolder contains an invalid variable"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := repository.ParseConfig([]byte(tc.text), "clusterctl.yaml", environment(nil))
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "clusterctl.yaml") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
	_, err := repository.ParseConfig([]byte("providers: x\nimages: y\n"), "f", environment(nil))
	if err == nil || strings.Count(err.Error(), "line") != 2 {
		t.Errorf("not all mistakes are said: %v", err)
	}
}

// CX-20: where the file is.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	put := func(path, value string) string {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("WHICH: "+value), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("xdg/cluster-api/clusterctl.yaml", "xdg")
	put("home/.config/cluster-api/clusterctl.yaml", "config")
	put("home/.cluster-api/clusterctl.yaml", "home")
	put("old/.cluster-api/clusterctl.yml", "old")
	put("json/cluster-api/clusterctl.json", "json")
	given := put("given.yaml", "given")
	cases := map[string]struct {
		reason, flag string
		xdg, home    string
		want         string
	}{
		"flag":      {"what is named wins", given, "xdg", "home", "given"},
		"xdg":       {"the usual place", "", "xdg", "home", "xdg"},
		"config":    {"the usual place where XDG_CONFIG_HOME is not set", "", "", "home", "config"},
		"old place": {"the place of earlier versions", "", "none", "old", "old"},
		"json":      {"JSON is YAML", "", "json", "home", "json"},
		"none":      {"no file is needed", "", "none", "none", ""},
		"no home":   {"a service has none", "", "", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			values := map[string]string{}
			if tc.xdg != "" {
				values["XDG_CONFIG_HOME"] = filepath.Join(dir, tc.xdg)
			}
			if tc.home != "" {
				values["HOME"] = filepath.Join(dir, tc.home)
			}
			f, err := repository.LoadConfig(t.Context(), environment(values), tc.flag)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := f.Variable("WHICH"); got != tc.want || (f.Path == "") != (tc.want == "") {
				t.Errorf("%q from %q, want %q: %s", got, f.Path, tc.want, tc.reason)
			}
		})
	}
	_, err := repository.LoadConfig(t.Context(), environment(nil), filepath.Join(dir, "missing"))
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "missing cannot be read (no such file") {
		t.Errorf("a file that was named is not replaced by another: %v", err)
	}
}

// CX-20: the file may be at an address, which is read over TLS alone and leaves no copy.
func TestAddress(t *testing.T) {
	home := t.TempDir()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/c.yaml":
			_, _ = fmt.Fprint(w, "WHICH: there")
		case "/plain":
			http.Redirect(w, r, "http://127.0.0.1:1/c.yaml", http.StatusFound)
		case "/large":
			_, _ = w.Write(make([]byte, 2<<20))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	e := environment(map[string]string{"HOME": home})
	e.Client = server.Client()
	f, err := repository.LoadConfig(t.Context(), e, server.URL+"/c.yaml?token=s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Variable("WHICH"); got != "there" {
		t.Errorf("%q", got)
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	for address, want := range map[string]string{
		"http://config.example/c.yaml":       "does not use TLS",
		server.URL + "/plain":                "redirects to a URL",
		server.URL + "/large":                "larger than 1 MiB",
		server.URL + "/none?token=s3cret":    "404",
		"https://127.0.0.1:1/c?token=s3cret": "does not respond",
	} {
		_, err := repository.LoadConfig(t.Context(), e, address)
		if fault.As(err) == nil || !strings.Contains(fault.UserMessage(err), want) || strings.Contains(fault.UserMessage(err), "s3cret") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

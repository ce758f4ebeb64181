package repository_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	onGitHub = "https://github.com/Acme/capa/releases/latest/infrastructure-components.yaml"
	download = "github.com/Acme/capa/releases/download/"
	apiOf    = "api.github.com/repos/Acme/capa/releases"
	module   = "proxy.golang.org/github.com/!acme/capa"
)

// CC2-03, CX-23: versions come from the Go module proxy, of all major versions; files from the release.
func TestGitHub(t *testing.T) {
	n := newInternet(t)
	n.file(module+"/@v/list", "v0.9.0\nv1.0.0\nv1.1.0\nv1.2.0-rc.1\n")
	n.file(module+"/v2/@v/list", "v2.0.0+incompatible 2024-01-01\n")
	n.file(download+"v2.0.0/metadata.yaml", metadata("1.1 v1beta1", "2.0 v1beta2"))
	n.file(download+"v2.0.0/infrastructure-components.yaml", "kind: A")
	n.file(download+"v2.0.0/cluster-template-gpu.yaml", "kind: B")
	n.file(download+"v2.0.0/clusterclass-quick.yaml", "kind: C")
	s := n.open(t, onGitHub)
	version, err := s.Version(t.Context(), "", repository.Contract)
	if err != nil || version != "v2.0.0" {
		t.Fatalf("%s, %v", version, err)
	}
	versions, err := s.Versions(t.Context())
	if got := strings.Join(versions, " "); err != nil || got != "v1.2.0-rc.1 v0.9.0 v1.0.0 v1.1.0 v2.0.0" {
		t.Errorf("%s, %v", got, err)
	}
	for range 2 { // the second time from the cache
		components, err := s.Components(t.Context(), version)
		if err != nil || string(components) != "kind: A" {
			t.Errorf("%s, %v", components, err)
		}
	}
	template, err := s.Template(t.Context(), version, "gpu")
	if err != nil || string(template) != "kind: B" {
		t.Errorf("%s, %v", template, err)
	}
	class, err := s.ClusterClass(t.Context(), version, "quick")
	if err != nil || string(class) != "kind: C" {
		t.Errorf("%s, %v", class, err)
	}
	_, err = s.Template(t.Context(), version, "none")
	wantFault(t, err, fault.Gone, "github.com/Acme/capa has no file cluster-template-none.yaml for version v2.0.0")
	if n := strings.Count(n.seen(), "infrastructure-components.yaml"); n != 1 {
		t.Errorf("the components were read %d times", n)
	}
	if strings.Contains(n.seen(), "api.github.com") {
		t.Errorf("GitHub's API was not needed:\n%s", n.seen())
	}
}

// CC2-03: which proxies GOPROXY means; without one, GitHub's API lists the releases, page by page.
func TestGOPROXY(t *testing.T) {
	cases := map[string]struct {
		reason, setting string
		want            string
	}{
		"not set":     {"the public proxy is the default", "", "v1.0.0"},
		"list":        {"the second is used where the first does not know the module", "https://first.example/p/,https://proxy.golang.org|direct", "v1.0.0"},
		"unknown":     {"a proxy that does not know the module is followed by the API", "https://elsewhere.example", "v3.0.0"},
		"off":         {"no proxy", "off", "v3.0.0"},
		"direct":      {"no proxy", "direct,https://proxy.golang.org", "v3.0.0"},
		"not working": {"a proxy that fails is followed by the next", "https://web.example,https://proxy.golang.org", "v1.0.0"},
		"file":        {"a folder is no server", "file:///go/proxy,off", "v3.0.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := newInternet(t)
			n.file(module+"/@v/list", "v1.0.0\n")
			n.answer("web.example", http.StatusBadGateway)
			n.handle(apiOf, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("page") == "2" {
					w.Header().Set("Link", `<https://elsewhere.example/3>; rel="next"`)
					_, _ = fmt.Fprint(w, `[{"tag_name":"v3.0.0"}]`)
					return
				}
				w.Header().Set("Link", `<https://api.github.com/repos/Acme/capa/releases?page=2>; rel="next", <https://x>; rel="last"`)
				_, _ = fmt.Fprint(w, `[{"tag_name":"v2.0.0"},{"tag_name":"v9.0.0","draft":true},{"tag_name":"nightly"}]`)
			})
			for _, v := range []string{"v1.0.0", "v2.0.0", "v3.0.0", "v9.0.0"} {
				n.file(download+v+"/metadata.yaml", metadata("1.0 v1beta2", "2.0 v1beta2", "3.0 v1beta2", "9.0 v1beta2"))
			}
			n.variables["GOPROXY"] = tc.setting
			if got, err := n.open(t, onGitHub).Latest(t.Context(), "v1beta2"); err != nil || got != tc.want {
				t.Errorf("%s, %v, want %s: %s", got, err, tc.want, tc.reason)
			}
			if strings.Contains(n.seen(), "elsewhere.example/3") {
				t.Error("a page of another host was read")
			}
		})
	}
}

// CC2-03: private projects are read through the API with a token, which does not follow to the host that stores the files.
func TestGitHubToken(t *testing.T) {
	n := newInternet(t)
	n.variables["GITHUB_TOKEN"], n.variables["GOPROXY"] = "s3cret", "off"
	n.handle(apiOf, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprint(w, `[{"tag_name":"v1.0.0"}]`)
	})
	n.file(apiOf+"/tags/v1.0.0", `{"assets":[{"id":7,"name":"metadata.yaml"},{"id":8,"name":"infrastructure-components.yaml"}]}`)
	n.file("assets.example/7", metadata("1.0 v1beta2"))
	n.handle(apiOf+"/assets/7", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://assets.example/7?signature=s3cret", http.StatusFound)
	})
	s := n.open(t, onGitHub)
	if got, err := s.Latest(t.Context(), "v1beta2"); err != nil || got != "v1.0.0" {
		t.Fatalf("%s, %v\n%s", got, err, n.seen())
	}
	if strings.Contains(n.seen(), "https://assets.example/7 with") || strings.Contains(n.seen(), "https://github.com/Acme/capa/releases/download/v1.0.0/metadata.yaml with") {
		t.Errorf("the token went elsewhere:\n%s", n.seen())
	}
	_, err := s.Components(t.Context(), "v1.0.0") // the asset is listed, and is gone
	wantFault(t, err, fault.Gone, "infrastructure-components.yaml for version v1.0.0")
	_, err = s.File(t.Context(), "v1.0.0", "other.yaml")
	wantFault(t, err, fault.Gone, "other.yaml")
}

// What servers answer when something is wrong, and what a user reads then.
func TestFailures(t *testing.T) {
	const list = onGitHub
	cases := map[string]struct {
		reason string
		set    func(*internet)
		kind   fault.Kind
		says   string
		tries  int
	}{
		"rate limit": {"trying again makes it worse; a token helps", func(n *internet) {
			n.answer(apiOf, http.StatusForbidden, "X-RateLimit-Remaining", "0")
		}, fault.Unreachable, "set GITHUB_TOKEN", 1},
		"rate limit with a token": {"time helps", func(n *internet) {
			n.variables["GITHUB_TOKEN"] = "s3cret"
			n.answer(apiOf, http.StatusTooManyRequests)
		}, fault.Unreachable, "run the command again later", 1},
		"wrong token": {"the variable is named, its value is not", func(n *internet) {
			n.variables["GITHUB_TOKEN"] = "s3cret"
			n.answer(apiOf, http.StatusUnauthorized)
		}, fault.Invalid, "rejected the token in GITHUB_TOKEN", 1},
		"no token":     {"the variable is named", func(n *internet) { n.answer(apiOf, http.StatusUnauthorized) }, fault.Invalid, "set GITHUB_TOKEN", 1},
		"server error": {"it may pass", func(n *internet) { n.answer(apiOf, http.StatusBadGateway) }, fault.Unreachable, "502", 3},
		"no JSON":      {"a captive portal answers with a page", func(n *internet) { n.file(apiOf, "<html>") }, fault.Unreachable, "not valid JSON", 1},
		"truncated": {"half a file is no file", func(n *internet) {
			n.handle(apiOf, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = fmt.Fprint(w, "[")
			})
		}, fault.Unreachable, "is incomplete", 3},
		"closed": {"a connection that breaks", func(n *internet) {
			n.handle(apiOf, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}, fault.Unreachable, "api.github.com does not respond", 3},
		"announced too large": {"the size is known before", func(n *internet) {
			n.handle(apiOf, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "999999999") })
		}, fault.Invalid, "larger than 32 MiB", 1},
		"endless": {"memory is bounded", func(n *internet) {
			n.handle(apiOf, func(w http.ResponseWriter, _ *http.Request) {
				for block := make([]byte, 1<<20); ; {
					if _, err := w.Write(block); err != nil {
						return
					}
				}
			})
		}, fault.Invalid, "larger than 32 MiB", 1},
		"redirect to http": {"what is read could be changed on its way", func(n *internet) {
			n.handle(apiOf, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://assets.example/x?t=s3cret", http.StatusFound)
			})
			n.file("assets.example/x", "[]")
		}, fault.Invalid, "the URL at assets.example does not use TLS", 1},
		"redirect to this machine": {"a server must not make the user's machine call itself without TLS", func(n *internet) {
			n.handle(apiOf, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.1:80/x", http.StatusFound)
			})
			n.file("127.0.0.1/x", "[]")
		}, fault.Invalid, "does not use TLS", 1},
		"redirects without end": {"they are counted", func(n *internet) {
			n.handle(apiOf, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
		}, fault.Unreachable, "10 redirects", 30},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := newInternet(t)
			n.variables["GOPROXY"] = "off"
			tc.set(n)
			_, err := n.open(t, list).Versions(t.Context())
			wantFault(t, err, tc.kind, tc.says)
			if tries := strings.Count(n.seen(), "https://api.github.com"); tries != tc.tries {
				t.Errorf("%d requests, want %d: %s\n%s", tries, tc.tries, tc.reason, n.seen())
			}
		})
	}
}

// A certificate that this machine does not trust is no server to read from.
func TestUntrusted(t *testing.T) {
	n := newInternet(t)
	n.file("other.example/v1.0.0/metadata.yaml", metadata("1.0 v1beta2"))
	_, err := n.open(t, "https://other.example/v1.0.0/c.yaml").Metadata(t.Context(), "v1.0.0")
	wantFault(t, err, fault.Unreachable, "other.example", "certificate")
}

// CC2-04: a package in GitLab's registry, its token, and that its versions cannot be listed.
func TestGitLab(t *testing.T) {
	const base = "gitlab.example/api/v4/projects/team%2Fcapa/packages/generic/capa/"
	const decoded = "gitlab.example/api/v4/projects/team/capa/packages/generic/capa/"
	n := newInternet(t)
	n.handle(decoded+"v1.0.0/metadata.yaml", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, metadata("1.0 v1beta2"))
	})
	url := "https://" + base + "v1.0.0/infrastructure-components.yaml"
	_, err := n.open(t, url).Metadata(t.Context(), "v1.0.0")
	wantFault(t, err, fault.Invalid, "set GITLAB_ACCESS_TOKEN")
	n.variables["GITLAB_ACCESS_TOKEN"] = "s3cret"
	s := n.open(t, url)
	if version, err := s.Version(t.Context(), "", "v1beta2"); err != nil || version != "v1.0.0" {
		t.Errorf("%s, %v", version, err)
	}
	if m, err := s.Metadata(t.Context(), "v1.0.0"); err != nil || len(m.ReleaseSeries) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	_, err = s.Components(t.Context(), "v1.1.0")
	wantFault(t, err, fault.Gone, "has no version v1.1.0; its newest versions are: v1.0.0")
	if versions, err := s.Versions(t.Context()); err != nil || len(versions) != 1 {
		t.Errorf("%v, %v", versions, err)
	}
}

// CX-23: a folder on any web server.
func TestWeb(t *testing.T) {
	n := newInternet(t)
	n.file("web.example/a/b/v1.0.0/metadata.yaml", metadata("1.0 v1beta2"))
	n.file("web.example/a/b/v1.1.0/components.yaml", "kind: A")
	n.answer("web.example/a/b/v1.2.0/components.yaml", http.StatusForbidden)
	s := n.open(t, "https://web.example/a/b/v1.0.0/components.yaml")
	if _, err := s.Metadata(t.Context(), "v1.0.0"); err != nil {
		t.Error(err)
	}
	if data, err := s.Components(t.Context(), "v1.1.0"); err != nil || string(data) != "kind: A" {
		t.Errorf("%s, %v", data, err)
	}
	_, err := s.Components(t.Context(), "v1.2.0")
	wantFault(t, err, fault.Invalid, "without credentials")
}

// CX-23: what is no repository is refused before anything is read, without repeating what may be a token.
func TestURLs(t *testing.T) {
	for url, says := range map[string]string{
		"ftp://web.example/v1.0.0/c.yaml":                                       "scheme",
		"http://web.example/v1.0.0/c.yaml":                                      "use https",
		"https://u:s3cret@github.com/a/b/releases/latest/c.yaml":                "GITHUB_TOKEN",
		"https://github.com/a/b/latest/c.yaml":                                  "OWNER/PROJECT/releases",
		"https://github.com/a/b/releases/latest/d/c.yaml":                       "OWNER/PROJECT/releases",
		"https://github.com/a/../releases/latest/c.yaml":                        "not a valid part of a GitHub URL",
		"https://gitlab.example/api/v4/projects/x/packages/maven/p/v1.0.0/c":    "packages/generic",
		"https://gitlab.example/api/v4/projects/x/packages/generic/p/latest/c":  "cannot be listed",
		"https://gitlab.example/api/v4/projects/x/packages/generic/p/stable/c":  "not a semantic version",
		"https://gitlab.example/api/v4/projects/x/packages/generic/p/v1.0.0/..": "does not end with a version and a file",
		"https://web.example/c.yaml":                                            "HOST/PATH/VERSION/FILE",
		"https://web.example/a/latest/c.yaml":                                   "cannot be listed",
		"https://web.example/a/stable/c.yaml":                                   "not a semantic version",
		"https://web.example/a/v1.0.0/c.yaml?token=s3cret":                      "HOST/PATH/VERSION/FILE",
		"oci://user:s3cret@registry.example/capa:v1.0.0":                        "oci://REGISTRY/REPOSITORY",
		"oci://registry.example/capa@sha256:abc":                                "oci://REGISTRY/REPOSITORY",
		"oci://registry.example/UPPER":                                          "oci://REGISTRY/REPOSITORY",
		"relative/infrastructure-acme/v1.0.0/c.yaml":                            "a path must start with /",
		"/x/infrastructure-other/v1.0.0/c.yaml":                                 `is "infrastructure-other"`,
		"/x/infrastructure-acme/stable/c.yaml":                                  "neither a semantic version nor latest",
		"file://host/x/infrastructure-acme/v1.0.0/c.yaml":                       "a path must start with /",
		"https://web.example/%zz":                                               "not a valid URL",
	} {
		_, err := repository.Open(provider.Provider{Name: "acme", Type: provider.Infrastructure, URL: url}, repository.Options{})
		if err == nil {
			t.Errorf("%s is taken", url)
			continue
		}
		wantFault(t, err, fault.Invalid, says, "infrastructure-acme")
	}
}

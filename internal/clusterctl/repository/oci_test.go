package repository_test

import (
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

type keys struct{ user, password string }

func (k keys) Resolve(authn.Resource) (authn.Authenticator, error) {
	if k.user == "" {
		return authn.Anonymous, nil
	}
	return &authn.Basic{Username: k.user, Password: k.password}, nil
}

// push stores files as an artifact, as oras does.
func push(t *testing.T, n *internet, tag string, files map[string]string) {
	t.Helper()
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.oci.empty.v1+json")
	for file, content := range files {
		var err error
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:       static.NewLayer([]byte(content), "application/yaml"),
			Annotations: map[string]string{"org.opencontainers.image.title": file},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	repo, err := name.NewRepository("registry.example/team/capa")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(repo.Tag(tag), image, remote.WithTransport(n.transport), remote.WithAuth(&authn.Basic{Username: "u", Password: "s3cret"})); err != nil {
		t.Fatal(err)
	}
}

func withRegistry(t *testing.T) *internet {
	t.Helper()
	n := newInternet(t)
	n.handle("registry.example", registry.New(registry.Logger(log.New(io.Discard, "", 0))).ServeHTTP)
	push(t, n, "v1.0.0", map[string]string{"metadata.yaml": metadata("1.0 v1beta2"), "infrastructure-components.yaml": "kind: A"})
	push(t, n, "v1.1.0", map[string]string{"metadata.yaml": metadata("1.1 v1beta2"), "infrastructure-components.yaml": "kind: B"})
	push(t, n, "dev", map[string]string{"metadata.yaml": "x"})
	return n
}

func openOCI(t *testing.T, n *internet, url string, k keys) *repository.Source {
	t.Helper()
	o := n.options()
	o.Keychain = k
	s, err := repository.Open(provider.Provider{Name: "acme", Type: provider.Infrastructure, URL: url}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// CX-23: artifacts of a registry: tags are versions, layers with titles are files.
func TestOCI(t *testing.T) {
	n := withRegistry(t)
	for url, want := range map[string][2]string{
		"oci://registry.example/team/capa":        {"v1.1.0", "kind: B"},
		"oci://registry.example/team/capa:latest": {"v1.1.0", "kind: B"},
		"oci://registry.example/team/capa:v1.0.0": {"v1.0.0", "kind: A"},
	} {
		s := openOCI(t, n, url, keys{})
		version, err := s.Version(t.Context(), "", "v1beta2")
		if err != nil || version != want[0] {
			t.Errorf("%s: %s, %v", url, version, err)
			continue
		}
		if data, err := s.Components(t.Context(), version); err != nil || string(data) != want[1] {
			t.Errorf("%s: %s, %v", url, data, err)
		}
	}
	s := openOCI(t, n, "oci://registry.example/team/capa", keys{})
	_, err := s.Components(t.Context(), "v9.0.0")
	wantFault(t, err, fault.Gone, "provider infrastructure-acme has no version v9.0.0; its newest versions are: v1.1.0, v1.0.0")
	_, err = s.Template(t.Context(), "v1.0.0", "")
	wantFault(t, err, fault.Gone, "cluster-template.yaml")
	_, err = openOCI(t, n, "oci://registry.example/team/none", keys{}).Versions(t.Context())
	wantFault(t, err, fault.Gone, "the repository registry.example/team/none does not exist")
}

// CX-23: a registry that wants a pull secret, limits requests, cuts layers off, or changes them.
func TestOCIFailures(t *testing.T) {
	const blob = "/blobs/"
	cases := map[string]struct {
		reason string
		keys   keys
		wrap   func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc)
		kind   fault.Kind
		says   string
	}{
		"pull secret":       {"the credentials of the Docker configuration are used", keys{"u", "s3cret"}, basic, fault.Transient, ""},
		"no pull secret":    {"what to do is said", keys{}, basic, fault.Invalid, "docker login registry.example"},
		"wrong pull secret": {"the password is not repeated", keys{"u", "s3cret2"}, basic, fault.Invalid, "docker login registry.example"},
		"limited": {"later", keys{}, func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			w.WriteHeader(http.StatusTooManyRequests)
		}, fault.Unreachable, "the rate limit of the registry registry.example"},
		"cut off": {"half a layer is no file", keys{}, func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if strings.Contains(r.URL.Path, blob) {
				_, _ = io.WriteString(w, "kin")
				return
			}
			next(w, r)
		}, fault.Unreachable, "reading from registry.example"},
		"changed": {"the digest is checked", keys{}, func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if strings.Contains(r.URL.Path, blob) {
				_, _ = io.WriteString(w, "kind: X")
				return
			}
			next(w, r)
		}, fault.Unreachable, "reading from registry.example"},
		"redirect to http": {"layers are read over TLS", keys{}, func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if strings.Contains(r.URL.Path, blob) {
				http.Redirect(w, r, "http://elsewhere.example/x", http.StatusTemporaryRedirect)
				return
			}
			next(w, r)
		}, fault.Invalid, "does not use TLS"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := withRegistry(t)
			next := n.handlers["registry.example"]
			n.handle("registry.example", func(w http.ResponseWriter, r *http.Request) { tc.wrap(w, r, next) })
			data, err := openOCI(t, n, "oci://registry.example/team/capa", tc.keys).Components(t.Context(), "v1.0.0")
			if tc.says == "" {
				if err != nil || string(data) != "kind: A" {
					t.Errorf("%s, %v: %s", data, err, tc.reason)
				}
				return
			}
			wantFault(t, err, tc.kind, tc.says)
		})
	}
}

func basic(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	if user, password, _ := r.BasicAuth(); user != "u" || password != "s3cret" {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	next(w, r)
}

package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

func extension(change func(*runtimev1.ExtensionConfig)) *runtimev1.ExtensionConfig {
	c := &runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "ext"},
		Spec: runtimev1.ExtensionConfigSpec{
			ClientConfig: runtimev1.ClientConfig{URL: "https://host:8443/prefix"}, NamespaceSelector: &metav1.LabelSelector{},
		},
	}
	if change != nil {
		change(c)
	}
	return c
}

func service(s runtimev1.ServiceReference) func(*runtimev1.ExtensionConfig) {
	return func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig = runtimev1.ClientConfig{Service: s} }
}

// RT-01, RT-03
func TestDefaultExtensionConfig(t *testing.T) {
	without := extension(service(runtimev1.ServiceReference{Namespace: "n", Name: "s"}))
	without.Spec.NamespaceSelector = nil
	got, changed := Default(Request{New: without})
	want := extension(service(runtimev1.ServiceReference{Namespace: "n", Name: "s", Port: new(int32(443))}))
	if diff := cmp.Diff(want, got); diff != "" || !changed {
		t.Errorf("changed %t\n%s", changed, diff)
	}
	if without.Spec.NamespaceSelector != nil || without.Spec.ClientConfig.Service.Port != nil {
		t.Error("the request was changed")
	}
	if _, changed := Default(Request{New: got}); changed {
		t.Error("the defaults are given twice")
	}
	if got, changed := Default(Request{New: extension(nil)}); changed || got.(*runtimev1.ExtensionConfig).Spec.ClientConfig.Service.Port != nil {
		t.Error("a url got the port of a service")
	}
}

// RT-01, RT-02
func TestValidateExtensionConfig(t *testing.T) {
	at := func(url string) func(*runtimev1.ExtensionConfig) {
		return func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = url }
	}
	tests := map[string]struct {
		change func(*runtimev1.ExtensionConfig)
		off    bool
		errs   []string
	}{
		"url":            {},
		"turned off":     {off: true, errs: []string{"spec: Forbidden: Runtime Extensions are disabled; start the manager with --feature-gates=RuntimeSDK=true"}},
		"service":        {change: service(runtimev1.ServiceReference{Namespace: "n", Name: "s", Path: "/a/b", Port: new(int32(65535))})},
		"name with dots": {change: func(c *runtimev1.ExtensionConfig) { c.Name = "a.b" }, errs: []string{"metadata.name: Invalid"}},
		"long name":      {change: func(c *runtimev1.ExtensionConfig) { c.Name = strings.Repeat("a", 64) }, errs: []string{"metadata.name: Invalid"}},
		"neither":        {change: at(""), errs: []string{"spec.clientConfig: Required value: either url or service is required"}},
		"both": {
			change: func(c *runtimev1.ExtensionConfig) {
				c.Spec.ClientConfig.Service = runtimev1.ServiceReference{Namespace: "n", Name: "s"}
			}, errs: []string{"spec.clientConfig: Forbidden: only one of url and service may be set"},
		},
		"http":            {change: at("http://host"), errs: []string{"spec.clientConfig.url: Forbidden: the scheme must be https"}},
		"no scheme":       {change: at("host"), errs: []string{"the scheme must be https", "a host is required"}},
		"no host":         {change: at("https://:443"), errs: []string{"spec.clientConfig.url: Forbidden: a host is required"}},
		"user":            {change: at("https://me:pass@host"), errs: []string{"spec.clientConfig.url: Forbidden: user and password are not allowed"}},
		"query":           {change: at("https://host/?a=b"), errs: []string{"spec.clientConfig.url: Forbidden: a query is not allowed"}},
		"empty query":     {change: at("https://host/?"), errs: []string{"spec.clientConfig.url: Forbidden: a query is not allowed"}},
		"fragment":        {change: at("https://host/#a"), errs: []string{"spec.clientConfig.url: Forbidden: a fragment is not allowed"}},
		"no URL":          {change: at("https://pass\x7fword"), errs: []string{"spec.clientConfig.url: Forbidden: must be a URL"}},
		"service no name": {change: service(runtimev1.ServiceReference{Namespace: "n"}), errs: []string{"spec.clientConfig.service.name: Required"}},
		"service no namespace": {
			change: service(runtimev1.ServiceReference{Name: "s"}), errs: []string{"spec.clientConfig.service.namespace: Required"},
		},
		"service name": {
			change: service(runtimev1.ServiceReference{Namespace: "n", Name: "S!"}), errs: []string{"spec.clientConfig.service.name: Invalid"},
		},
		"port 0": {
			change: service(runtimev1.ServiceReference{Namespace: "n", Name: "s", Port: new(int32(0))}), errs: []string{"spec.clientConfig.service.port: Invalid"},
		},
		"port 65536": {
			change: service(runtimev1.ServiceReference{Namespace: "n", Name: "s", Port: new(int32(65536))}), errs: []string{"spec.clientConfig.service.port: Invalid"},
		},
		"path with query": {
			change: service(runtimev1.ServiceReference{Namespace: "n", Name: "s", Path: "/a?b"}), errs: []string{"spec.clientConfig.service.path: Invalid"},
		},
		"annotation": {
			change: func(c *runtimev1.ExtensionConfig) {
				c.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "ns/name"}
			},
		},
		"wrong annotation": {
			change: func(c *runtimev1.ExtensionConfig) {
				c.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "name"}
			}, errs: []string{"must be <namespace>/<name> of a Secret"},
		},
		"selector": {
			change: func(c *runtimev1.ExtensionConfig) {
				c.Spec.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
			}, errs: []string{"spec.namespaceSelector.matchExpressions[0].operator"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := Validate(Request{New: extension(tt.change), Gates: Gates{RuntimeSDK: !tt.off}})
			if len(v.Errors) != len(tt.errs) {
				t.Fatalf("got %v, want %v", v.Errors, tt.errs)
			}
			for i, want := range tt.errs {
				if !strings.Contains(v.Errors[i].Error(), want) {
					t.Errorf("got %q, want %q", v.Errors[i], want)
				}
				if strings.Contains(v.Errors[i].Error(), "pass@") || strings.Contains(v.Errors[i].Error(), "word") && name == "no URL" {
					t.Errorf("a secret is repeated: %s", v.Errors[i])
				}
			}
		})
	}
}

// RT-25
func TestWarnsOfDeprecatedHooks(t *testing.T) {
	list := hooks.ClusterAPI()
	for i := range list {
		if list[i].ID.Hook == "BeforeClusterCreate" {
			list[i].Deprecation = &hooks.Deprecation{
				Since: hooks.Release{Minor: "v1.15", Date: "2026-12-01"}, Removal: &hooks.Release{Minor: "v1.16", Date: "2027-04-01"},
			}
		}
	}
	catalog, err := hooks.New(list)
	if err != nil {
		t.Fatal(err)
	}
	c := extension(nil)
	for _, hook := range []string{"BeforeClusterCreate", "BeforeClusterDelete"} {
		c.Status.Handlers = append(c.Status.Handlers, runtimev1.ExtensionHandler{
			Name: "h.ext", RequestHook: runtimev1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: hook},
		})
	}
	v := validateExtensionConfig(Request{New: c, Gates: Gates{RuntimeSDK: true}}, c, catalog)
	want := []string{"handler h.ext serves BeforeClusterCreate of hooks.runtime.cluster.x-k8s.io/v1alpha1, deprecated since v1.15: the hook goes without a replacement; it is removed in v1.16"}
	if diff := cmp.Diff(want, v.Warnings); diff != "" || len(v.Errors) > 0 {
		t.Errorf("%v\n%s", v.Errors, diff)
	}
}

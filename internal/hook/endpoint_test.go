package hook

import (
	"testing"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// RT-09: where an extension is, by its clientConfig.
func TestEndpointOf(t *testing.T) {
	service := func(path string, port *int32) runtimev1.ClientConfig {
		return runtimev1.ClientConfig{Service: runtimev1.ServiceReference{Namespace: "team", Name: "ext", Path: path, Port: port}}
	}
	tests := map[string]struct {
		reason    string
		config    runtimev1.ClientConfig
		url, host string
		fault     string
	}{
		"service":            {reason: "RT-01: the port is 443", config: service("", nil), url: "https://ext.team.svc:443", host: "ext.team.svc:443"},
		"service with port":  {config: service("", new(int32(8443))), url: "https://ext.team.svc:8443", host: "ext.team.svc:8443"},
		"service with path":  {config: service("/a/b", nil), url: "https://ext.team.svc:443/a/b", host: "ext.team.svc:443"},
		"service with slash": {reason: "slashes make no difference", config: service("a/b/", nil), url: "https://ext.team.svc:443/a/b", host: "ext.team.svc:443"},
		"service with both":  {config: service("/", new(int32(1))), url: "https://ext.team.svc:1", host: "ext.team.svc:1"},
		"url":                {config: runtimev1.ClientConfig{URL: "https://host/x/"}, url: "https://host/x", host: "host"},
		"url of IPv6":        {config: runtimev1.ClientConfig{URL: "https://[fd00::1]:9443"}, url: "https://[fd00::1]:9443", host: "[fd00::1]:9443"},
		"url with a password": {
			reason: "admission refuses it; it must reach no message and no metric", config: runtimev1.ClientConfig{URL: "https://me:pw@host/x?token=1#y"},
			url: "https://host/x", host: "host",
		},
		"url of HTTP":  {reason: "RT-01", config: runtimev1.ClientConfig{URL: "http://host"}, fault: "InvalidURL"},
		"no url":       {config: runtimev1.ClientConfig{URL: "https://%"}, fault: "InvalidURL"},
		"neither":      {config: runtimev1.ClientConfig{}, fault: "NoEndpoint"},
		"no authority": {config: runtimev1.ClientConfig{URL: "https://host", CABundle: []byte("x")}, fault: "InvalidCABundle"},
	}
	for name, tt := range tests {
		e, err := EndpointOf(tt.config)
		if f := fault.As(err); (f != nil) != (tt.fault != "") || f != nil && (f.Reason != tt.fault || f.Kind != fault.Invalid) {
			t.Errorf("%s (%s): %v, want %q", name, tt.reason, err, tt.fault)
		}
		if err == nil && (e.URL != tt.url || e.Host() != tt.host) {
			t.Errorf("%s (%s): %s at %s, want %s at %s", name, tt.reason, e.URL, e.Host(), tt.url, tt.host)
		}
	}
}

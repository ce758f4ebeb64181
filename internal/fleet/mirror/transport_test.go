package mirror

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

func TestCheckRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path, prefix string
		allowed              bool
	}{
		"clusters":             {"GET", "/apis/cluster.x-k8s.io/v1beta2/clusters", "", true},
		"watch":                {"GET", "/apis/cluster.x-k8s.io/v1beta2/clusters?watch=true", "", true},
		"discovery":            {"GET", "/api", "", true},
		"version":              {"GET", "/version", "", true},
		"behind a proxy":       {"GET", "/k8s/clusters/c-1/apis/cluster.x-k8s.io/v1beta2/clusters", "/k8s/clusters/c-1", true},
		"namespace of secrets": {"GET", "/apis/cluster.x-k8s.io/v1beta2/namespaces/secrets/machines/secrets", "", true},
		"foreign secrets":      {"GET", "/apis/example.com/v1/secrets", "", true},
		"namespace":            {"GET", "/api/v1/namespaces/team", "", true},
		"secrets":              {"GET", "/api/v1/secrets", "", false},
		"one secret":           {"GET", "/api/v1/namespaces/default/secrets/a", "", false},
		"watched secrets":      {"GET", "/api/v1/watch/namespaces/default/secrets", "", false},
		"secrets, proxy":       {"GET", "/k8s/clusters/c-1/api/v1/secrets", "/k8s/clusters/c-1", false},
		"configmaps":           {"GET", "/api/v1/namespaces/default/configmaps", "", false},
		"double slash":         {"GET", "/api//v1/secrets", "", false},
		"dots":                 {"GET", "/apis/x/../../api/v1/secrets", "", false},
		"outside the prefix":   {"GET", "/api/v1/pods", "/k8s", false},
		"pod log":              {"GET", "/api/v1/namespaces/default/pods/a/log", "", false},
		"service proxy":        {"GET", "/api/v1/namespaces/default/services/a/proxy/x", "", false},
		"create":               {"POST", "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/clusters", "", false},
		"delete":               {"DELETE", "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/clusters/b", "", false},
		"patch":                {"PATCH", "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/clusters/b", "", false},
	} {
		if err := checkRequest(httptest.NewRequest(tc.method, tc.path, nil), tc.prefix); (err == nil) != tc.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadOnlyConfig(t *testing.T) {
	served := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	defer server.Close()
	client, err := rest.HTTPClientFor(readOnly(&rest.Config{Host: server.URL}, "slipway-test"))
	if err != nil {
		t.Fatal(err)
	}
	for path, allowed := range map[string]bool{"/api/v1/secrets": false, "/apis/cluster.x-k8s.io/v1beta2/clusters": true} {
		response, err := client.Get(server.URL + path)
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != allowed {
			t.Errorf("%s: %v", path, err)
		}
	}
	if served != 1 {
		t.Errorf("the server received %d requests", served)
	}
}

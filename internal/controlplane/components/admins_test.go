package components_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/controlplane/components"
)

// A binding that is there stays as it is: who emptied it has taken the role from the group.
func TestBindAdminsChangesNothing(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Reason: metav1.StatusReasonAlreadyExists, Code: http.StatusConflict,
		})
	}))
	defer server.Close()
	if err := components.BindAdmins(t.Context(), &rest.Config{Host: server.URL}, "slipway:admins"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings"}, requests); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

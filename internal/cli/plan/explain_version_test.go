package plan

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
)

// A manager of another version answers in another form, which is said and not shown as nothing.
func TestAnotherVersion(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"kind": "Machine", "namespace": "ns", "name": "m", "waits": [{"reason": "X"}]}`))
	}))
	defer server.Close()
	m := &managerClient{url: server.URL, client: server.Client()}
	if last, err := m.readPlans(t.Context(), objectReference{}); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "not a manager of this version") {
		t.Errorf("%+v, %v", last, err)
	}
}

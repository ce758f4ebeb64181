package manager

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

func TestSupported(t *testing.T) { // FL-07, with TestCheckServer
	gates, err := providerset.NewGates()
	if err != nil {
		t.Fatal(err)
	}
	topology, err := providerset.NewGates()
	if err == nil {
		err = topology.Set("ClusterTopology=true")
	}
	if err != nil {
		t.Fatal(err)
	}
	others := Webhook{CertDir: "certificates"} // and configurations that are not ours
	cases := map[string]struct {
		server string
		config Config
		ok     bool
	}{
		"current":                          {"v1.36.3", Config{Gates: topology}, true},
		"vendor suffix":                    {"v1.33.1+k3s1", Config{Gates: gates}, true},
		"oldest for webhooks":              {"v1.30.0", Config{Gates: gates}, true},
		"no match conditions with CEL":     {"v1.29.15", Config{Gates: gates}, false},
		"oldest":                           {"v1.20.0", Config{Gates: gates, Webhook: others}, true},
		"too old":                          {"v1.19.16", Config{Gates: gates, Webhook: others}, false},
		"topology asks more":               {"v1.21.5", Config{Gates: topology, Webhook: others}, false},
		"no version":                       {"unknown", Config{Gates: gates}, false},
		"no version, webhooks are another": {"unknown", Config{Gates: gates, Webhook: others}, false},
	}
	for name, tc := range cases {
		err := supported(tc.server, tc.config.oldest())
		if (err == nil) != tc.ok || (err != nil && fault.KindOf(err) != fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FL-07: the manager asks the server itself, before anything else, and ends with what to do.
func TestCheckServer(t *testing.T) {
	others := Webhook{CertDir: "certificates"} // and configurations that are not ours
	for name, tc := range map[string]struct {
		answer  string // of /version; empty: it does not answer
		webhook Webhook
		kind    fault.Kind
		want    string // in the message; empty: the server is supported
	}{
		"new enough":             {answer: `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`},
		"oldest for webhooks":    {answer: `{"gitVersion":"v1.30.0"}`},
		"webhooks are another's": {answer: `{"gitVersion":"v1.20.0"}`, webhook: others},
		"too old for webhooks":   {`{"gitVersion":"v1.29.15"}`, Webhook{}, fault.Invalid, "runs Kubernetes v1.29.15; upgrade it to v1.30.0 or later"},
		"too old":                {`{"gitVersion":"v1.19.16"}`, others, fault.Invalid, "runs Kubernetes v1.19.16; upgrade it to v1.20.0 or later"},
		"nonsense":               {`{"gitVersion":"next"}`, Webhook{}, fault.Invalid, `reports the invalid version "next"`},
		"no version":             {`{}`, Webhook{}, fault.Invalid, `reports the invalid version ""`},
		"not JSON":               {`<html>`, Webhook{}, fault.Transient, "reading the version of the management cluster: "},
		"does not answer":        {"", Webhook{}, fault.Unreachable, "reading the version of the management cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.URL.Path)
				if tc.answer == "" {
					<-r.Context().Done()
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, tc.answer)
			}))
			authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			cfg := Config{Webhook: tc.webhook, REST: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}}
			var err error
			switch tc.want {
			case "": // the manager would go on
				if cfg, err = cfg.withDefaults(); err == nil {
					err = checkServer(cfg)
				}
			default:
				cfg.REST.Timeout = time.Second
				err = Run(t.Context(), cfg)
			}
			server.Close()
			if (err != nil) != (tc.want != "") || err != nil && (fault.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v: %v", fault.KindOf(err), err)
			}
			if diff := cmp.Diff([]string{"GET /version"}, asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGates(t *testing.T) { // FG-01
	gates, err := providerset.NewGates()
	if err != nil {
		t.Fatal(err)
	}
	type gate struct {
		On    bool
		Stage string
	}
	alpha, beta := gate{false, "ALPHA"}, gate{true, "BETA"}
	want := map[string]gate{
		"MachinePool": beta, "MachineSetPreflightChecks": beta, "PriorityQueue": beta, "ReconcilerRateLimiting": beta,
		"MachineWaitForVolumeDetachConsiderVolumeAttachments": {true, ""}, // GA
		"ClusterTopology": alpha, "RuntimeSDK": alpha, "InPlaceUpdates": alpha, "KubeadmBootstrapFormatIgnition": alpha,
		"MachineTaintPropagation": alpha, "AllAlpha": alpha, "AllBeta": {false, "BETA"},
	}
	got := map[string]gate{}
	for name, spec := range gates.GetAll() {
		got[string(name)] = gate{spec.Default, string(spec.PreRelease)}
		if gates.Enabled(name) != spec.Default {
			t.Errorf("%s is not what it is by default", name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	for _, value := range []string{"NoSuchGate=true", "MachinePool=perhaps", "MachinePool"} {
		if err := gates.Set(value); err == nil {
			t.Errorf("%s is accepted", value)
		}
	}
}

// Who deletes a CRD while the manager starts reads what to do.
func TestKindGone(t *testing.T) {
	gone := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Machine"}, SearchedVersions: []string{"v1beta2"}}
	err := explainMissingKind(fmt.Errorf("adding controllers: %w", gone))
	if fault.KindOf(err) != fault.Invalid || !strings.HasPrefix(fault.UserMessage(err), "Machine.cluster.x-k8s.io is not served any more") {
		t.Errorf("%v", err)
	}
	if other := errors.New("other"); explainMissingKind(other) != other || explainMissingKind(nil) != nil {
		t.Error("another error is not what it was")
	}
}

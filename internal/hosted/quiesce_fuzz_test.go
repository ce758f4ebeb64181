package hosted

import (
	"testing"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// FuzzQuiescingParse: whatever a tenant writes as a request to stop a control plane asks for nothing, or for one of the three ways, says the same when
// it is written again, and is none for a control plane that is not stopped.
func FuzzQuiescingParse(f *testing.F) {
	for _, text := range []string{
		"", hostedv1.QuiesceEtcd + "/move-1", hostedv1.QuiesceStopped + "/1", hostedv1.QuiesceLoopback + "/1", hostedv1.QuiesceEtcd + "/", hostedv1.QuiesceEtcd + "/1\n", "x/1",
		hostedv1.QuiesceEtcd + "/../x", hostedv1.QuiesceEtcd + "/" + hostedv1.QuiesceStopped + "/1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plane := &hostedv1.HostedControlPlane{}
		plane.Annotations = map[string]string{hostedv1.QuiesceAnnotation: text}
		r := parseQuiesce(plane)
		if r != (quiesceRequest{}) && (r.Mode+"/"+r.ID != text || len(r.ID) == 0 || len(r.ID) > 64) {
			t.Errorf("%q is %+v", text, r)
		}
		if known := r.Mode == hostedv1.QuiesceEtcd || r.Mode == hostedv1.QuiesceStopped || r.Mode == hostedv1.QuiesceLoopback; known != (r.ID != "") {
			t.Errorf("%q is %+v", text, r)
		}
		if (r.RunMode() == "") != (r.Mode == "" || r.Mode == hostedv1.QuiesceStopped) || r.Runs() == "" {
			t.Errorf("of %+v, %q alone runs", r, r.RunMode())
		}
		plane.Spec.Backend.Simulated = &hostedv1.SimulatedBackend{}
		if r := parseQuiesce(plane); r != (quiesceRequest{}) {
			t.Errorf("a simulated control plane is asked for %+v", r)
		}
	})
}

package hosted

import (
	"testing"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// FuzzParse: whatever a tenant writes as a request to restore is refused, or says the same when it is written again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"id":"20261125T131500Z","policy":"p","snapshot":"demo-20261125T130000Z"}`, `{"id":"20261125T131500Z","policy":"","snapshot":"demo-20261125T130000Z"}`,
		`{"id":"20261125T131500Z","policy":"p","snapshot":"../demo-20261125T130000Z"}`, `{}`, `[`, `null`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plane := &hostedv1.HostedControlPlane{}
		plane.Annotations = map[string]string{hostedv1.RestoreAnnotation: text}
		r, err := parseRestore(plane)
		if err != nil {
			return
		}
		plane.Annotations[hostedv1.RestoreAnnotation] = r.String()
		if again, err := parseRestore(plane); len(r.String()) <= maxRequest && (err != nil || again.String() != r.String()) {
			t.Errorf("%q is %s and then %v: %v", text, r, again, err)
		}
	})
}

package hosted

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Secrets come from the cache where it has them, and a Secret that only the API server has is found there.
func TestReadSecret(t *testing.T) { // SE-01, SE-02
	secret := func(text string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-ca", UID: "u"}, Data: map[string][]byte{"text": []byte(text)},
		}
	}
	stored := func(objects ...client.Object) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).Build()
	}
	for name, tc := range map[string]struct {
		reason        string
		cached        client.WithWatch
		written, none bool
		want          string
	}{
		"cached":      {reason: "a call is saved", cached: stored(secret("old")), want: "old"},
		"not cached":  {reason: "a user supplied it, without the label", cached: stored(), want: "new"},
		"we wrote it": {reason: "the cache has not seen it yet", cached: stored(secret("old")), written: true, want: "new"},
		"nowhere":     {reason: "it is still to be made", cached: stored(), none: true},
	} {
		live := stored()
		if !tc.none {
			live = stored(secret("first"))
		}
		c := &controller{client: live, cache: tc.cached, writer: kube.NewWriter(live, Name)}
		if !tc.none {
			o := secret("first")
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			other := kube.NewWriter(live, "other")
			if tc.written {
				other = c.writer
			}
			err := other.Patch(t.Context(), o, func(o client.Object) { o.(*corev1.Secret).Data["text"] = []byte("new") })
			if err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.readSecret(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c-ca"})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		if got != nil {
			text = string(got.Data["text"])
		}
		if diff := cmp.Diff(tc.want, text); diff != "" || (got == nil) != tc.none {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

package encryptionkeys

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// What a write answers is believed when the object says so too: webhooks pass on the errors that they met themselves.
func TestWrite(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, tc := range map[string]struct {
		patch []any // the answers, one after the other; nil: it is done
		get   any
		fails bool
	}{
		"done":                         {[]any{nil}, nil, false},
		"too much, then done":          {[]any{apierrors.NewTooManyRequestsError("limit reached"), nil}, nil, false},
		"gone":                         {[]any{apierrors.NewNotFound(secrets, "s")}, apierrors.NewNotFound(secrets, "s"), false},
		"refused by one that lacks":    {[]any{apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "w")}, live("7", "a"), true},
		"refused by one that collides": {[]any{apierrors.NewConflict(secrets, "s", nil)}, live("7", "a"), true},
		"changed meanwhile":            {[]any{apierrors.NewConflict(secrets, "s", nil)}, live("8", "a"), false},
		"another of the name":          {[]any{apierrors.NewConflict(secrets, "s", nil)}, live("7", "b"), false},
		"not readable":                 {[]any{apierrors.NewNotFound(secrets, "s")}, apierrors.NewInternalError(http.ErrBodyNotAllowed), true},
		"refused":                      {[]any{apierrors.NewForbidden(secrets, "s", nil)}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := tc.get
				if r.Method == http.MethodPatch {
					answer, tc.patch = tc.patch[0], tc.patch[1:]
				}
				say(w, answer)
			}))
			defer server.Close()
			c, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			err = write(t.Context(), c.Resource(secrets.WithVersion("v1")).Namespace("default"), live("7", "a"))
			if (err != nil) != tc.fails || len(tc.patch) > 0 {
				t.Errorf("%v, and %d answers left", err, len(tc.patch))
			}
		})
	}
}

// live is a Secret as the API server has it.
func live(version string, uid types.UID) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s", ResourceVersion: version, UID: uid},
	}
}

// say answers with an object, or an error of the API; nil: with the Secret.
func say(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	if answer == nil {
		answer = live("7", "a")
	}
	if refused, is := answer.(apierrors.APIStatus); is {
		status := refused.Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.WriteHeader(int(status.Code))
		answer = status
	}
	_ = json.NewEncoder(w).Encode(answer)
}

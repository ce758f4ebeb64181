package plan

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An object that was read, edited and passed on is refused when its status has changed since; the refusal names the way out.
func TestVersionHint(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "c", errors.New("the object was changed since it was read"))
	read, written := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	read.SetResourceVersion("7")
	if got := versionHint(read, conflict); !strings.Contains(got, "remove metadata.resourceVersion") {
		t.Errorf("got %q", got)
	}
	if got := versionHint(written, conflict) + versionHint(read, errors.New("no")); got != "" {
		t.Errorf("got %q", got)
	}
}

package up

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// What was deleted of the rights of a provider is named; a provider that does not run lacks none.
func TestMissingRights(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var core []providerset.Set
	for _, set := range providerset.All() {
		if set.Name == providerset.Core {
			core = append(core, set)
		}
	}
	for name, tc := range map[string]struct {
		sets    []providerset.Set
		deleted []string
		want    []string
	}{
		"all there":         {nil, nil, nil},
		"binding deleted":   {nil, []string{"ClusterRoleBinding slipway-infrastructure-local"}, []string{"ClusterRoleBinding slipway-infrastructure-local"}},
		"role deleted, too": {nil, []string{"ClusterRole slipway-infrastructure-local", "ClusterRoleBinding slipway-infrastructure-local"}, []string{"ClusterRole slipway-infrastructure-local", "ClusterRoleBinding slipway-infrastructure-local"}},
		"the core alone":    {core, nil, nil},
		"nothing of ours":   {[]providerset.Set{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := rbac.Objects(rbac.Rights{Sets: tc.sets, Separate: true})
			if err != nil {
				t.Fatal(err)
			}
			b := fake.NewClientBuilder().WithScheme(scheme)
			for _, o := range objects {
				id := o.GetKind() + " " + o.GetName()
				deleted := false
				for _, d := range tc.deleted {
					deleted = deleted || d == id
				}
				if o.GroupVersionKind().Group == rbacv1.GroupName && !deleted && (tc.sets == nil || len(tc.sets) > 0) {
					b = b.WithObjects(o)
				}
			}
			b = b.WithObjects(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "another"}})
			got, err := missingRights(t.Context(), b.Build())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

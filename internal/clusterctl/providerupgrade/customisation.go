package providerupgrade

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
)

// Customisation is a field of a component that was not set by an installation. "slipway upgrade apply" prints it,
// without its value, which may be a credential.
type Customisation struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Field     string `json:"field"`
	// Manager is the field manager that has set the field.
	Manager string `json:"manager"`
	// Preserved means that the new version does not set the field.
	Preserved bool `json:"kept"`
}

// String describes the customization in one sentence.
func (c Customisation) String() string {
	where := ""
	if c.Namespace != "" {
		where = " in namespace " + c.Namespace
	}
	what := "is lost"
	if c.Preserved {
		what = "is preserved"
	}
	return fmt.Sprintf("%s %s%s: %s, set by %s, %s", c.Kind, c.Name, where, c.Field, c.Manager, what)
}

// customisations returns the customized fields of an object, compared with the object after the upgrade. If after is
// nil, the object is deleted with all of them. [ReadCustomisations] calls it for each installed object.
func customisations(live, after *unstructured.Unstructured) []Customisation {
	var out []Customisation
	for _, e := range live.GetManagedFields() {
		if !isUserManager(e.Manager) || e.Subresource != "" && e.Subresource != "scale" || e.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			continue // API servers do not write invalid sets
		}
		fields.Leaves().Iterate(func(p fieldpath.Path) {
			value, set := valueAt(live.Object, p)
			if !set || isInjected(p) {
				return
			}
			kept := false
			if after != nil {
				next, still := valueAt(after.Object, p)
				kept = still && reflect.DeepEqual(value, next)
			}
			out = append(out, Customisation{
				Kind: live.GetKind(), Namespace: live.GetNamespace(), Name: live.GetName(),
				Field: strings.TrimPrefix(p.String(), "."), Manager: e.Manager, Preserved: kept,
			})
		})
	}
	slices.SortFunc(out, func(a, b Customisation) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// isUserManager reports whether a field manager is neither an installation nor a controller that writes to components.
// The list has the field managers of Slipway, clusterctl, Kubernetes, cert-manager and controller-runtime ("manager").
func isUserManager(manager string) bool {
	programs := []string{
		install.FieldManager, "clusterctl", "slipway-certificates", "slipway-migration", "kube-controller-manager", "kube-apiserver",
		"kube-scheduler", "kubelet", "clusterrole-aggregation-controller", "cainjector", "cert-manager-cainjector", "manager",
	}
	return !slices.Contains(programs, manager) && !strings.HasPrefix(manager, "cert-manager")
}

// isInjected reports whether a field is a CA bundle, which is injected after the installation.
func isInjected(p fieldpath.Path) bool {
	return len(p) > 0 && p[len(p)-1].FieldName != nil && *p[len(p)-1].FieldName == "caBundle"
}

// valueAt returns the value at a path.
func valueAt(v any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		var ok bool
		switch {
		case e.FieldName != nil:
			m, _ := v.(map[string]any)
			v, ok = m[*e.FieldName]
		case e.Key != nil:
			v, ok = element(v, func(item any) bool { return hasKey(item, e) })
		case e.Value != nil:
			want := (*e.Value).Unstructured()
			v, ok = element(v, func(item any) bool { return reflect.DeepEqual(item, want) })
		case e.Index != nil:
			list, _ := v.([]any)
			if ok = *e.Index < len(list); ok {
				v = list[*e.Index]
			}
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

func element(v any, is func(any) bool) (any, bool) {
	list, _ := v.([]any)
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

func hasKey(item any, e fieldpath.PathElement) bool {
	m, _ := item.(map[string]any)
	for _, f := range *e.Key {
		// Both sides use different number types.
		if have, ok := m[f.Name]; !ok || fmt.Sprint(have) != fmt.Sprint(f.Value.Unstructured()) {
			return false
		}
	}
	return m != nil
}

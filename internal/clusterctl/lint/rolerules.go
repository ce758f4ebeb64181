package lint

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
)

// aggregate is the label of ClusterRoles that are aggregated into the role of the core controllers.
const aggregate = "cluster.x-k8s.io/aggregate-to-manager"

// coreGroup is the suffix of API groups that the core controllers may access without a ClusterRole of the provider.
const coreGroup = ".cluster.x-k8s.io"

// roleRules are the rules of `slipway provider lint` for permissions. Their names are stable.
func roleRules() []Rule {
	return []Rule{
		{"aggregated-role", "a ClusterRole with the label " + aggregate + " grants Cluster API access to kinds of API groups outside of " + coreGroup[1:], true, aggregatedRole},
		{"least-privilege", "no role grants all permissions", false, leastPrivilege},
		{"no-cluster-admin", "no role binding grants cluster-admin", true, noAdmin},
	}
}

func (r *release) roles() []struct {
	objectInFile
	rules []rbacv1.PolicyRule
} {
	var out []struct {
		objectInFile
		rules []rbacv1.PolicyRule
	}
	for _, o := range r.kindOf("ClusterRole", "Role") {
		role := &rbacv1.ClusterRole{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role) != nil {
			continue
		}
		out = append(out, struct {
			objectInFile
			rules []rbacv1.PolicyRule
		}{o, role.Rules})
	}
	return out
}

// verbsFor returns the verbs that the core controllers need for a kind.
func verbsFor(k crdKind) []string {
	if strings.HasSuffix(k.crd.Spec.Names.Kind, "Template") {
		return []string{"get", "list", "watch", "patch", "update"}
	}
	return []string{"get", "list", "watch", "create", "update", "patch", "delete"}
}

func aggregatedRole(r *release, report reporter) {
	if r.kind == provider.Core || r.kind == provider.Addon {
		return
	}
	for _, k := range r.kinds() {
		group := k.crd.Spec.Group
		if k.role == "" && !strings.HasSuffix(k.crd.Spec.Names.Kind, "Template") || strings.HasSuffix(group, coreGroup) {
			continue
		}
		for _, verb := range verbsFor(k) {
			if !r.aggregates(group, k.crd.Spec.Names.Plural, verb) {
				report(k.file, k.id(), "no ClusterRole with the label %s: \"true\" allows %s on %s.%s: Cluster API cannot use the kind", aggregate, verb, k.crd.Spec.Names.Plural, group)
				break
			}
		}
	}
}

func (r *release) aggregates(group, resource, verb string) bool {
	for _, role := range r.roles() {
		if role.GetKind() != "ClusterRole" || role.GetLabels()[aggregate] != "true" {
			continue
		}
		for _, rule := range role.rules {
			if allows(rule.APIGroups, group) && allows(rule.Resources, resource) && allows(rule.Verbs, verb) {
				return true
			}
		}
	}
	return false
}

func allows(list []string, what string) bool {
	return slices.Contains(list, what) || slices.Contains(list, "*")
}

func leastPrivilege(r *release, report reporter) {
	for _, role := range r.roles() {
		for _, rule := range role.rules {
			if slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*") && slices.Contains(rule.Verbs, "*") {
				report(role.file, role.id(), "a rule grants all permissions: list API groups, resources and verbs")
			}
		}
	}
}

func noAdmin(r *release, report reporter) {
	for _, o := range r.kindOf("ClusterRoleBinding", "RoleBinding") {
		if ref, _ := o.Object["roleRef"].(map[string]any); ref["name"] == "cluster-admin" {
			report(o.file, o.id(), "it grants cluster-admin: bind a role with the permissions that the provider needs")
		}
	}
}

package lint

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// skipName is the annotation of CRDs whose name clusterctl does not check.
const skipName = "clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check"

// kindRules are the rules of `slipway provider lint` for CRDs: rules of clusterctl, and the rules of the provider
// contracts (package sdk/contract) with the prefix contract-. Their names are stable. Rules of a contract apply if the
// role of the kind can be derived from its name.
func kindRules() []Rule {
	rules := []Rule{
		{"crd-readable", "CRDs have the apiVersion apiextensions.k8s.io/v1", true, crdReadable},
		{"crd-name", "a CRD is named after the plural of its kind, as Cluster API computes it", true, crdName},
		{"crd-namespaced", "the kinds of a provider are namespaced", true, crdRule("Namespaced")},
		{"crd-contract-label", "a label of the CRD lists the served versions that implement the contract", true, crdRule("ContractLabel")},
		{"crd-contract-versions", "every version in a contract label is served", true, crdVersions},
		{"crd-list-kind", "the list kind is the kind with the suffix List", true, crdRule("ListKind")},
		{"crd-stored-version", "exactly one version of the CRD is the storage version", true, crdStored},
		{"crd-conversion", "versions of a CRD with different fields are converted by a webhook", false, crdConversion},
		{"crd-status", "the kinds of the contract have a status subresource", true, crdStatus},
	}
	seen := map[string]bool{}
	for _, role := range contract.Roles() {
		for _, c := range contract.Rules(role) {
			if slices.Contains([]string{"Namespaced", "ContractLabel", "Name", "ListKind"}, c.Name) || seen[c.Name] {
				continue // the rules above check them
			}
			seen[c.Name] = true
			rules = append(rules, Rule{"contract-" + c.Name, c.Says, c.Mandatory, contractRule(c)})
		}
	}
	return rules
}

// crdKind is a CRD of a components file. The rules of kinds and of roles (rolerules.go) read it.
type crdKind struct {
	objectInFile
	crd  *apiextensionsv1.CustomResourceDefinition
	role contract.Role // empty: no contract applies
}

func (r *release) kinds() []crdKind {
	var out []crdKind
	for _, o := range r.kindOf("CustomResourceDefinition") {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd) == nil {
			out = append(out, crdKind{o, crd, r.roleOf(crd.Spec.Names.Kind)})
		}
	}
	return out
}

// roleOf derives the contract of a kind from the type of the provider and the name of the kind.
func (r *release) roleOf(name string) contract.Role {
	if strings.HasSuffix(name, "Template") {
		return ""
	}
	switch {
	case r.kind == provider.Infrastructure && strings.HasSuffix(name, "MachinePool"):
		return contract.RoleInfraMachinePool
	case r.kind == provider.Infrastructure && strings.HasSuffix(name, "Machine"):
		return contract.RoleInfraMachine
	case r.kind == provider.Infrastructure && strings.HasSuffix(name, "Cluster"):
		return contract.RoleInfraCluster
	case r.kind == provider.Bootstrap && strings.HasSuffix(name, "Config"):
		return contract.RoleBootstrapConfig
	case r.kind == provider.ControlPlane && strings.HasSuffix(name, "ControlPlane"):
		return contract.RoleControlPlane
	}
	return ""
}

func crdReadable(r *release, report reporter) {
	for _, o := range r.kindOf("CustomResourceDefinition") {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd); err != nil {
			report(o.file, o.id(), "it is invalid: %v", err)
		}
		if o.GetAPIVersion() != apiextensionsv1.SchemeGroupVersion.String() {
			report(o.file, o.id(), "apiVersion is %s, want %s", o.GetAPIVersion(), apiextensionsv1.SchemeGroupVersion)
		}
	}
}

func crdName(r *release, report reporter) {
	for _, k := range r.kinds() {
		if _, skip := k.GetAnnotations()[skipName]; skip {
			continue
		}
		if want := contract.CRDName(k.crd.Spec.Group, k.crd.Spec.Names.Kind); k.crd.Name != want {
			report(k.file, k.id(), "it must be named %s; a CRD that no Cluster API object refers to may have the annotation %s instead", want, skipName)
		}
	}
}

// crdRule returns a rule that applies to all roles, so that the rules of any role contain it. Templates must comply
// with it as well. Other kinds without a role, such as identities, need not fulfill the contract.
func crdRule(name string) func(*release, reporter) {
	return func(r *release, report reporter) {
		for _, c := range contract.Rules(contract.RoleInfraCluster) {
			if c.Name != name {
				continue
			}
			for _, k := range r.kinds() {
				if k.role == "" && !strings.HasSuffix(k.crd.Spec.Names.Kind, "Template") {
					continue
				}
				if err := c.Check(k.crd); err != nil {
					report(k.file, k.id(), "%v", err)
				}
			}
		}
	}
}

func crdVersions(r *release, report reporter) {
	for _, k := range r.kinds() {
		for _, v := range contract.Versions() {
			value := k.crd.Labels[v.Label()]
			if value == "" {
				continue
			}
			for _, version := range strings.Split(value, "_") {
				if !serves(k.crd, version) {
					report(k.file, k.id(), "the label %s lists version %s, which is not served", v.Label(), version)
				}
			}
		}
	}
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Served
	})
}

func crdStored(r *release, report reporter) {
	for _, k := range r.kinds() {
		stored := 0
		for _, v := range k.crd.Spec.Versions {
			if v.Storage {
				stored++
			}
		}
		if stored != 1 {
			report(k.file, k.id(), "%d versions are storage versions, want one", stored)
		}
	}
}

func crdStatus(r *release, report reporter) {
	for _, k := range r.kinds() {
		for _, v := range k.crd.Spec.Versions {
			if k.role != "" && v.Served && (v.Subresources == nil || v.Subresources.Status == nil) {
				report(k.file, k.id(), "version %s has no status subresource", v.Name)
			}
		}
	}
}

func contractRule(c contract.Rule) func(*release, reporter) {
	return func(r *release, report reporter) {
		for _, k := range r.kinds() {
			if k.role == "" || !slices.Contains(c.Roles, k.role) {
				continue
			}
			if _, _, err := contract.Resolve(k.crd.Name, k.crd.Labels); err != nil {
				continue // reported by the rule for the label
			}
			if err := c.Check(k.crd); err != nil {
				report(k.file, k.id(), "%s: %v", c.Says, err)
			}
		}
	}
}

package contract

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Role is the role of a provider's kind.
type Role string

// The roles with a contract.
const (
	RoleInfraCluster     Role = "InfraCluster"
	RoleInfraMachine     Role = "InfraMachine"
	RoleInfraMachinePool Role = "InfraMachinePool"
	RoleBootstrapConfig  Role = "BootstrapConfig"
	RoleControlPlane     Role = "ControlPlane"
)

// Roles returns all roles.
func Roles() []Role {
	return []Role{RoleInfraCluster, RoleInfraMachine, RoleInfraMachinePool, RoleBootstrapConfig, RoleControlPlane}
}

// Rule is a rule of a contract that can be checked for the CRD of a kind.
type Rule struct {
	// Name is the stable name of the rule.
	Name string
	// Page is the page of the Cluster API book with the rule, relative to developer/providers/contracts.
	Page string
	// Mandatory is true if a kind that violates the rule is unusable. Other rules only affect optional features.
	Mandatory bool
	// Says is the rule in one sentence.
	Says string
	// Roles are the roles that the rule applies to.
	Roles []Role
	// Check returns nil if the CRD complies with the rule.
	Check func(*apiextensionsv1.CustomResourceDefinition) error
}

// Rules returns the rules for a role, starting with those that apply to all roles.
func Rules(role Role) []Rule {
	var out []Rule
	for _, r := range rules() {
		if slices.Contains(r.Roles, role) {
			out = append(out, r)
		}
	}
	return out
}

func rules() []Rule {
	one := func(r Role) []Role { return []Role{r} }
	const page = ".md"
	return []Rule{
		{"Namespaced", "*" + page, true, "the CRD is namespaced", Roles(), namespaced},
		{"ContractLabel", "*" + page, true, "a label of the CRD names the served versions that fulfil the contract", Roles(), labelled},
		{"Name", "*" + page, true, "the CRD is named <plural of the kind>.<group>", Roles(), named},
		{"ListKind", "*" + page, true, "there is a list kind", Roles(), hasList},
		{"Conditions", "*" + page, false, "status.conditions is a list of conditions", Roles(), has("status.conditions", "array")},
		{"ControlPlaneEndpoint", "infra-cluster" + page, false, "spec.controlPlaneEndpoint has host and port", one(RoleInfraCluster), all(
			has("spec.controlPlaneEndpoint.host", "string"), has("spec.controlPlaneEndpoint.port", "integer"))},
		{"FailureDomains", "infra-cluster" + page, false, "status.failureDomains lists failure domains", one(RoleInfraCluster), has("status.failureDomains", "")},
		{"ClusterProvisioned", "infra-cluster" + page, true, "status.initialization.provisioned tells that the infrastructure is there", one(RoleInfraCluster), either2("status.initialization.provisioned", "status.ready")},
		{"ProviderID", "infra-machine" + page, true, "spec.providerID is the Node's provider ID", one(RoleInfraMachine), has("spec.providerID", "string")},
		{"FailureDomain", "infra-machine" + page, false, "status.failureDomain tells where the machine was placed", one(RoleInfraMachine), either2("status.failureDomain", "spec.failureDomain")},
		{"Addresses", "infra-machine" + page, false, "status.addresses lists the machine's addresses", one(RoleInfraMachine), has("status.addresses", "array")},
		{"MachineProvisioned", "infra-machine" + page, true, "status.initialization.provisioned tells that the machine is there", one(RoleInfraMachine), either2("status.initialization.provisioned", "status.ready")},
		{"Instances", "infra-machinepool" + page, false, "status.instances lists the instances", one(RoleInfraMachinePool), has("status.instances", "array")},
		{"MachineKind", "infra-machinepool" + page, false, "status.infrastructureMachineKind names the kind of the pool's machines", one(RoleInfraMachinePool), has("status.infrastructureMachineKind", "string")},
		{"PoolProviderID", "infra-machinepool" + page, false, "spec.providerID identifies the pool", one(RoleInfraMachinePool), has("spec.providerID", "string")},
		{"ProviderIDList", "infra-machinepool" + page, true, "spec.providerIDList lists the provider IDs of the instances", one(RoleInfraMachinePool), has("spec.providerIDList", "array")},
		{"PoolProvisioned", "infra-machinepool" + page, true, "status.initialization.provisioned or status.ready tells that the pool is there", one(RoleInfraMachinePool), either2("status.initialization.provisioned", "status.ready")},
		{"Replicas", "infra-machinepool" + page, true, "status.replicas counts the instances", one(RoleInfraMachinePool), has("status.replicas", "integer")},
		{"DataSecretName", "bootstrap-config" + page, true, "status.dataSecretName names the Secret with the data", one(RoleBootstrapConfig), has("status.dataSecretName", "string")},
		{"DataSecretCreated", "bootstrap-config" + page, true, "status.initialization.dataSecretCreated tells that the Secret is there", one(RoleBootstrapConfig), either2("status.initialization.dataSecretCreated", "status.ready")},
		{"Versions", "control-plane" + page, false, "status.versions or status.version tells the version that runs", one(RoleControlPlane), either2("status.versions", "status.version")},
		{"ExternallyManaged", "control-plane" + page, false, "status.externalManagedControlPlane tells that there are no control plane Machines, where spec.machineTemplate makes none", one(RoleControlPlane), externallyManaged},
		{"ControlPlaneInitialized", "control-plane" + page, true, "status.initialization.controlPlaneInitialized tells that the API server can be joined", one(RoleControlPlane), either2("status.initialization.controlPlaneInitialized", "status.initialized")},
	}
}

func namespaced(crd *apiextensionsv1.CustomResourceDefinition) error {
	if crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
		return fmt.Errorf("scope is %s, want Namespaced", crd.Spec.Scope)
	}
	return nil
}

func labelled(crd *apiextensionsv1.CustomResourceDefinition) error {
	_, version, err := Resolve(crd.Name, crd.Labels)
	if err != nil {
		return err
	}
	if schemaOf(crd, version) == nil {
		return fmt.Errorf("version %s, which the label names, is not served", version)
	}
	return nil
}

func named(crd *apiextensionsv1.CustomResourceDefinition) error {
	if want := CRDName(crd.Spec.Group, crd.Spec.Names.Kind); crd.Name != want {
		return fmt.Errorf("name is %s, want %s", crd.Name, want)
	}
	return nil
}

// externallyManaged accepts kinds with machine templates, which need no status field.
func externallyManaged(crd *apiextensionsv1.CustomResourceDefinition) error {
	if has("spec.machineTemplate", "object")(crd) == nil {
		return nil
	}
	return has("status.externalManagedControlPlane", "boolean")(crd)
}

func hasList(crd *apiextensionsv1.CustomResourceDefinition) error {
	if want := crd.Spec.Names.Kind + "List"; crd.Spec.Names.ListKind != want {
		return fmt.Errorf("list kind is %q, want %s", crd.Spec.Names.ListKind, want)
	}
	return nil
}

type check = func(*apiextensionsv1.CustomResourceDefinition) error

// has checks that the contract's API version has a field of the type; an empty type accepts any.
func has(path, fieldType string) check {
	return func(crd *apiextensionsv1.CustomResourceDefinition) error {
		_, version, err := Resolve(crd.Name, crd.Labels)
		if err != nil {
			return err
		}
		at := schemaOf(crd, version)
		for _, name := range strings.Split(path, ".") {
			if at == nil {
				break
			}
			next, ok := at.Properties[name]
			if !ok {
				return fmt.Errorf("version %s has no field %s", version, path)
			}
			at = &next
		}
		if at == nil {
			return fmt.Errorf("version %s is not served", version)
		}
		if fieldType != "" && at.Type != fieldType {
			return fmt.Errorf("field %s of version %s is of type %s, want %s", path, version, at.Type, fieldType)
		}
		return nil
	}
}

func all(checks ...check) check {
	return func(crd *apiextensionsv1.CustomResourceDefinition) error {
		for _, c := range checks {
			if err := c(crd); err != nil {
				return err
			}
		}
		return nil
	}
}

func either2(a, b string) check {
	return func(crd *apiextensionsv1.CustomResourceDefinition) error {
		err := has(a, "")(crd)
		if err == nil || has(b, "")(crd) == nil {
			return nil
		}
		return fmt.Errorf("%w, nor %s", err, b)
	}
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.JSONSchemaProps {
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Name == version && v.Served && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

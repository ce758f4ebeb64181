package provider

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Annotations of the provider's objects.
const (
	// HandsOff keeps the provider from touching an object.
	HandsOff = "foreign.example/hands-off"
	// Hold keeps it from removing its finalizer.
	Hold = "foreign.example/hold"
	// Never keeps it from provisioning.
	Never = "foreign.example/never"
	// AfterNode makes a control plane report that it is initialized when its first Machine has a Node.
	AfterNode = "foreign.example/after-node"
	// NoNode keeps the machines of a control plane, or a machine, from getting a Node.
	NoNode = "foreign.example/no-node"
)

// Finalizer of the provider.
const Finalizer = "foreign.example/provider"

// Role is what a kind is for.
type Role int

// The roles of the contract.
const (
	InfraCluster Role = iota
	InfraMachine
	InfraMachinePool
	BootstrapConfig
	ControlPlane
	Template
)

// Kind is one of the provider's kinds.
type Kind struct {
	schema.GroupVersionKind
	Role Role
	// Old is contract v1beta1.
	Old bool
}

const (
	infra, bootstrap, plane = "infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"
	// OwnGroup is no group of Cluster API: rights have to be given by its provider.
	OwnGroup = "infrastructure.foo.example"
)

// Kinds are all kinds that the provider reconciles or clones.
func Kinds() []Kind {
	var kinds []Kind
	for _, old := range []bool{false, true} {
		prefix, version := "Fake", "v1alpha3"
		if old {
			prefix, version = "Old", "v1beta1"
		}
		for _, k := range []struct {
			group, name string
			role        Role
		}{
			{infra, "Cluster", InfraCluster}, {infra, "Machine", InfraMachine}, {infra, "MachinePool", InfraMachinePool},
			{bootstrap, "Config", BootstrapConfig}, {plane, "ControlPlane", ControlPlane},
			{infra, "MachineTemplate", Template}, {bootstrap, "ConfigTemplate", Template},
		} {
			kinds = append(kinds, Kind{schema.GroupVersionKind{Group: k.group, Version: version, Kind: prefix + k.name}, k.role, old})
		}
	}
	return kinds
}

// Foo is the kind of the provider's own group.
func Foo() Kind {
	return Kind{schema.GroupVersionKind{Group: OwnGroup, Version: "v1", Kind: "FooCluster"}, InfraCluster, false}
}

// Ref refers to an object of the kind.
func (k Kind) Ref(name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: k.Group, Kind: k.Kind, Name: name}
}

// CRD is the definition of a kind, as small as it can be: any field is kept. The label says which version of it fulfils which
// contract; of a list the last one counts.
func (k Kind) CRD() *apiextensionsv1.CustomResourceDefinition {
	plural, yes := strings.ToLower(k.Kind)+"s", true
	label, value := "cluster.x-k8s.io/v1beta2", k.Version
	if k.Old {
		label, value = "cluster.x-k8s.io/v1beta1", "v1alpha1_"+k.Version
	}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: k.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: &yes,
		}},
	}
	if k.Role != Template {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + k.Group, Labels: map[string]string{label: value}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.Group, Scope: apiextensionsv1.NamespaceScoped, Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: k.Kind, ListKind: k.Kind + "List", Plural: plural, Singular: strings.ToLower(k.Kind)},
		},
	}
}

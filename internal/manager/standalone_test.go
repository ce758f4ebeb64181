package manager_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

const infraGroup = "infrastructure.cluster.x-k8s.io"

// anyKindOfInfra is the CRD of a provider's kind that holds anything.
func anyKindOfInfra(kind string) client.Object {
	plural, yes := strings.ToLower(kind)+"s", true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + infraGroup, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: infraGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &yes,
				}}}},
		},
	}
}

// TestStandaloneControlPlane: a Cluster without a control plane object is initialized by the Node of its first control plane
// Machine, which no one has initialized the Cluster for.
func TestStandaloneControlPlane(t *testing.T) { // CL-10, MA-08, MA-09
	server := apiserver.Start(t, apiserver.Options{Objects: []client.Object{anyKindOfInfra("FooCluster"), anyKindOfInfra("FooMachine")}})
	c := newClient(t, server)
	startProcess(t, server)
	foo := func(kind, spec string) {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": infraGroup + "/v1", "kind": kind,
			"metadata": map[string]any{"namespace": "default", "name": "alone"},
			"spec":     map[string]any{"providerID": spec}, "status": map[string]any{"initialization": map[string]any{"provisioned": true}}}}
		must(t, c.Create(t.Context(), o))
	}
	foo("FooCluster", "")
	foo("FooMachine", "foo://1")
	kubeconfig, err := os.ReadFile(server.Kubeconfig)
	must(t, err)
	must(t, c.Create(t.Context(), &corev1.Secret{Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "alone"}}}))
	must(t, c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "first"}, Spec: corev1.NodeSpec{ProviderID: "foo://1"}}))
	ref := func(kind string) clusterv1.ContractVersionedObjectReference {
		return clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: kind, Name: "alone"}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"}}
	cluster.Spec.InfrastructureRef = ref("FooCluster")
	data := "none"
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}}
	m.Spec = clusterv1.MachineSpec{ClusterName: "alone", Bootstrap: clusterv1.Bootstrap{DataSecretName: &data}, InfrastructureRef: ref("FooMachine")}
	for _, o := range []client.Object{cluster, m} {
		eventually(t, "create "+o.GetName(), func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), o)) })
	}
	eventually(t, "the Cluster is initialized", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		if done := cluster.Status.Initialization.ControlPlaneInitialized; done == nil || !*done || m.Status.NodeRef.Name != "first" {
			return fmt.Errorf("Cluster %+v\nMachine %+v", cluster.Status, m.Status)
		}
		return nil
	})
}

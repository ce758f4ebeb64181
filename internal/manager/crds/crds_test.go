package crds

import (
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// all returns the CRDs by kind.
func all(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	list, err := All()
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range list {
		byKind[crd.Spec.Names.Kind] = crd
	}
	return byKind
}

// Z-06, CV-01: which kinds there are, in which versions, and what kubectl calls them.
func TestKinds(t *testing.T) {
	want := map[string]string{
		"Cluster":                     "cluster.x-k8s.io [cl] v1beta1 v1beta2*",
		"ClusterClass":                "cluster.x-k8s.io [cc] v1beta1 v1beta2*",
		"Machine":                     "cluster.x-k8s.io [ma] v1beta1 v1beta2*",
		"MachineDeployment":           "cluster.x-k8s.io [md] v1beta1 v1beta2* scale",
		"MachineDrainRule":            "cluster.x-k8s.io [] v1beta1 v1beta2*",
		"MachineHealthCheck":          "cluster.x-k8s.io [mhc mhcs] v1beta1 v1beta2*",
		"MachinePool":                 "cluster.x-k8s.io [mp] v1beta1 v1beta2* scale",
		"MachineSet":                  "cluster.x-k8s.io [ms] v1beta1 v1beta2* scale",
		"ClusterResourceSet":          "addons.cluster.x-k8s.io [] v1beta1 v1beta2*",
		"ClusterResourceSetBinding":   "addons.cluster.x-k8s.io [] v1beta1 v1beta2*",
		"KubeadmConfig":               "bootstrap.cluster.x-k8s.io [] v1beta1 v1beta2*",
		"KubeadmConfigTemplate":       "bootstrap.cluster.x-k8s.io [] v1beta1 v1beta2*",
		"KubeadmControlPlane":         "controlplane.cluster.x-k8s.io [kcp] v1beta1 v1beta2* scale",
		"KubeadmControlPlaneTemplate": "controlplane.cluster.x-k8s.io [] v1beta1 v1beta2*",
		"IPAddress":                   "ipam.cluster.x-k8s.io [] v1alpha1 v1beta1 v1beta2*",
		"IPAddressClaim":              "ipam.cluster.x-k8s.io [] v1alpha1 v1beta1 v1beta2*",
		"ExtensionConfig":             "runtime.cluster.x-k8s.io [ext] v1alpha1 v1beta2* Cluster",
		"LocalCluster":                "infrastructure.slipway.dev [lc] v1alpha1*",
		"LocalClusterTemplate":        "infrastructure.slipway.dev [lct] v1alpha1*",
		"LocalMachine":                "infrastructure.slipway.dev [lm] v1alpha1*",
		"LocalMachineTemplate":        "infrastructure.slipway.dev [lmt] v1alpha1*",
		"LocalMachinePool":            "infrastructure.slipway.dev [lmp] v1alpha1*",
		"LocalMachinePoolTemplate":    "infrastructure.slipway.dev [lmpt] v1alpha1*",
		"SSHCluster":                  "infrastructure.slipway.dev [sshc] v1alpha1*",
		"SSHClusterTemplate":          "infrastructure.slipway.dev [sshct] v1alpha1*",
		"SSHHost":                     "infrastructure.slipway.dev [sshh] v1alpha1*",
		"SSHMachine":                  "infrastructure.slipway.dev [sshm] v1alpha1*",
		"SSHMachineTemplate":          "infrastructure.slipway.dev [sshmt] v1alpha1*",
		"EtcdSnapshotPolicy":          "controlplane.slipway.dev [esp] v1alpha1*",
		"HostedControlPlane":          "controlplane.slipway.dev [hcp] v1alpha1*",
		"HostedControlPlaneTemplate":  "controlplane.slipway.dev [hcpt] v1alpha1*",
	}
	got := map[string]string{}
	for kind, crd := range all(t) {
		got[kind] = describe(crd)
		if !slices.Contains(crd.Spec.Names.Categories, "cluster-api") {
			t.Errorf("%s is not in the category cluster-api", kind)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func describe(crd *apiextensionsv1.CustomResourceDefinition) string {
	text := fmt.Sprintf("%s %v", crd.Spec.Group, crd.Spec.Names.ShortNames)
	scale := false
	for _, version := range crd.Spec.Versions {
		text += " " + version.Name
		if version.Storage {
			text += "*"
		}
		if !version.Served {
			text += " not served"
		}
		scale = scale || version.Subresources != nil && version.Subresources.Scale != nil
	}
	if scale {
		text += " scale"
	}
	if crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
		text += " " + string(crd.Spec.Scope)
	}
	return text
}

// CT-01, CT-02, CT-04, CT-05, CT-06: what every provider's CRD must have, ours too.
func TestContractRules(t *testing.T) {
	for kind, crd := range all(t) {
		t.Run(kind, func(t *testing.T) {
			if want := contract.CRDName(crd.Spec.Group, kind); crd.Name != want { // CT-05
				t.Errorf("CT-05: name %s, want %s", crd.Name, want)
			}
			if crd.Spec.Names.ListKind != kind+"List" { // CT-06
				t.Errorf("CT-06: list kind %s", crd.Spec.Names.ListKind)
			}
			if crd.Spec.Scope != apiextensionsv1.NamespaceScoped && kind != "ExtensionConfig" { // CT-01
				t.Errorf("CT-01: scope %s", crd.Spec.Scope)
			}
			served := map[string]bool{}
			for _, version := range crd.Spec.Versions {
				served[version.Name] = true
				for _, property := range []string{"apiVersion", "kind", "metadata"} { // CT-02
					if _, ok := version.Schema.OpenAPIV3Schema.Properties[property]; !ok {
						t.Errorf("CT-02: %s has no %s", version.Name, property)
					}
				}
			}
			_, version, err := contract.Resolve(crd.Name, crd.Labels) // CT-04
			if err != nil {
				t.Fatalf("CT-04: %v", err)
			}
			for _, label := range []string{contractV1Beta1, contractV1Beta2} {
				if value := crd.Labels[label]; value != "" && !served[value] {
					t.Errorf("CT-04: label %s names %s, which is not served", label, value)
				}
			}
			if want := crd.Spec.Versions[len(crd.Spec.Versions)-1].Name; version != want {
				t.Errorf("CT-04: the contract's version is %s, want the newest, %s", version, want)
			}
			if crd.Labels["cluster.x-k8s.io/provider"] == "" {
				t.Error("no provider label")
			}
		})
	}
}

// Z-06: kubectl explain says something about every field of the version that is preferred, and every kind has columns
// of its own.
func TestDescriptionsAndColumns(t *testing.T) {
	for kind, crd := range all(t) {
		t.Run(kind, func(t *testing.T) {
			version := crd.Spec.Versions[len(crd.Spec.Versions)-1]
			var silent []string
			walk(version.Schema.OpenAPIV3Schema, "", func(path string, schema *apiextensionsv1.JSONSchemaProps) {
				if schema.Description == "" && path != ".metadata" {
					silent = append(silent, path)
				}
			})
			sort.Strings(silent)
			if len(silent) > 0 {
				t.Errorf("no description: %v", silent)
			}
			if len(version.AdditionalPrinterColumns) == 0 {
				t.Error("no columns")
			}
		})
	}
}

// walk calls visit for every property.
func walk(schema *apiextensionsv1.JSONSchemaProps, path string, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	for name, property := range schema.Properties {
		visit(path+"."+name, &property)
		walk(&property, path+"."+name, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(schema.Items.Schema, path+"[]", visit)
	}
}

// Z-06: rules in CEL, list types and keys arrive.
func TestSchemaRules(t *testing.T) {
	crds := all(t)
	rules := map[string]int{}
	lists := map[string]int{}
	for kind, crd := range crds {
		version := crd.Spec.Versions[len(crd.Spec.Versions)-1]
		walk(version.Schema.OpenAPIV3Schema, "", func(_ string, schema *apiextensionsv1.JSONSchemaProps) {
			rules[kind] += len(schema.XValidations)
			if schema.XListType != nil && *schema.XListType == "map" && len(schema.XListMapKeys) > 0 {
				lists[kind]++
			}
		})
	}
	for _, kind := range []string{"MachineHealthCheck", "MachineDrainRule", "KubeadmConfig", "LocalCluster", "LocalMachine", "HostedControlPlane"} {
		if rules[kind] == 0 {
			t.Errorf("%s has no rule in CEL", kind)
		}
	}
	for _, kind := range []string{"Cluster", "Machine", "MachinePool", "LocalMachinePool"} {
		if lists[kind] == 0 {
			t.Errorf("%s has no list with keys", kind)
		}
	}
}

// CV-01: kinds of several versions are converted by the webhook, others by no one.
func TestConversion(t *testing.T) {
	client := &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert"), CABundle: []byte("ca")}
	for kind, crd := range all(t) {
		withConversion(crd, client)
		want := len(crd.Spec.Versions) > 1
		got := crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter &&
			*crd.Spec.Conversion.Webhook.ClientConfig.URL == *client.URL
		if got != want {
			t.Errorf("%s: converted by the webhook: got %t, want %t", kind, got, want)
		}
	}
}

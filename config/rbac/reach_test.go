package rbac_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/manager/crds"
)

// telling are the names of fields that may name something of a host, an address, a flag, an image, a container, or a
// program.
var telling = regexp.MustCompile(`(?i)path|address|host|port|flag|args|image|container|mount|volume|command|device|disk|url|uri|` +
	`endpoint|virtualip|file|provider|subnet|cidr|network|script|user|env|privilege|extra|patch|proxy|socket|domain`)

// reviewed are such fields of the kinds that edit may write, with the name of what contains them, and why each reaches
// nothing.
var reviewed = map[string]string{
	"spec.controlPlaneEndpoint":                    "a hosted control plane listens at it only where the operator's file allows that; of an SSHCluster within hosts.endpoints",
	"controlPlaneEndpoint.host":                    "as above",
	"controlPlaneEndpoint.port":                    "as above",
	"spec.virtualIP":                               "control plane hosts of the namespace hold it, within hosts.virtualIPs, where no other machine has it",
	"spec.clusterNetwork":                          "ranges of the workload cluster, each as below",
	"clusterNetwork.apiServerPort":                 "of the endpoint above",
	"pods.cidrBlocks":                              "the network of a local cluster is chosen around it, within networks.ranges, beside all that the host and the operator's file name, and within maxima.networkAddresses: TestRangesOfAHostileCluster",
	"services.cidrBlocks":                          "as above",
	"clusterNetwork.serviceDomain":                 "a name within the workload cluster",
	"deletion.nodeVolumeDetachTimeoutSeconds":      "a time",
	"spec.nodeVolumeDetachTimeout":                 "a time",
	"controlPlane.nodeVolumeDetachTimeout":         "a time",
	"machineDeployments[].nodeVolumeDetachTimeout": "a time",
	"machinePools[].nodeVolumeDetachTimeout":       "a time",
	"spec.failureDomain":                           "a name that the infrastructure provider knows or refuses",
	"spec.failureDomains":                          "as above",
	"machineDeployments[].failureDomain":           "as above",
	"machinePools[].failureDomains":                "as above",
	"spec.hostSelector":                            "labels of SSHHosts, out of those that the operator offers to the namespace",
	"settings.proxy":                               "of the container runtime on a host of the namespace, whose users are root there; removed when it is cleaned",
	"spec.providerID":                              "compared with Nodes of the workload cluster; the Local provider reads that of the LocalMachine alone",
	"spec.providerIDList":                          "as above, of the LocalMachinePool",
	"controlPlaneRef.fieldPath":                    "a part of an object of the API",
	"infrastructureRef.fieldPath":                  "as above",
	"configRef.fieldPath":                          "as above",
	"remediationTemplate.fieldPath":                "as above",
}

// What edit may write names no path, address, flag, image or container that a controller works on: every field of its kinds
// with such a name was looked at, and a new one has to be.
func TestEditReachesNoHost(t *testing.T) {
	writable := map[string]bool{}
	for _, rule := range ruleOf(t, "slipway-edit") {
		if !slices.Contains(rule.Verbs, "patch") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				writable[resource+"."+group] = true
			}
		}
	}
	list, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, crd := range list {
		if !writable[crd.Name] {
			continue
		}
		for _, version := range crd.Spec.Versions {
			spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
			walk("spec", spec, found)
		}
	}
	want := map[string]bool{}
	for field := range reviewed {
		want[field] = true
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("fields with telling names that edit may write (-reviewed +found):\n%s", diff)
	}
}

// reachedByVariables are the variables of the classes that come with Slipway, which who writes Clusters sets, and why each reaches nothing that
// the operator does not allow.
var reachedByVariables = map[string]string{
	"subnet":                                 "within networks.ranges and beside all that the host and the operator's file name: TestRangesOfAHostileCluster",
	"internet":                               "where networks.internet allows it",
	"nodeImage":                              "one of nodes.images",
	"nodeResources.cpus":                     "at most nodes.cpus",
	"nodeResources.memoryMiB":                "at most nodes.memoryMiB",
	"nodeResources.processes":                "at most nodes.processes",
	"controlPlaneResources.cpus":             "at most nodes.cpus",
	"controlPlaneResources.memoryMiB":        "at most nodes.memoryMiB",
	"controlPlaneResources.processes":        "at most nodes.processes",
	"podSecurity":                            "a choice of three, in the workload cluster",
	"audit":                                  "a switch, of a log that is bounded",
	"encryption":                             "a switch",
	"hardening":                              "a switch",
	"controlPlaneEndpoint.host":              "a hosted control plane listens at it only where controlPlanes.addresses allows that",
	"controlPlaneEndpoint.port":              "as above",
	"virtualIP":                              "within hosts.virtualIPs, where no other machine has the address",
	"bundle":                                 "a choice of two",
	"hostSettings.proxy":                     "of the container runtime on a host of the namespace, whose users are root there; removed when it is cleaned",
	"hostSettings.registryMirrors":           "as above",
	"hostSettings.additionalTrustedCAs":      "as above",
	"hostCleaning.bundles":                   "a choice of two",
	"hostCleaning.unreachableTimeoutSeconds": "a time, after which an unreachable host is released as with an annotation that edit may write; it is quarantined until it is clean",
	"startupDelay":                           "a time, of machines that exist in memory alone",
	"jitter":                                 "as above",
}

// Variables of a class become fields of objects that edit may not write: each is looked at, and a new one has to be. Security S3.
func TestVariablesOfClassesReachNoHost(t *testing.T) {
	found := map[string]bool{}
	for _, name := range classes.Names() {
		objects, _, err := classes.Objects(name, "")
		if err != nil {
			t.Fatal(err)
		}
		class := &clusterv1.ClusterClass{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[len(objects)-1].Object, class); err != nil {
			t.Fatal(err)
		}
		for _, v := range class.Spec.Variables {
			if v.Schema.OpenAPIV3Schema.Type != "object" {
				found[v.Name] = true
			}
			for field := range v.Schema.OpenAPIV3Schema.Properties {
				found[v.Name+"."+field] = true
			}
		}
	}
	want := map[string]bool{}
	for name := range reachedByVariables {
		want[name] = true
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("variables of the classes (-reviewed +found):\n%s", diff)
	}
}

func walk(parent string, schema apiextensionsv1.JSONSchemaProps, found map[string]bool) {
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(parent+"[]", *schema.Items.Schema, found)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(parent+"{}", *schema.AdditionalProperties.Schema, found)
	}
	for name, property := range schema.Properties {
		if telling.MatchString(name) {
			found[parent+"."+name] = true
		}
		walk(name, property, found)
	}
}

// ruleOf returns the rules of a ClusterRole that is installed.
func ruleOf(t *testing.T, name string) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := rbac.Objects(rbac.Rights{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() != "ClusterRole" || object.GetName() != name {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			t.Fatal(err)
		}
		return role.Rules
	}
	t.Fatalf("there is no ClusterRole %s", name)
	return nil
}

// Roles for people list kinds and verbs; the manager's has one rule with a star, for the groups of foreign providers.
func TestRolesListWhatTheyGive(t *testing.T) {
	objects, err := rbac.Objects(rbac.Rights{})
	if err != nil {
		t.Fatal(err)
	}
	stars := map[string][]string{}
	for _, object := range objects {
		role := &rbacv1.ClusterRole{}
		if object.GetKind() != "ClusterRole" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
				if slices.ContainsFunc(list, func(s string) bool { return regexp.MustCompile(`\*`).MatchString(s) }) {
					stars[role.Name] = append(stars[role.Name], rule.APIGroups...)
				}
			}
		}
	}
	foreign := []string{"bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"}
	infrastructure := foreign[len(foreign)-1:] // whose machines a control plane creates
	want := map[string][]string{
		"slipway-cluster-api": foreign, "slipway-cluster-api-process": foreign,
		"slipway-control-plane-kubeadm": infrastructure, "slipway-control-plane-kubeadm-process": infrastructure,
	}
	if diff := cmp.Diff(want, stars); diff != "" {
		t.Errorf("rules with a star, by role (-want +got):\n%s", diff)
	}
}

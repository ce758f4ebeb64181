package release

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/manifest"
)

// Variables of a template. The first five are clusterctl's, which sets them from flags, so their names must not change.
const (
	clusterName       = "${CLUSTER_NAME}"
	namespaceVariable = "${NAMESPACE}"
	versionVariable   = "${KUBERNETES_VERSION}"
	planes            = "${CONTROL_PLANE_MACHINE_COUNT}"
	workers           = "${WORKER_MACHINE_COUNT}"
	// Network is the first half of an IPv4 /16 address.
	Network = "LOCAL_NETWORK"
	// virtualIP replaces the virtual IP address.
	virtualIP = "${VIRTUAL_IP}"
)

// Flavor is a cluster template that is derived from an example. [Write] and package clusterctl/template read the
// examples of a flavor with [Flavor.Objects].
type Flavor struct {
	// Name of the flavor. Empty: the default flavor.
	Name string
	// example is the file from which the template is derived, cluster the name of its Cluster and network the first
	// half of its range.
	example, cluster, network string
	// class is the name of the ClusterClass, which is a separate file in a release.
	class string
	// virtualIP is the virtual IP address in the example.
	virtualIP string
}

// sshFlavors returns the cluster templates of the SSH provider in a release. sshClusters writes them (repository.go).
// `slipway generate cluster` offers them only from a release.
func sshFlavors() []Flavor {
	return []Flavor{
		{Name: "", example: "ssh.yaml", cluster: "hosts", class: classes.SSH},
		{Name: "kubeadm", example: "ssh-kubeadm.yaml", cluster: "hosts", class: classes.SSHKubeadm, virtualIP: "192.0.2.10"},
	}
}

// Flavors returns the cluster templates of the Local provider in a release. `slipway generate cluster` offers the same
// ones without a release. The examples are in the folder examples; users select a flavor by its name (`--flavor`).
func Flavors() []Flavor {
	return []Flavor{
		{Name: "", example: "machinedeployment.yaml", cluster: "workers", network: "172.31"},
		{Name: "pool", example: "without-class.yaml", cluster: "quickstart", network: "172.30"},
		{Name: "class", example: "quickstart.yaml", cluster: "quickstart", network: "172.30", class: classes.Local},
		{Name: "kubeadm", example: "kubeadm.yaml", cluster: "demo", network: "172.29"},
		{Name: "simulated", example: "fleet.yaml", cluster: "fleet"},
	}
}

// File returns the name of the template's file. clusterctl finds a flavor by it.
func (f Flavor) File() string {
	if f.Name == "" {
		return "cluster-template.yaml"
	}
	return "cluster-template-" + f.Name + ".yaml"
}

// Objects returns the objects of a template, given the directory of examples. The objects contain variables in place of
// numbers, so they can only be printed as text ([ComponentsYAML]).
func (f Flavor) Objects(examples fs.FS) ([]*unstructured.Unstructured, error) {
	data, err := fs.ReadFile(examples, f.example)
	if err != nil {
		return nil, fmt.Errorf("reading an example: %w", err)
	}
	out, err := manifest.Objects(data)
	if err != nil {
		return nil, fmt.Errorf("reading example %s: %w", f.example, err)
	}
	if out, err = f.withoutClass(out); err != nil {
		return nil, err
	}
	for _, o := range out {
		count := workers
		if o.GetKind() == "KubeadmControlPlane" {
			count = planes
		}
		o.Object = f.replaced(o.Object, count).(map[string]any)
		o.SetNamespace(namespaceVariable)
	}
	return out, nil
}

// withoutClass removes the ClusterClass and its templates, which clusterctl adds if they are missing.
func (f Flavor) withoutClass(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if f.class == "" {
		return objects, nil
	}
	class, _, err := classes.Objects(f.class, "")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc(class, func(c *unstructured.Unstructured) bool {
			return c.GroupVersionKind() == o.GroupVersionKind() && c.GetName() == o.GetName()
		})
	}), nil
}

// replaced returns a value of the example with variables; count replaces a number of replicas.
func (f Flavor) replaced(value any, count string) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			switch key {
			case "replicas":
				v[key] = count
			case "version":
				v[key] = versionVariable
			case "controlPlane":
				v[key] = f.replaced(v[key], planes)
			default:
				v[key] = f.replaced(v[key], count)
			}
		}
	case []any:
		for i := range v {
			v[i] = f.replaced(v[i], count)
		}
	case string:
		return f.text(v)
	}
	return value
}

// text returns a text of the example with variables for the name, the virtual IP address and the network of the
// cluster.
func (f Flavor) text(s string) string {
	if rest, found := strings.CutPrefix(s, f.cluster); found && (rest == "" || rest[0] == '-') {
		return clusterName + rest
	}
	if s == f.virtualIP && s != "" {
		return virtualIP
	}
	if rest, found := strings.CutPrefix(s, f.network+"."); found && f.network != "" {
		return "${" + Network + ":=" + f.network + "}." + rest
	}
	return s
}

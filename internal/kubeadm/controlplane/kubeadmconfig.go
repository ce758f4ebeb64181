package controlplane

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// localMode is a feature gate of kubeadm that depends on the version. It is ignored in comparisons.
const localMode = "ControlPlaneKubeletLocalMode"

// desiredConfig returns the configuration of a new Machine, which initializes the cluster or joins it. A joining
// Machine also gets the ClusterConfiguration, which determines whether etcd is external. This file creates
// KubeadmConfigs ([newConfig]) and compares them with the control plane ([configDifferences]): a change of the
// comparison can replace the Machines of every existing control plane, so [normalized] must hide all fields that need
// no replacement.
func desiredConfig(plane *controlplanev1.KubeadmControlPlane, joins bool) bootstrapv1.KubeadmConfigSpec {
	spec := plane.Spec.KubeadmConfigSpec.DeepCopy()
	if joins {
		spec.InitConfiguration = bootstrapv1.InitConfiguration{}
	} else {
		spec.JoinConfiguration = bootstrapv1.JoinConfiguration{}
	}
	return *spec
}

// newConfig returns the KubeadmConfig of a new Machine for server-side apply. act creates the KubeadmConfig from it,
// and an in-place update applies it.
func newConfig(plane *controlplanev1.KubeadmControlPlane, meta metav1.ObjectMeta, joins bool) (*unstructured.Unstructured, error) {
	config, err := untyped(&bootstrapv1.KubeadmConfig{ObjectMeta: meta, Spec: desiredConfig(plane, joins)})
	if err != nil {
		return nil, err
	}
	delete(config.Object, "status")
	unstructured.RemoveNestedField(config.Object, "metadata", "creationTimestamp")
	return config, nil
}

// untyped converts a KubeadmConfig for server-side apply.
func untyped(config *bootstrapv1.KubeadmConfig) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidKubeadmConfig", "KubeadmConfig %s cannot be encoded", config.Name).From(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind(configKind))
	return u, nil
}

// configDifferences returns the sorted fields in which the configuration of a Machine differs from the desired one. If
// the configuration belongs neither clearly to init nor to join, it is compared with both, and the smaller difference
// is returned. [rolloutReasons] calls it for each Machine in each reconciliation.
func configDifferences(plane *controlplanev1.KubeadmControlPlane, have bootstrapv1.KubeadmConfigSpec) []string {
	joins, inits := have.JoinConfiguration.IsDefined(), have.InitConfiguration.IsDefined()
	was := normalized(have)
	switch {
	case joins && !inits:
		return differences(was, normalized(desiredConfig(plane, true)))
	case inits && !joins:
		return differences(was, normalized(desiredConfig(plane, false)))
	}
	join, initial := differences(was, normalized(desiredConfig(plane, true))), differences(was, normalized(desiredConfig(plane, false)))
	if len(initial) < len(join) {
		return initial
	}
	return join
}

// normalized returns a configuration for comparison, with defaults and without the fields that do not require a
// replacement.
func normalized(spec bootstrapv1.KubeadmConfigSpec) *bootstrapv1.KubeadmConfigSpec {
	c := spec.DeepCopy()
	c.ClusterConfiguration.DNS = bootstrapv1.DNS{}
	c.ClusterConfiguration.ControlPlaneEndpoint = "" // never compared, because other clients write the endpoint of the Cluster here
	c.JoinConfiguration.Discovery = bootstrapv1.Discovery{}
	if c.Format == "" {
		c.Format = bootstrapv1.CloudConfig
	}
	delete(c.ClusterConfiguration.FeatureGates, localMode)
	if len(c.ClusterConfiguration.FeatureGates) == 0 {
		c.ClusterConfiguration.FeatureGates = nil
	}
	for _, node := range []*bootstrapv1.NodeRegistrationOptions{&c.InitConfiguration.NodeRegistration, &c.JoinConfiguration.NodeRegistration} {
		if node.ImagePullPolicy == "IfNotPresent" {
			node.ImagePullPolicy = ""
		}
	}
	if c.JoinConfiguration.ControlPlane != nil && !c.JoinConfiguration.ControlPlane.LocalAPIEndpoint.IsDefined() {
		c.JoinConfiguration.ControlPlane = nil // an empty controlPlane section is equivalent to none
	}
	return c
}

// alignedConfig returns the desired configuration with the current values of all fields that are ignored in
// comparisons. An in-place update extension then does not have to make changes for which no Machine is replaced. The
// check and the start of an in-place update call it. Each field that [normalized] ignores needs a line here.
func alignedConfig(have, want bootstrapv1.KubeadmConfigSpec) bootstrapv1.KubeadmConfigSpec {
	out := want.DeepCopy()
	out.ClusterConfiguration.DNS = have.ClusterConfiguration.DNS
	out.ClusterConfiguration.ControlPlaneEndpoint = have.ClusterConfiguration.ControlPlaneEndpoint
	out.JoinConfiguration.Discovery = have.JoinConfiguration.Discovery
	a, b := normalized(have), normalized(*out)
	if a.Format == b.Format {
		out.Format = have.Format
	}
	if maps.Equal(a.ClusterConfiguration.FeatureGates, b.ClusterConfiguration.FeatureGates) {
		out.ClusterConfiguration.FeatureGates = have.ClusterConfiguration.FeatureGates
	}
	if a.InitConfiguration.NodeRegistration.ImagePullPolicy == b.InitConfiguration.NodeRegistration.ImagePullPolicy {
		out.InitConfiguration.NodeRegistration.ImagePullPolicy = have.InitConfiguration.NodeRegistration.ImagePullPolicy
	}
	if a.JoinConfiguration.NodeRegistration.ImagePullPolicy == b.JoinConfiguration.NodeRegistration.ImagePullPolicy {
		out.JoinConfiguration.NodeRegistration.ImagePullPolicy = have.JoinConfiguration.NodeRegistration.ImagePullPolicy
	}
	if a.JoinConfiguration.ControlPlane == nil && b.JoinConfiguration.ControlPlane == nil {
		out.JoinConfiguration.ControlPlane = have.JoinConfiguration.ControlPlane
	}
	return *out
}

func fieldsOf(c *bootstrapv1.KubeadmConfigSpec) map[string]any {
	data, err := json.Marshal(c)
	out := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return nil
	}
	return out
}

// differences returns the paths of differing fields, up to two levels deep.
func differences(a, b *bootstrapv1.KubeadmConfigSpec) []string {
	if equality.Semantic.DeepEqual(a, b) {
		return nil
	}
	have, want := fieldsOf(a), fieldsOf(b)
	var out []string
	for _, key := range keys(have, want) {
		h, inHave := have[key].(map[string]any)
		w, inWant := want[key].(map[string]any)
		switch {
		case reflect.DeepEqual(have[key], want[key]), isEmpty(have[key]) && isEmpty(want[key]):
		case inHave || inWant:
			for _, field := range keys(h, w) {
				if !reflect.DeepEqual(h[field], w[field]) && !(isEmpty(h[field]) && isEmpty(w[field])) {
					out = append(out, key+"."+field)
				}
			}
		default:
			out = append(out, key)
		}
	}
	return out
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil
}

func keys(a, b map[string]any) []string {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

package rollout

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

// localMode is a feature gate of kubeadm that depends on the version, and is no difference by itself.
const localMode = "ControlPlaneKubeletLocalMode"

// DesiredConfig is the configuration of a new Machine: the first, which initializes the cluster, or one that joins it. That of a join
// keeps the configuration of the cluster, from which it follows whether etcd is external.
func DesiredConfig(plane *controlplanev1.KubeadmControlPlane, joins bool) bootstrapv1.KubeadmConfigSpec {
	spec := plane.Spec.KubeadmConfigSpec.DeepCopy()
	if joins {
		spec.InitConfiguration = bootstrapv1.InitConfiguration{}
	} else {
		spec.JoinConfiguration = bootstrapv1.JoinConfiguration{}
	}
	return *spec
}

// NewConfig is the KubeadmConfig of a new Machine in the form in which it is applied.
func NewConfig(plane *controlplanev1.KubeadmControlPlane, meta metav1.ObjectMeta, joins bool) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&bootstrapv1.KubeadmConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubeadmConfig"}, ObjectMeta: meta, Spec: DesiredConfig(plane, joins),
	})
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidKubeadmConfig", "KubeadmConfig %s cannot be encoded", meta.Name).From(err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// Differences are the fields in which the configuration of a Machine differs from the desired one, sorted. A Machine that has neither
// the configuration of an init nor that of a join may be either; then the one that differs less counts.
func Differences(plane *controlplanev1.KubeadmControlPlane, have bootstrapv1.KubeadmConfigSpec) []string {
	joins, inits := have.JoinConfiguration.IsDefined(), have.InitConfiguration.IsDefined()
	was := normalized(have)
	switch {
	case joins && !inits:
		return differences(was, normalized(DesiredConfig(plane, true)))
	case inits && !joins:
		return differences(was, normalized(DesiredConfig(plane, false)))
	}
	join, initial := differences(was, normalized(DesiredConfig(plane, true))), differences(was, normalized(DesiredConfig(plane, false)))
	if len(initial) < len(join) {
		return initial
	}
	return join
}

// normalized is a configuration as it is compared: with the defaults of what is not set, and without what is changed in running
// clusters in another way.
func normalized(spec bootstrapv1.KubeadmConfigSpec) *bootstrapv1.KubeadmConfigSpec {
	c := spec.DeepCopy()
	c.ClusterConfiguration.DNS = bootstrapv1.DNS{}
	c.ClusterConfiguration.ControlPlaneEndpoint = "" // stays as it is; others write the endpoint of the Cluster here
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
		c.JoinConfiguration.ControlPlane = nil // that a control plane joins goes without saying
	}
	return c
}

// Aligned is a desired configuration with what is no difference as it is: an extension that updates a Machine in place does not have to
// make changes for which no Machine is replaced.
func Aligned(have, want bootstrapv1.KubeadmConfigSpec) bootstrapv1.KubeadmConfigSpec {
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

// fieldsOf are the fields of a configuration as JSON has them.
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

// differences are the paths of fields, two levels deep, that are not the same in both.
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
	var out []string
	for _, m := range []map[string]any{a, b} {
		for key := range m {
			if !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	slices.Sort(out)
	return out
}

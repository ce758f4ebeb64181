package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonInvalidConfiguration is the reason of faults about a configuration that is stored in a cluster.
const reasonInvalidConfiguration = "InvalidClusterConfiguration"

// maxStored limits the size of a stored configuration in bytes. kubeadm's own configurations have a few thousand
// bytes.
const maxStored = 256 << 10

// fields is a mapping of the parsed YAML, including fields that this package does not know.
type fields = map[string]any

// StoredConfiguration is the ClusterConfiguration that kubeadm has stored in ConfigMap kubeadm-config of the workload
// cluster. kubeadm on a joining machine reads it, so the KubeadmControlPlane controller changes it before a Machine
// with another version or configuration joins, and when it upgrades CoreDNS. Fields unknown to this program are
// preserved.
type StoredConfiguration struct{ original, current fields }

// ParseStored parses a ClusterConfiguration of API version v1beta3 or v1beta4. The error is an Invalid fault. Package
// controlplane/addons calls it for the ConfigMap kubeadm-config of the workload cluster.
func ParseStored(text string) (StoredConfiguration, error) {
	invalid := func(format string, args ...any) *fault.Fault {
		return fault.New(fault.Invalid, reasonInvalidConfiguration, "The ClusterConfiguration "+format, args...)
	}
	if len(text) > maxStored {
		return StoredConfiguration{}, invalid("has more than %d KiB", maxStored>>10)
	}
	s := StoredConfiguration{}
	if err := yaml.Unmarshal([]byte(text), &s.original); err != nil {
		return StoredConfiguration{}, invalid("is not YAML").From(err)
	}
	api, _ := s.original["apiVersion"].(string)
	if api != string(v1Beta3) && api != string(v1Beta4) {
		return StoredConfiguration{}, invalid("has API version %q; only %s and %s can be changed", api, v1Beta3, v1Beta4)
	}
	if err := yaml.Unmarshal([]byte(text), &s.current); err != nil { // a copy
		return StoredConfiguration{}, invalid("is not YAML").From(err)
	}
	return s, nil
}

// ForVersion changes the configuration to another Kubernetes version, and raises the API version if the version's
// kubeadm requires it. The API version is never lowered. The error is an Invalid fault if the version is malformed.
// Package controlplane/addons calls it before a Machine with another version joins.
func (s StoredConfiguration) ForVersion(kubernetesVersion string) error {
	api, err := apiVersionFor(kubernetesVersion)
	if err != nil {
		return err
	}
	if s.api() == v1Beta3 && api == v1Beta4 {
		s.raise()
	}
	s.current["kubernetesVersion"] = kubernetesVersion
	return nil
}

func (s StoredConfiguration) api() apiVersion { return apiVersion(s.current["apiVersion"].(string)) } // checked by ParseStored

// raise converts v1beta3 to v1beta4, which represents arguments as lists and has no timeouts in this document.
func (s StoredConfiguration) raise() {
	s.current["apiVersion"] = string(v1Beta4)
	apiServer := childMapping(s.current, "apiServer")
	delete(apiServer, "timeoutForControlPlane")
	for _, part := range []fields{apiServer, childMapping(s.current, "controllerManager"), childMapping(s.current, "scheduler"), childMapping(childMapping(s.current, "etcd"), "local")} {
		args, ok := part["extraArgs"].(fields)
		if !ok {
			continue
		}
		var list []any
		for _, name := range slices.Sorted(maps.Keys(args)) {
			list = append(list, fields{"name": name, "value": args[name]})
		}
		part["extraArgs"] = list
	}
}

// childMapping returns the mapping in a field for modification, or a new detached mapping if there is none.
func childMapping(in fields, name string) fields {
	if out, ok := in[name].(fields); ok {
		return out
	}
	return fields{}
}

// ApplyConfiguration copies images, feature gates, components, etcd and certificate settings from a configuration.
// Fields that are unset there and have a default from kubeadm remain unchanged. Package controlplane/addons calls it
// before a Machine with another configuration joins.
func (s StoredConfiguration) ApplyConfiguration(in bootstrapv1.ClusterConfiguration) error {
	kubernetesVersion, _ := s.current["kubernetesVersion"].(string)
	want, err := wireFields(clusterFor(s.api(), in, ClusterValues{KubernetesVersion: kubernetesVersion}))
	if err != nil {
		return err
	}
	if in.ImageRepository != "" {
		s.current["imageRepository"] = in.ImageRepository
	}
	timeout, hasTimeout := childMapping(s.current, "apiServer")["timeoutForControlPlane"]
	dataDir, hasDataDir := childMapping(childMapping(s.current, "etcd"), "local")["dataDir"]
	for _, name := range []string{"featureGates", "apiServer", "controllerManager", "scheduler"} {
		s.set(name, want[name])
	}
	if hasTimeout {
		s.child("apiServer")["timeoutForControlPlane"] = timeout
	}
	if in.Etcd.External.IsDefined() {
		s.set("etcd", want["etcd"])
	} else if childMapping(s.current, "etcd")["external"] == nil {
		s.set("etcd", fields{"local": childMapping(childMapping(want, "etcd"), "local")})
		if local := childMapping(childMapping(s.current, "etcd"), "local"); hasDataDir && local["dataDir"] == nil {
			local["dataDir"] = dataDir
		}
	}
	// The values are the defaults that kubeadm stores; a field with its default is not removed.
	for name, otherwise := range map[string]string{"certificateValidityPeriod": "8760h0m0s", "encryptionAlgorithm": "RSA-2048"} {
		if want[name] != nil || s.current[name] != otherwise {
			s.set(name, want[name])
		}
	}
	return nil
}

// FollowDNS copies the image settings of CoreDNS. Package controlplane/addons calls it when it upgrades CoreDNS.
func (s StoredConfiguration) FollowDNS(in bootstrapv1.DNS) {
	dns := s.child("dns")
	for name, value := range map[string]string{"imageRepository": in.ImageRepository, "imageTag": in.ImageTag} {
		if delete(dns, name); value != "" {
			dns[name] = value
		}
	}
}

// set sets a field, or removes it if the value is nil.
func (s StoredConfiguration) set(name string, value any) {
	if delete(s.current, name); value != nil {
		s.current[name] = value
	}
}

// child returns the mapping in a field for modification and creates it if it is missing.
func (s StoredConfiguration) child(name string) fields {
	out := childMapping(s.current, name)
	s.current[name] = out
	return out
}

// Changed returns the sorted names of the fields that differ from the parsed configuration. The KubeadmControlPlane
// controller writes the ConfigMap if there are any, and names them in the action.
func (s StoredConfiguration) Changed() []string {
	names := maps.Clone(s.original)
	maps.Copy(names, s.current)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !reflect.DeepEqual(pruned(s.original[name]), pruned(s.current[name])) {
			out = append(out, name)
		}
	}
	return out
}

// pruned returns a value without its empty parts.
func pruned(v any) any {
	in, ok := v.(fields)
	if !ok {
		if list, is := v.([]any); is && len(list) == 0 {
			return nil
		}
		return v
	}
	out := fields{}
	for name, value := range in {
		if value = pruned(value); value != nil {
			out[name] = value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Text returns the configuration in its stored form. The output is deterministic. Package controlplane/addons writes it
// into the ConfigMap.
func (s StoredConfiguration) Text() (string, error) {
	out, err := YAMLMarshal(s.current)
	if err != nil {
		return "", fault.New(fault.Bug, reasonInvalidConfiguration, "the ClusterConfiguration cannot be encoded").From(err)
	}
	return string(out), nil
}

func wireFields(v any) (out fields, err error) {
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return nil, fault.New(fault.Bug, reasonInvalidConfiguration, "the ClusterConfiguration cannot be encoded").From(err)
	}
	return out, nil
}

package api

import (
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

const reasonInvalidVersion = "InvalidVersion"

// apiVersion is the apiVersion of kubeadm's configuration, which kubeadm reads in the file on the machine and stores in
// ConfigMap kubeadm-config.
type apiVersion string

// The supported API versions. kubeadm has v1beta4 since Kubernetes 1.31, and older releases do not read it.
const (
	v1Beta3 apiVersion = "kubeadm.k8s.io/v1beta3"
	v1Beta4 apiVersion = "kubeadm.k8s.io/v1beta4"
)

// apiVersionFor returns the API version for a Kubernetes version such as "v1.36.3": v1beta4 from 1.31, and v1beta3
// before. The error is an Invalid fault. MarshalInit and MarshalJoin call it for the version of a Machine, and
// [StoredConfiguration.ForVersion] for the new version of a cluster.
func apiVersionFor(kubernetesVersion string) (apiVersion, error) {
	v, err := version.ParseSemantic(kubernetesVersion)
	if err != nil {
		return "", fault.New(fault.Invalid, reasonInvalidVersion,
			"%q is not a Kubernetes version; set it in the form v1.36.3", kubernetesVersion).From(err)
	}
	if v.Major == 1 && v.Minor < 31 {
		return v1Beta3, nil
	}
	return v1Beta4, nil
}

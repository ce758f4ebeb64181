package api

import (
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/slipwayhq/slipway/internal/fault"
)

// ReasonInvalidVersion is the reason of faults about Kubernetes versions.
const ReasonInvalidVersion = "InvalidVersion"

// APIVersion is the apiVersion of kubeadm's configuration.
type APIVersion string

// The supported API versions.
const (
	V1Beta3 APIVersion = "kubeadm.k8s.io/v1beta3"
	V1Beta4 APIVersion = "kubeadm.k8s.io/v1beta4"
)

// APIVersionFor returns the API version for a Kubernetes version such as "v1.36.3": v1beta4 from 1.31, and v1beta3
// before. The error is an Invalid fault.
func APIVersionFor(kubernetesVersion string) (APIVersion, error) {
	v, err := version.ParseSemantic(kubernetesVersion)
	if err != nil {
		return "", fault.New(fault.Invalid, ReasonInvalidVersion,
			"%q is not a Kubernetes version; set it in the form v1.36.3", kubernetesVersion).From(err)
	}
	if v.Major() == 1 && v.Minor() < 31 {
		return V1Beta3, nil
	}
	return V1Beta4, nil
}
